"""The documents' statements: the page says how each is asserted, and what it names is there."""

import re
import shlex
from pathlib import Path

from documented_set import DOCUMENTS, documented_suite
from tables import each

from perfgate.plan.ranks import Ranks, ranks_of
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.scenario import Container, Launch
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


def test_every_first_answer_that_is_named_is_asked_for() -> None:
    told = [name for *_, by in STATEMENTS for name in re.findall(r"first answer of `([^`]+)`", by)]
    assert told
    assert [name for name in told if SCENARIOS[name].smoke is None] == []


def test_every_rule_that_is_named_is_a_rule() -> None:
    rules = (ROOT / "docs" / "reference" / "scenarios.md").read_text(encoding="utf-8").lower()
    module = ROOT / "src/perfgate/scenarios/rules/metric_rules.py"
    rules += module.read_text(encoding="utf-8").lower()
    told = [rule for *_, by in STATEMENTS for rule in re.findall(r"rule: ([^;|(.]+)", by)]
    assert len(told) > 5
    assert [rule for rule in told if rule.strip().lower() not in rules] == []


def test_every_llmb_run_command_has_one_here_that_measures_the_same() -> None:
    page = (ROOT / "docs" / "how-to" / "slurm.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+) llmb-run single .+?` \| `pytest -m \"(.+?)\" --l", page, re.M)
    assert len(rows) == 6
    for variables, expression in rows:
        told = dict(word.split("=", 1) for word in shlex.split(variables))
        found = select_marked(SUITE.scenarios, expression, SUITE.markers)
        lengths = {f"{s.markers[1]}:{s.workload.isl}/{s.workload.osl}" for s in found if s.workload}
        assert lengths == set(told.pop("USE_CASES").split())
        streaming = told.pop("STREAMING", "true") == "true"
        for one in found:
            assert one.workload is not None
            assert one.launch is not None
            assert one.workload.streaming is streaming
            here = {
                "MAX_NUM_TOKENS": str(one.engine.settings.max_num_tokens),
                "KV_CACHE_FRACTION": str(one.engine.settings.kv_cache_fraction),
                "SBATCH_TIMELIMIT": (one.launch.time_limit or "").removeprefix("00:").lstrip("0"),
            }
            assert told.items() <= here.items()


# Of the GB200 recipe: use case, lengths, minutes.
VARIABLES = [
    ("reasoning", "1000/1000", 30),
    ("chat", "128/128", 30),
    ("summarization", "8000/512", 45),
    ("generation", "512/8000", 100),
]


@each(("use_case", "lengths", "minutes"), VARIABLES)
def test_the_gb200_recipes_variables_select_a_job_of_four_ranks_whose_silence_shows(
    use_case: str, lengths: str, minutes: int
) -> None:
    assert f"`{use_case}:{lengths}`" in PAGE.read_text(encoding="utf-8")
    limit = f"{minutes // 60:02}:{minutes % 60:02}:00"
    for streamed, switch in (("streaming", "on"), ("not streaming", "off")):
        expression = f"gb200 and {use_case} and {streamed}"
        (found,) = select_marked(SUITE.scenarios, expression, SUITE.markers)
        assert found.workload is not None
        assert f"{found.workload.isl}/{found.workload.osl}" == lengths
        assert found.workload.streaming is (streamed == "streaming")
        log = f"DeepSeek-R1_TP4_EP4_PP1_CON-1_{use_case}_streaming-{switch}_%j.out"
        assert found.launch == Launch("sbatch", output=log, time_limit=limit)
        assert ranks_of(found) == Ranks(nodes=1, per_node=4)
        assert found.container == Container("nvcr.io/nvidia/tensorrt-llm/release:1.0.0rc1")
        assert found.engine.settings.iteration_log
        assert found.limits.silence_s < found.limits.total_s == 60 * minutes
