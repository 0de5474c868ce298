"""What a document reports: the band against it, its scores, and the gap to it beside a baseline."""

from collections.abc import Sequence
from dataclasses import replace

import building
import pytest
from starts_made import SPEED, scored, speeds
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.claims import claim_test
from perfgate.judging.assembly.judgement import Reference
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Claim, GatePolicy, Source

STRICT = "accuracy:gsm8k:exact_match:strict-match"
FACTS = {"content": "0123456789abcdef", "cpu": "Grace"}  # those of `building.entry`
VALUE = DocumentedValue(100.0)
# the DeepSeek-R1 quick start recipe documents 0.9500 ± 0.0060 for FP8, strict-match
SCORE = DocumentedValue(0.95, stderr=0.006)


def judged(
    metric: str,
    reference: Reference | DocumentedValue,
    starts: Sequence[Measurement],
    band: float = 0.02,
    rule: Rule | None = None,
) -> Judgement:
    scenario = replace(building.SCENARIO, gate=GatePolicy((metric,), bands={metric: band}))
    probe = Probe(scenario, replace(building.SCENARIO.accuracy[0], task="gsm8k"))
    if metric == SPEED:
        probe = load_probes(scenario)[0]
    if isinstance(reference, DocumentedValue):
        reference = Reference(None, {metric: reference})
    return building.judged(probe, reference, starts, FACTS, rule or Rule()).judgements[0]


def test_three_fresh_starts_at_most_and_no_more_than_the_rule_allows() -> None:
    first = judged(SPEED, VALUE, speeds(90))
    assert (first.needs_more_runs, first.band) == (True, pytest.approx(0.1))
    assert judged(SPEED, replace(VALUE, tolerance=0.25), speeds(90)).band == pytest.approx(0.25)
    decided = judged(SPEED, VALUE, speeds(90, 90, 90, 50))
    assert (decided.runs_used, decided.needs_more_runs) == (3, False)
    assert not judged(SPEED, VALUE, speeds(90), rule=Rule(max_runs=1)).needs_more_runs


def test_an_accuracy_is_compared_with_the_documented_score_and_its_error() -> None:
    good = judged(STRICT, SCORE, [scored(STRICT, 1253, 1319)], band=0.03)
    assert (good.verdict, good.band) == (Verdict.PASS, 0.03)
    bad = judged(STRICT, SCORE, [scored(STRICT, 1150, 1319)] * 2, band=0.03)
    assert bad.verdict == Verdict.REGRESSION
    assert bad.reason.startswith("worse than the documented score: -7.8 points")
    narrow = replace(SCORE, tolerance=0.01)
    raised = judged(STRICT, narrow, [scored(STRICT, 1253, 1319)], band=0.03)
    assert (raised.verdict, raised.band) == (Verdict.PASS, pytest.approx(0.0297, abs=1e-4))
    assert "margin raised from 1.0 to 3.0 points" in raised.notes[0]


def test_the_questions_of_a_score_come_from_the_answers_or_the_facts() -> None:
    bare, full = (scored(STRICT, 1253, 1319, answers=answers) for answers in (False, True))
    assert judged(STRICT, SCORE, [bare]) == judged(STRICT, SCORE, [replace(full, facts={})])
    unknown: list[dict[str, Json]] = [{}, {"questions": "198"}, {"questions": True}]
    for facts in unknown:
        with pytest.raises(InputError, match="number of questions"):
            judged(STRICT, SCORE, [Measurement({STRICT: 0.7}, facts)])


@each(
    "metric, documented, note",
    [
        (SPEED, {SPEED: DocumentedValue(98.0)}, ["documented: 98 tokens/s, now +2.0 %"]),
        (SPEED, {"ttft_mean_ms": DocumentedValue(1.0)}, []),
        (STRICT, {STRICT: DocumentedValue(0.9538)}, ["documented: 0.9538, now -0.4 points"]),
    ],
)
def test_the_gap_to_a_document_is_told_beside_a_baseline(
    metric: str, documented: dict[str, DocumentedValue], note: list[str]
) -> None:
    before, now = building.entry(*[100.0] * 5), speeds(100)
    if metric == STRICT:
        before = building.entry(0.9, metric=STRICT)
        now = [scored(STRICT, 950, 1000, answers=False)]
    found = judged(metric, Reference(before, documented), now, 0.05)
    assert [one for one in found.notes if "documented" in one] == note


def test_a_claim_about_accuracy() -> None:
    claim = Claim(
        id="deepgemm-keeps-answers",
        title="DeepGEMM answers as well",
        source=Source("guide.md", "DeepGEMM"),
        metric=STRICT,
        scenario="on",
        expect="not_worse",
        versus="off",
        margin=0.01,
    )
    full, bare = (scored(STRICT, 1250, 1319, answers=answers) for answers in (True, False))
    number = replace(claim, versus=None, value=0.99)
    assert claim_test(claim, [full], [full]).judge(Rule()).verdict == Verdict.PASS
    assert claim_test(claim, [bare], [bare]).judge(Rule()).verdict == Verdict.INCONCLUSIVE
    assert claim_test(number, [bare]).judge(Rule()).verdict == Verdict.REGRESSION
