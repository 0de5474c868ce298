"""The documents' statements: the page says how each is asserted, and what it names is there."""

import re
from pathlib import Path

from documented_set import DOCUMENTS, documented_suite
from tables import each

from perfgate.core.metrics import METRICS, is_accuracy
from perfgate.gate.accuracy import judge_paired
from perfgate.gate.performance import judge_performance
from perfgate.gate.verdict import Verdict
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.selection import select_marked

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "documented.md"
SUITE = documented_suite()
SCENARIOS = {scenario.id: scenario for scenario in SUITE.scenarios}
CLAIMS = {claim.id: claim for claim in claims_of(SUITE.scenarios, SUITE.claims)}


def statements() -> list[tuple[str, str, str]]:
    """Document, statement and how it is asserted, of each row of the tables of statements."""
    found = []
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for document, text in zip(parts[::2], parts[1::2], strict=True):
        for table in text.split("| statement | asserted by |\n|---|---|\n")[1:]:
            rows = table.split("\n\n")[0].splitlines()
            cells = (re.fullmatch(r"\| (.+?) \| (.+) \|", row) for row in rows)
            found += [(document, cell[1], cell[2]) for cell in cells if cell is not None]
    return found


STATEMENTS = statements()
NAMED = [
    (document, claim)
    for document, _, by in STATEMENTS
    for claim in re.findall(r"claim `([^`]+)`", by)
]
GATES = [pair for *_, by in STATEMENTS for pair in re.findall(r"gates `([^`]+)` of `([^`]+)`", by)]
KINDS = ("claim `", "gates `", "documented value", "first answer", "rule:", "check:", "refused:")


def test_all_five_documents_have_statements() -> None:
    documents = {document for document, _, _ in STATEMENTS}
    assert documents == DOCUMENTS
    assert len(STATEMENTS) > 50


@each(("document", "statement", "by"), STATEMENTS)
def test_every_statement_is_asserted_or_refused_with_a_reason(
    document: str, statement: str, by: str
) -> None:
    assert any(kind in by for kind in KINDS), f"{document}: {statement}"
    for reason in by.split("refused:")[1:]:
        assert len(reason) > 30
    assert "refused" not in by.replace("refused:", ""), "write 'refused:' and the reason"


def test_every_claim_is_named_under_its_document() -> None:
    assert {claim for _, claim in NAMED} == set(CLAIMS)
    missing = {(c.source.document, c.id) for c in CLAIMS.values()} - set(NAMED)
    assert missing == set()


def test_every_metric_that_is_said_to_gate_does() -> None:
    assert GATES
    assert [(m, s) for m, s in GATES if m not in SCENARIOS[s].gate.metrics] == []


@each(("metric", "scenario"), sorted(set(GATES)))
def test_what_is_said_to_gate_turns_red(metric: str, scenario: str) -> None:
    """Half as good is a regression by the scenario's own policy, and the same is none."""
    band = SCENARIOS[scenario].gate.bands.get(metric)
    if is_accuracy(metric):
        right = {f"q{number}": number < 180 for number in range(198)}
        wrong = {key: was_right and int(key[1:]) % 2 == 0 for key, was_right in right.items()}
        verdicts = [
            judge_paired(metric, [right], [answers] * 2, margin=band or 0.02).verdict
            for answers in (wrong, right)
        ]
        assert verdicts[0] == Verdict.REGRESSION
    else:
        factor = 0.5 if METRICS[metric].direction == "higher" else 2.0
        verdicts = [
            judge_performance(metric, [100.0] * 5, [value] * 2, band=band).verdict
            for value in (100 * factor, 100.0)
        ]
        assert verdicts == [Verdict.REGRESSION, Verdict.PASS]


def test_every_first_answer_that_is_named_is_asked_for() -> None:
    told = [name for *_, by in STATEMENTS for name in re.findall(r"first answer of `([^`]+)`", by)]
    assert told
    assert [name for name in told if SCENARIOS[name].smoke is None] == []


def test_every_rule_that_is_named_is_a_rule() -> None:
    rules = (ROOT / "docs" / "reference" / "scenarios.md").read_text(encoding="utf-8").lower()
    rules += (ROOT / "src/perfgate/scenarios/metric_rules.py").read_text(encoding="utf-8").lower()
    told = [rule for *_, by in STATEMENTS for rule in re.findall(r"rule: ([^;|(.]+)", by)]
    assert len(told) > 5
    assert [rule for rule in told if rule.strip().lower() not in rules] == []


VARIABLES = {  # of the GB200 recipe: lengths, MAX_NUM_TOKENS, KV_CACHE_FRACTION, minutes
    "reasoning": ("1000/1000", 6000, 0.85, 30),
    "chat": ("128/128", 7000, 0.8, 30),
    "summarization": ("8000/512", 9000, 0.85, 45),
    "generation": ("512/8000", 3000, 0.85, 100),
}


@each("use_case", VARIABLES)
@each("streamed", [True, False])
def test_the_gb200_recipes_variables_select_a_scenario(use_case: str, streamed: bool) -> None:
    expression = f"gb200 and {use_case} and {'' if streamed else 'not '}streaming"
    (found,) = select_marked(SUITE.scenarios, expression, SUITE.markers)
    lengths, tokens, fraction, minutes = VARIABLES[use_case]
    assert found.workload is not None
    assert f"{found.workload.isl}/{found.workload.osl}" == lengths
    assert found.workload.streaming is streamed
    settings = found.engine.settings
    assert (settings.max_num_tokens, settings.kv_cache_fraction) == (tokens, fraction)
    assert found.limits.total_s == 60 * minutes
    assert f"`{use_case}:{lengths}`" in PAGE.read_text(encoding="utf-8")
