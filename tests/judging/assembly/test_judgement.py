"""A probe's verdict: the worst of its gating metrics, against a comparable baseline only."""

from dataclasses import replace
from datetime import date
from functools import partial

import building
import pytest
from starts_made import SPEED, scored, speeds
from tables import each

from perfgate.baselines import BaselineRun, Entry
from perfgate.baselines.waivers import Waiver
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Measurement
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.judge_input import JudgeInput, ProbeJudgement, broken_answers
from perfgate.judging.assembly.judge_input import judge as verdict
from perfgate.judging.assembly.judgement import ProbeEvidence, Reference, probe_input
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import GatePolicy

STRICT = building.SUMS
TTFT = "ttft_median_ms"
FACTS = {"content": "a", "cpu": "b"}
judge = partial(building.judged, fingerprint=FACTS, rule=Rule())
SCENARIO = replace(building.SCENARIO, gate=GatePolicy((SPEED, TTFT), noise="prior"))
PROBE = load_probes(SCENARIO)[0]
run = partial(BaselineRun, started="2026-01-01T00:00:00+00:00")


def entry(*values: float, **others: float) -> Entry:
    return Entry(FACTS, tuple(run("r", metrics={SPEED: value, **others}) for value in values))


def task(metric: str) -> Probe:
    """The evaluation that gives a score."""
    name = metric.split(":")[1]
    gated = replace(SCENARIO, gate=GatePolicy((metric,)))
    return Probe(gated, replace(building.SCENARIO.accuracy[0], task=name))


BASELINE = entry(100.0, 101, 99, 100, 100, ttft_median_ms=50.0)
ELSEWHERE = replace(BASELINE, fingerprint={**FACTS, "cpu": "c"})
LOST = speeds(50, 50, ttft_median_ms=50)


def assembled(probe: Probe, reference: Reference, starts: list[Measurement]) -> JudgeInput:
    measured = dict(enumerate(starts, start=1))
    return probe_input(ProbeEvidence(probe, reference, FACTS, measured), Rule())


def waived(given: JudgeInput, broken: str = "") -> ProbeJudgement:
    """The verdict with waivers for whatever it lost."""
    today = date(2026, 11, 1)
    waivers = [
        Waiver(given.scenario, metric, given.hardware, 0.9, "known", "#1", "Ada", today, line=1)
        for metric in (SPEED, TTFT, STRICT)
    ]
    return verdict(replace(given.waived_by(waivers, today), broken=broken))


DOCUMENTED = {SPEED: DocumentedValue(100.0)}
UNGATED = {"output_throughput_per_gpu": DocumentedValue(100.0)}
NO_BASELINE = (Verdict.NO_BASELINE, "there is no baseline for this probe yet")
OTHER_CPU = (Verdict.NOT_COMPARABLE, "cpu: measured b, baseline c")


@each(
    "entry, documented, expected",
    [
        (None, {}, NO_BASELINE),
        (None, UNGATED, NO_BASELINE),
        (ELSEWHERE, {}, OTHER_CPU),
        # A baseline of other facts is not replaced by a document.
        (ELSEWHERE, DOCUMENTED, OTHER_CPU),
    ],
)
def test_without_a_comparable_reference_nothing_is_claimed(
    entry: Entry | None, documented: dict[str, DocumentedValue], expected: tuple[Verdict, str]
) -> None:
    judged = judge(PROBE, Reference(entry, documented), speeds(10, ttft_median_ms=500))
    assert (judged.verdict, judged.reason) == expected
    assert (judged.judgements, judged.needs_more_runs) == ((), False)


def test_a_probe_without_a_gating_metric_or_a_result_without_it_is_refused() -> None:
    bare = Probe(replace(SCENARIO, gate=GatePolicy((STRICT,))), PROBE.what)
    with pytest.raises(InputError, match="nothing to judge"):
        judge(bare, Reference(BASELINE), LOST)
    with pytest.raises(RunError, match=r"fresh start 1 lacks ttft_median_ms") as raised:
        judge(PROBE, Reference(BASELINE), speeds(100.0))
    assert raised.value.failure == "no_metrics"


def test_broken_output_is_named_beside_the_lost_points() -> None:
    flexible = STRICT.replace("strict-match", "flexible-extract")
    right, wrong = (scored(STRICT, count, 200).answers for count in (200, 20))
    reference = Reference(
        Entry(FACTS, (run("r", metrics={STRICT: 1.0, flexible: 1.0}, answers=right),))
    )
    measured = [Measurement({STRICT: 0.1, flexible: 0.1}, {}, wrong)]
    once = judge(task(STRICT), reference, measured)
    assert (once.verdict, once.needs_more_runs) == (Verdict.INCONCLUSIVE, True)
    assert not once.controls_wanted
    given = assembled(task(STRICT), reference, measured * 2)
    judged, passed = verdict(given), waived(given)
    assert (judged.verdict, passed.verdict) == (Verdict.REGRESSION, Verdict.PASS)
    assert passed.changed == judged.changed != ()
    assert broken_answers({"sums": once}) == broken_answers({"sums": judged})
    assert broken_answers({"sums": judged}) == "BROKEN_OUTPUT in sums"
    assert broken_answers({"sums": passed}) == ""
    assert all("BROKEN_OUTPUT" in one.judgements[0].notes for one in (once, judged))


def test_far_below_a_documented_value_is_a_regression_after_two_starts() -> None:
    first, second = (
        judge(PROBE, Reference(None, DOCUMENTED), speeds(*values, ttft_median_ms=50))
        for values in ([80], [80, 80])
    )
    assert (first.verdict, first.needs_more_runs) == (Verdict.INCONCLUSIVE, True)
    assert (second.verdict, second.needs_more_runs) == (Verdict.REGRESSION, False)
    assert second.judgements[0].reason.startswith("misses the document by more than 10.0 %: ")


def test_scores_without_answers_are_compared_as_scores() -> None:
    metric = "accuracy:gpqa_diamond:accuracy:none"
    same, worse = (
        [Measurement({metric: x, "duration_s": 9.0}, {"questions": 198})] for x in (0.7, 0.4)
    )
    before = run("r", metrics={metric: 0.70, "duration_s": 8.0})
    reference, bare = (Reference(Entry(FACTS, (x,))) for x in (before, replace(before, metrics={})))
    judged = judge(task(metric), reference, same)
    assert (judged.verdict, judged.observed) == (Verdict.PASS, ())  # how long it took says nothing
    assert "margin raised" in judged.judgements[0].notes[0]  # to what 198 questions can show
    once = judge(task(metric), reference, worse)
    assert (once.verdict, once.needs_more_runs) == (Verdict.INCONCLUSIVE, True)
    assert judge(task(metric), reference, worse * 2).verdict == Verdict.REGRESSION
    assert judge(task(metric), bare, same).verdict == Verdict.NO_BASELINE


def test_every_evaluation_of_the_baseline_counts() -> None:
    """Ten questions that the first one missed by chance are no gain of the new build."""
    runs = [
        run(f"r{right}", metrics={STRICT: right / 200}, answers=scored(STRICT, right, 200).answers)
        for right in (180, 190, 185)
    ]
    bare = replace(runs[1], answers={})
    for before in (runs, [bare, *runs]):
        reference = Reference(Entry(FACTS, tuple(before)))
        (judged,) = judge(task(STRICT), reference, [scored(STRICT, 185, 200)]).judgements
        assert judged.baseline == pytest.approx(555 / 600)
        assert judged.change == pytest.approx(0.0)
        assert "1 evaluation against 3 of the baseline" in judged.reason


def test_references_that_took_turns_are_judged_in_turns_beside_earlier_sessions() -> None:
    """Of the first metric with their values; what earlier sessions showed is grouped by session."""
    earlier = [run(name, metrics={SPEED: speed}) for name in "ab" for speed in (99.0, 101.0)]
    reference = replace(Reference(BASELINE, takes_turns=True), earlier=Entry(FACTS, tuple(earlier)))
    given = assembled(PROBE, reference, speeds(99.0, 101.0, 100.0, ttft_median_ms=50.0))
    speed, ttft = (one["earlier"] for one in given.as_record()["tests"])
    assert (speed, ttft) == ([[99.0, 101.0], [99.0, 101.0]], [])
    assert all(one.is_interleaved for one in verdict(given).judgements)


def test_an_anchor_of_other_facts_is_told_and_decides_nothing() -> None:
    anchor = replace(entry(*[104.0] * 5, ttft_median_ms=50.0), fingerprint={**FACTS, "cpu": "old"})
    reference = Reference(BASELINE, anchor=anchor)
    judged = judge(PROBE, reference, speeds(99.5, ttft_median_ms=50))
    assert judged.verdict == Verdict.PASS
    assert judged.notes == ("not compared with the anchor: cpu: measured b, baseline old",)


def test_a_waived_regression_passes_and_the_rest_still_counts() -> None:
    given = assembled(PROBE, Reference(BASELINE, notes=("noted",)), LOST)
    judged, passed = verdict(given), waived(given)
    assert (judged.verdict, passed.verdict) == (Verdict.REGRESSION, Verdict.PASS)
    assert not judged.needs_more_runs
    assert passed.notes == ("noted",)
    assert verdict(given.waived_by([], date(2026, 11, 1))) == judged
    without_ttft = assembled(PROBE, Reference(entry(*[100.0] * 5)), LOST)
    assert waived(without_ttft).verdict == Verdict.NO_BASELINE
    below = assembled(PROBE, Reference(None, DOCUMENTED), LOST)
    assert (verdict(below).verdict, waived(below).verdict) == (Verdict.REGRESSION, Verdict.PASS)


def test_no_waiver_lets_the_speed_of_broken_answers_count() -> None:
    given = assembled(PROBE, Reference(BASELINE), LOST)
    voided = waived(given, "BROKEN_OUTPUT in sums")
    assert (voided.verdict, voided.reason[:13]) == (Verdict.INCONCLUSIVE, "BROKEN_OUTPUT")
    assert verdict(replace(given, broken="BROKEN_OUTPUT in sums")).verdict == Verdict.REGRESSION
