"""Documented values: they and claims get their numbers from measurements."""

from dataclasses import replace

import building
import pytest

from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.bands import Band, resolve_band
from perfgate.judging.assembly.documented_values import (
    claim_test,
    documented_test,
    measured_score,
    with_gap,
)
from perfgate.judging.rules.performance import Rule
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.scenario import Claim, Source

STRICT = "accuracy:gsm8k:exact_match:strict-match"


def throughputs(*values: float) -> list[Measurement]:
    return [Measurement({"output_throughput": value}) for value in values]


def answered(right: int, questions: int, metric: str = STRICT) -> Measurement:
    answers = {f"q{number}": number < right for number in range(questions)}
    return Measurement({metric: right / questions}, {}, {metric: answers})


def throughput(
    value: DocumentedValue, *values: float, band: float = 0.02, rule: Rule | None = None
) -> Judgement:
    test = documented_test(value, against(value, "output_throughput", band), throughputs(*values))
    return test.judge(rule or Rule())


def against(value: DocumentedValue, metric: str, band: float) -> Band:
    gate = replace(building.SCENARIO.gate, bands={metric: band})
    return resolve_band(metric, replace(building.SCENARIO, gate=gate), value)


def test_the_tolerance_is_the_documents_own_else_the_wider_of_band_and_ten_per_cent() -> None:
    assert throughput(DocumentedValue(100.0), 100).band == pytest.approx(0.10)
    assert throughput(DocumentedValue(100.0), 100, band=0.15).band == pytest.approx(0.15)
    own = throughput(DocumentedValue(100.0, tolerance=0.25), 100, band=0.5)
    assert own.band == pytest.approx(0.25)


def test_what_is_planned_with_is_what_is_judged_by() -> None:
    for document in (
        DocumentedValue(100.0),
        DocumentedValue(100.0, tolerance=0.05),
        DocumentedValue(100.0, tolerance=0.25),
    ):
        for band in (0.02, 0.15):
            judged = throughput(document, 100, band=band)
            assert judged.band == pytest.approx(against(document, "output_throughput", band).loss)


def test_three_fresh_starts_at_most_and_no_more_than_the_rule_allows() -> None:
    document = DocumentedValue(100.0)
    assert throughput(document, 90).needs_more_runs
    judged = throughput(document, 90, 90, 90, 50)
    assert (judged.runs_used, judged.needs_more_runs) == (3, False)
    assert not throughput(document, 90, rule=Rule(max_runs=1)).needs_more_runs


def test_an_accuracy_is_compared_with_the_documented_score_and_its_error() -> None:
    # the DeepSeek-R1 quick start recipe documents 0.9500 ± 0.0060 for FP8, strict-match
    document = DocumentedValue(0.95, stderr=0.006)
    band = against(document, STRICT, 0.03)
    judged = documented_test(document, band, [answered(1253, 1319)]).judge(Rule())
    assert judged.verdict == Verdict.PASS
    assert judged.band == 0.03
    bad = documented_test(document, band, [answered(1150, 1319)] * 2).judge(Rule())
    assert bad.verdict == Verdict.REGRESSION
    assert bad.reason.startswith("worse than the documented score: -7.8 points")
    narrow = replace(document, tolerance=0.01)
    band = against(narrow, STRICT, 0.03)
    judged = documented_test(narrow, band, [answered(1253, 1319)]).judge(Rule())
    assert judged.verdict == Verdict.PASS
    assert judged.band == pytest.approx(0.0297, abs=1e-4)
    assert "margin raised from 1.0 to 3.0 points" in judged.notes[0]


def test_the_questions_come_from_the_answers_or_the_facts() -> None:
    assert measured_score(STRICT, answered(9, 10)).questions == 10
    told = Measurement({STRICT: 0.6969}, {"questions": 198})
    assert measured_score(STRICT, told).questions == 198
    assert measured_score(STRICT, told).value == pytest.approx(138 / 198)
    for facts in ({}, {"questions": "198"}, {"questions": True}):
        with pytest.raises(InputError, match="number of questions"):
            measured_score(STRICT, Measurement({STRICT: 0.7}, facts))  # type: ignore[arg-type]


def test_the_gap_to_a_document_is_told() -> None:
    measured = building.judgement(measured=43664.0, notes=("a note",))
    told = with_gap(measured, DocumentedValue(43146.2))
    assert told.notes == ("a note", "documented: 43146.2 tokens/s, now +1.2 %")
    assert told.verdict == measured.verdict
    assert with_gap(measured, None) is measured
    score = building.judgement(metric=STRICT, measured=0.95)
    assert with_gap(score, DocumentedValue(0.9538)).notes == (
        "documented: 0.9538, now -0.4 points",
    )
    unknown = building.judgement(measured=None)
    assert with_gap(unknown, DocumentedValue(1.0)) is unknown


CLAIM = Claim(
    id="deepgemm-pays",
    title="DeepGEMM is faster",
    source=Source("guide.md", "DeepGEMM"),
    metric="output_throughput",
    scenario="on",
    expect="better",
    versus="off",
)


def test_a_claim_about_accuracy() -> None:
    claim = replace(CLAIM, metric=STRICT, expect="not_worse", margin=0.01)
    held = claim_test(claim, [answered(1250, 1319)], [answered(1250, 1319)]).judge(Rule())
    assert held.verdict == Verdict.PASS
    bare = Measurement({STRICT: 0.95}, {"questions": 1319})
    assert claim_test(claim, [bare], [bare]).judge(Rule()).verdict == Verdict.INCONCLUSIVE
    number = replace(claim, versus=None, value=0.99)
    assert claim_test(number, [bare]).judge(Rule()).verdict == Verdict.REGRESSION
