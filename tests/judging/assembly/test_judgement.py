"""A probe's verdict: the worst of its gating metrics, against a comparable baseline only."""

from dataclasses import replace
from datetime import date

import building
import pytest
from tables import each

from perfgate.baselines import BaselineRun, Entry
from perfgate.baselines.waivers import Waiver
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Measurement
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.judge_input import JudgeInput, broken_answers
from perfgate.judging.assembly.judge_input import judge as verdict
from perfgate.judging.assembly.judgement import ProbeEvidence, Reference, probe_input
from perfgate.judging.rules.probe import ProbeJudgement
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import GatePolicy

STRICT = "accuracy:sums:exact_match:strict-match"
judge = building.judged
FACTS = {"content": "a", "cpu": "b"}
SCENARIO = replace(
    building.SCENARIO, gate=GatePolicy(("output_throughput", "ttft_median_ms"), noise="prior")
)
PROBE = load_probes(SCENARIO)[0]


def entry(values: list[float], **other: list[float]) -> Entry:
    columns = {"output_throughput": values, **other}
    return Entry(
        FACTS,
        tuple(
            BaselineRun("r", "2026-01-01T00:00:00+00:00", {n: c[i] for n, c in columns.items()})
            for i in range(len(values))
        ),
    )


BASELINE = entry([100.0, 101, 99, 100, 100], ttft_median_ms=[50.0, 51, 49, 50, 50])
ELSEWHERE = replace(BASELINE, fingerprint={**FACTS, "cpu": "c"})


def new(*pairs: tuple[float, float]) -> list[Measurement]:
    return [Measurement({"output_throughput": a, "ttft_median_ms": b}) for a, b in pairs]


def assembled(probe: Probe, reference: Reference, starts: list[Measurement]) -> JudgeInput:
    measured = dict(enumerate(starts, start=1))
    return probe_input(ProbeEvidence(probe, reference, FACTS, measured), Rule())


DOCUMENTED = {"output_throughput": DocumentedValue(100.0)}
UNGATED = {"output_throughput_per_gpu": DocumentedValue(100.0)}
OTHER_CPU = "cpu: measured b, baseline c"


@each(
    "entry, documented, verdict, reason",
    [
        (None, {}, "NO_BASELINE", "there is no baseline for this probe yet"),
        (None, UNGATED, "NO_BASELINE", "there is no baseline for this probe yet"),
        (ELSEWHERE, {}, "NOT_COMPARABLE", OTHER_CPU),
        # A baseline of other facts is not replaced by a document.
        (ELSEWHERE, DOCUMENTED, "NOT_COMPARABLE", OTHER_CPU),
    ],
)
def test_without_a_comparable_reference_nothing_is_claimed(
    entry: Entry | None, documented: dict[str, DocumentedValue], verdict: str, reason: str
) -> None:
    judged = judge(PROBE, Reference(entry, documented), new((10, 500)), FACTS, Rule())
    assert (judged.verdict, judged.reason) == (verdict, reason)
    assert (judged.judgements, judged.needs_more_runs) == ((), False)


def test_a_proved_regression_asks_for_no_more_starts_for_other_metrics() -> None:
    judged = judge(PROBE, Reference(BASELINE), new((50, 58), (50, 57)), FACTS, Rule())
    assert judged.verdict == Verdict.REGRESSION
    assert not judged.needs_more_runs


def test_a_probe_without_a_gating_metric_is_refused() -> None:
    bare = Probe(
        replace(SCENARIO, gate=GatePolicy(("accuracy:gsm8k:exact_match:strict-match",))),
        PROBE.what,
    )
    with pytest.raises(InputError, match="nothing to judge"):
        judge(bare, Reference(BASELINE), new((100, 50)), FACTS, Rule())


def test_broken_output_is_named_beside_the_lost_points() -> None:
    strict, flexible = STRICT, STRICT.replace("strict-match", "flexible-extract")
    scenario = replace(SCENARIO, gate=GatePolicy((strict,)))
    accuracy = replace(building.SCENARIO.accuracy[0], task="sums")
    right = {strict: {f"q{n}": True for n in range(200)}}
    wrong = {strict: {f"q{n}": n < 20 for n in range(200)}}
    reference = Entry(
        FACTS,
        (BaselineRun("r", "2026-01-01T00:00:00+00:00", {strict: 1.0, flexible: 1.0}, right),),
    )
    measured = [Measurement({strict: 0.1, flexible: 0.1}, {}, wrong)]
    once = judge(Probe(scenario, accuracy), Reference(reference), measured, FACTS, Rule())
    assert (once.verdict, once.needs_more_runs) == (Verdict.INCONCLUSIVE, True)
    assert not once.controls_wanted
    probe = Probe(scenario, accuracy)
    given = assembled(probe, Reference(reference), measured * 2)
    judged, passed = verdict(given), waived(given)
    assert (judged.verdict, passed.verdict) == (Verdict.REGRESSION, Verdict.PASS)
    assert passed.changed == judged.changed != ()
    assert broken_answers({"sums": once}) == broken_answers({"sums": judged})
    assert broken_answers({"sums": judged}) == "BROKEN_OUTPUT in sums"
    assert broken_answers({"sums": passed}) == ""
    for one in (once, judged):
        assert "BROKEN_OUTPUT" in one.judgements[0].notes


# Without a baseline: what is documented is judged.


def test_far_below_a_documented_value_is_a_regression_after_two_starts() -> None:
    reference = Reference(None, DOCUMENTED)
    first = judge(PROBE, reference, new((80, 50)), FACTS, Rule())
    assert (first.verdict, first.needs_more_runs) == (Verdict.INCONCLUSIVE, True)
    second = judge(PROBE, reference, new((80, 50), (80, 50)), FACTS, Rule())
    assert (second.verdict, second.needs_more_runs) == (Verdict.REGRESSION, False)
    assert second.judgements[0].reason.startswith("misses the document by more than 10.0 %: ")


def test_scores_without_answers_are_compared_as_scores() -> None:
    metric = "accuracy:gpqa_diamond:accuracy:none"
    scenario = replace(SCENARIO, gate=GatePolicy((metric,)))
    probe = Probe(scenario, replace(building.SCENARIO.accuracy[0], task="gpqa_diamond"))
    run = BaselineRun("r", "2026-01-01T00:00:00+00:00", {metric: 0.70})
    same = [Measurement({metric: 0.70}, {"questions": 198})]
    worse = [Measurement({metric: 0.40}, {"questions": 198})]
    reference, bare = Reference(Entry(FACTS, (run,))), replace(run, metrics={})
    judged = judge(probe, reference, same, FACTS, Rule())
    assert judged.verdict == Verdict.PASS
    assert "margin raised" in judged.judgements[0].notes[0]  # to what 198 questions can show
    once = judge(probe, reference, worse, FACTS, Rule())
    assert (once.verdict, once.needs_more_runs) == (Verdict.INCONCLUSIVE, True)
    twice = judge(probe, reference, worse * 2, FACTS, Rule())
    assert twice.verdict == Verdict.REGRESSION
    unknown = judge(probe, Reference(Entry(FACTS, (bare,))), same, FACTS, Rule())
    assert unknown.verdict == Verdict.NO_BASELINE


def test_every_evaluation_of_the_baseline_counts() -> None:
    """Ten questions that the first one missed by chance are no gain of the new build."""
    metric = "accuracy:sums:exact_match:strict-match"
    scenario = replace(SCENARIO, gate=GatePolicy((metric,)))
    probe = Probe(scenario, replace(building.SCENARIO.accuracy[0], task="sums"))
    runs = tuple(
        BaselineRun(
            f"r{right}", "2026-01-01T00:00:00+00:00", {metric: right / 200}, {metric: given}
        )
        for right in (180, 190, 185)
        for given in [{f"q{n}": n < right for n in range(200)}]
    )
    now = [Measurement({metric: 0.925}, {}, {metric: {f"q{n}": n < 185 for n in range(200)}})]
    judged = judge(probe, Reference(Entry(FACTS, runs)), now, FACTS, Rule()).judgements[0]
    assert judged.baseline == pytest.approx(555 / 600)
    assert judged.change == pytest.approx(0.0)
    assert "1 evaluation against 3 of the baseline" in judged.reason
    bare = replace(runs[1], answers={})
    judged = judge(probe, Reference(Entry(FACTS, (bare, *runs))), now, FACTS, Rule()).judgements[0]
    assert "against 3 of the baseline" in judged.reason


# A gating metric that is missing is no pass.


def test_a_result_without_a_gating_metric_is_an_error() -> None:
    lacking = [Measurement({"output_throughput": 100.0})]
    with pytest.raises(RunError, match=r"fresh start 1 lacks ttft_median_ms") as raised:
        judge(PROBE, Reference(BASELINE), lacking, FACTS, Rule())
    assert raised.value.failure == "no_metrics"


# The anchor: what crept in since the last release.

ANCHOR = entry([104.0] * 5, ttft_median_ms=[50.0] * 5)


def test_an_anchor_of_other_facts_is_told_and_decides_nothing() -> None:
    other = replace(ANCHOR, fingerprint={**FACTS, "cpu": "old"})
    judged = judge(PROBE, Reference(BASELINE, anchor=other), new((99.5, 50)), FACTS, Rule())
    assert judged.verdict == Verdict.PASS
    assert judged.notes == ("not compared with the anchor: cpu: measured b, baseline old",)


# Several metrics, measured noise, metrics that do not gate.


def waived(given: JudgeInput, broken: str = "") -> ProbeJudgement:
    """The verdict with waivers for whatever it lost."""
    today = date(2026, 11, 1)
    waivers = [
        Waiver(given.scenario, metric, given.hardware, 0.9, "known", "#1", "Ada", today, line=1)
        for metric in ("output_throughput", "ttft_median_ms", STRICT)
    ]
    return verdict(replace(given.waived_by(waivers, today), broken=broken))


def test_a_waived_regression_passes_and_the_rest_still_counts() -> None:
    slow = new((50, 50), (50, 50))
    given = assembled(PROBE, Reference(BASELINE, notes=("noted",)), slow)
    judged, passed = verdict(given), waived(given)
    assert (judged.verdict, passed.verdict) == (Verdict.REGRESSION, Verdict.PASS)
    assert passed.notes == ("noted",)
    assert verdict(given.waived_by([], date(2026, 11, 1))) == judged
    without_ttft = assembled(PROBE, Reference(entry([100.0] * 5)), slow)
    assert waived(without_ttft).verdict == Verdict.NO_BASELINE
    below = assembled(PROBE, Reference(None, DOCUMENTED), slow)
    assert (verdict(below).verdict, waived(below).verdict) == (Verdict.REGRESSION, Verdict.PASS)


def test_no_waiver_lets_the_speed_of_broken_answers_count() -> None:
    given = assembled(PROBE, Reference(BASELINE), new((50, 50), (50, 50)))
    voided = waived(given, "BROKEN_OUTPUT in sums")
    assert (voided.verdict, voided.reason[:13]) == (Verdict.INCONCLUSIVE, "BROKEN_OUTPUT")
    assert verdict(replace(given, broken="BROKEN_OUTPUT in sums")).verdict == Verdict.REGRESSION
