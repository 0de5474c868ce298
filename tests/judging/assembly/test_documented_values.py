"""What a document reports: the band against it, its scores, and the gap to it beside a baseline."""

from collections.abc import Sequence
from dataclasses import replace

import building
import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.bands import resolve_band
from perfgate.judging.assembly.claims import claim_test
from perfgate.judging.assembly.judgement import Reference
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Claim, GatePolicy, Source

SPEED = "output_throughput"
STRICT = "accuracy:gsm8k:exact_match:strict-match"
FACTS = {"content": "0123456789abcdef", "cpu": "Grace"}  # those of `building.entry`


def probe(metric: str, band: float) -> Probe:
    gate = GatePolicy((metric,), bands={metric: band})
    scenario = replace(building.SCENARIO, gate=gate)
    if metric == SPEED:
        return load_probes(scenario)[0]
    return Probe(scenario, replace(building.SCENARIO.accuracy[0], task="gsm8k"))


def judged(
    metric: str,
    value: DocumentedValue,
    starts: Sequence[Measurement],
    band: float = 0.02,
    rule: Rule | None = None,
) -> Judgement:
    reference = Reference(None, {metric: value})
    found = building.judged(probe(metric, band), reference, starts, FACTS, rule or Rule())
    return found.judgements[0]


def speeds(*values: float) -> list[Measurement]:
    return [Measurement({SPEED: value}) for value in values]


def answered(right: int, questions: int) -> Measurement:
    answers = {f"q{number}": number < right for number in range(questions)}
    return Measurement({STRICT: right / questions}, {}, {STRICT: answers})


@each(
    "tolerance, band, expected",
    [
        (None, 0.02, 0.10),
        (None, 0.15, 0.15),
        (0.05, 0.15, 0.10),
        (0.25, 0.5, 0.25),
    ],
)
def test_the_band_is_the_documents_tolerance_else_the_gates_and_ten_per_cent_at_least(
    tolerance: float | None, band: float, expected: float
) -> None:
    value = DocumentedValue(100.0, tolerance=tolerance)
    assert judged(SPEED, value, speeds(100), band).band == pytest.approx(expected)
    planned = resolve_band(SPEED, probe(SPEED, band).scenario, value)
    assert planned.loss == pytest.approx(expected)


def test_three_fresh_starts_at_most_and_no_more_than_the_rule_allows() -> None:
    value = DocumentedValue(100.0)
    assert judged(SPEED, value, speeds(90)).needs_more_runs
    decided = judged(SPEED, value, speeds(90, 90, 90, 50))
    assert (decided.runs_used, decided.needs_more_runs) == (3, False)
    assert not judged(SPEED, value, speeds(90), rule=Rule(max_runs=1)).needs_more_runs


def test_an_accuracy_is_compared_with_the_documented_score_and_its_error() -> None:
    # the DeepSeek-R1 quick start recipe documents 0.9500 ± 0.0060 for FP8, strict-match
    value = DocumentedValue(0.95, stderr=0.006)
    good = judged(STRICT, value, [answered(1253, 1319)], band=0.03)
    assert (good.verdict, good.band) == (Verdict.PASS, 0.03)
    bad = judged(STRICT, value, [answered(1150, 1319)] * 2, band=0.03)
    assert bad.verdict == Verdict.REGRESSION
    assert bad.reason.startswith("worse than the documented score: -7.8 points")
    narrow = replace(value, tolerance=0.01)
    raised = judged(STRICT, narrow, [answered(1253, 1319)], band=0.03)
    assert raised.verdict == Verdict.PASS
    assert raised.band == pytest.approx(0.0297, abs=1e-4)
    assert "margin raised from 1.0 to 3.0 points" in raised.notes[0]


def test_the_questions_of_a_score_come_from_the_answers_or_the_facts() -> None:
    value = DocumentedValue(0.95, stderr=0.006)
    bare = Measurement({STRICT: 1253 / 1319}, {"questions": 1319})
    assert judged(STRICT, value, [bare]) == judged(STRICT, value, [answered(1253, 1319)])
    for facts in ({}, {"questions": "198"}, {"questions": True}):
        with pytest.raises(InputError, match="number of questions"):
            judged(STRICT, value, [Measurement({STRICT: 0.7}, facts)])  # type: ignore[arg-type]


@each(
    "documented, note",
    [
        ({SPEED: DocumentedValue(98.0)}, ["documented: 98 tokens/s, now +2.0 %"]),
        ({"ttft_mean_ms": DocumentedValue(1.0)}, []),
    ],
)
def test_the_gap_to_a_document_is_told_beside_a_baseline(
    documented: dict[str, DocumentedValue], note: list[str]
) -> None:
    reference = Reference(building.entry(*[100.0] * 5), documented)
    found = building.judged(probe(SPEED, 0.02), reference, speeds(100), FACTS, Rule())
    assert [one for one in found.judgements[0].notes if "documented" in one] == note


def test_the_gap_of_a_score_is_told_in_points() -> None:
    entry = building.entry(0.9, metric=STRICT)
    scores = [Measurement({STRICT: 0.95}, {"questions": 1000})]
    reference = Reference(entry, {STRICT: DocumentedValue(0.9538)})
    found = building.judged(probe(STRICT, 0.05), reference, scores, FACTS, Rule())
    assert found.judgements[0].notes[-1] == "documented: 0.9538, now -0.4 points"


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
    held = claim_test(claim, [answered(1250, 1319)], [answered(1250, 1319)]).judge(Rule())
    assert held.verdict == Verdict.PASS
    bare = Measurement({STRICT: 0.95}, {"questions": 1319})
    assert claim_test(claim, [bare], [bare]).judge(Rule()).verdict == Verdict.INCONCLUSIVE
    number = replace(claim, versus=None, value=0.99)
    assert claim_test(number, [bare]).judge(Rule()).verdict == Verdict.REGRESSION
