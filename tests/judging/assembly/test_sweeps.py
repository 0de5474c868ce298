"""Sweeps: the curve is judged on fresh starts that measured every point, and on nothing else."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import building
import pytest

from perfgate.baselines import BaselineRun, Entry
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.judge_input import judge
from perfgate.judging.assembly.judgement import ControlStarts, ProbeEvidence, Reference
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.assembly.sweeps import (
    SweepProbe,
    curve_input,
    curve_measurements,
    sweep_outcome,
    sweep_probes,
)
from perfgate.judging.rules.probe import ProbeJudgement
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import GatePolicy, Scenario

SCENARIO = replace(
    building.SCENARIO,
    gate=GatePolicy(("output_throughput", building.SUMS)),
    workload=replace(building.SCENARIO.workload, concurrency=(1, 2, 4, 8)),  # type: ignore[type-var]
)
SWEEP = SweepProbe(SCENARIO)
C1, C2, C4, C8 = load_probes(SCENARIO)


def entry(values: Mapping[str, list[float]]) -> Entry:
    """Name of the run → one value per fresh start of it."""
    return Entry(
        {"cpu": "a"},
        tuple(
            BaselineRun(
                run, "2026-11-01T00:00:00+00:00", {"output_throughput": value}, start=number
            )
            for run, found in values.items()
            for number, value in enumerate(found, start=1)
        ),
    )


def starts(values: Mapping[int, float]) -> dict[int, Measurement]:
    """Number of the start → what it gave."""
    return {start: Measurement({"output_throughput": value}) for start, value in values.items()}


def point(
    probe: Probe,
    before: Mapping[str, list[float]] | None,
    now: Mapping[int, float],
    cpu: str = "a",
    *,
    controls: Mapping[int, float] | None = None,
) -> ProbeEvidence:
    reference = Reference(None if before is None else entry(before))
    known = {} if controls is None else {"baseline": starts(controls)}
    return ProbeEvidence(probe, reference, {"cpu": cpu}, starts(now), ControlStarts(measured=known))


def points(
    before: Mapping[str, list[float]],
    now: Mapping[int, float],
    controls: Mapping[int, float] | None = None,
) -> list[ProbeEvidence]:
    """All four points alike."""
    return [point(probe, before, now, controls=controls) for probe in (C1, C2, C4, C8)]


STEADY = {"r": [100.0, 100.2, 99.8, 100.1, 99.9]}


def with_points(concurrency: tuple[int, ...]) -> Scenario:
    workload = replace(SCENARIO.workload, concurrency=concurrency)  # type: ignore[type-var]
    return replace(SCENARIO, workload=workload)


def judge_curve(given: list[ProbeEvidence]) -> ProbeJudgement:
    return judge(curve_input(SWEEP, given, Rule()))


def test_only_a_sweep_of_several_points_has_a_curve() -> None:
    assert [one.id for one in sweep_probes(SCENARIO)] == ["small-serve-sweep"]
    for few in ((4,), (1, 4), (1, 2, 4)):
        assert sweep_probes(with_points(few)) == ()
    own_noise = replace(SCENARIO, gate=replace(SCENARIO.gate, noise="measured"))
    assert sweep_probes(own_noise) == ()
    only_accuracy = replace(SCENARIO, gate=GatePolicy((building.SUMS,)))
    assert sweep_probes(only_accuracy) == ()


def test_a_loss_of_all_points_is_that_of_the_curve() -> None:
    judged = judge_curve(points(STEADY, {1: 97.0, 2: 97.1}))
    assert judged.verdict == Verdict.REGRESSION
    assert judged.judgements[0].change == pytest.approx(-0.0295, abs=0.001)
    judged = judge_curve(points(STEADY, {1: 100.0}))
    assert (judged.verdict, judged.needs_more_runs) == (Verdict.PASS, False)


def test_controls_of_every_point_are_the_curves_controls() -> None:
    slow = {1: 97.0, 2: 97.0, 5: 97.0}
    wanted = judge_curve(points(STEADY, slow, {}))
    assert wanted.controls_wanted == {"baseline"}
    host = judge_curve(points(STEADY, slow, {3: 97.0, 4: 97.0}))
    assert (host.verdict, host.judgements[0].mark) == (Verdict.PASS, "HOST_SHIFT")
    build = judge_curve(points(STEADY, slow, {3: 100.0, 4: 100.0}))
    assert build.verdict == Verdict.REGRESSION
    partial = points(STEADY, slow, {3: 97.0, 4: 97.0})
    partial[0] = point(C1, STEADY, slow, controls={3: 97.0})
    judged = judge_curve(partial)
    assert (judged.judgements[0].controls_used, judged.controls_wanted) == (1, {"baseline"})


def test_starts_that_did_not_measure_every_point_do_not_count() -> None:
    some = [
        point(C1, STEADY, {1: 100.0, 3: 1.0}),
        *points(STEADY, {1: 100.0, 2: 1.0})[1:],
    ]
    judged = judge_curve(some)
    assert (judged.verdict, judged.judgements[0].runs_used) == (Verdict.PASS, 1)
    none = [point(C1, STEADY, {1: 100.0}), *points(STEADY, {2: 100.0})[1:]]
    judged = judge_curve(none)
    assert (judged.verdict, judged.needs_more_runs) == (Verdict.INCONCLUSIVE, True)


def test_the_baselines_starts_are_matched_by_run_and_number() -> None:
    """The third value of c1 has no partner: taking it would compare one point with others."""
    c1, others = {"r1": [100.0, 100.0], "r2": [1.0]}, {"r1": [100.0, 100.0]}
    judged = judge_curve([point(C1, c1, {1: 100.0}), *points(others, {1: 100.0})[1:]])
    assert judged.verdict == Verdict.PASS
    assert judged.judgements[0].baseline == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("given", "verdict", "reason"),
    [
        ([point(C1, STEADY, {1: 100.0}), point(C4, None, {1: 100.0})], "NO_BASELINE", "missing"),
        (
            [point(C1, STEADY, {1: 1.0}), point(C4, STEADY, {1: 1.0}, "b")],
            "NOT_COMPARABLE",
            "c4: cpu: measured b, baseline a",
        ),
        (
            [point(C1, {"r1": [100.0]}, {1: 1.0}), point(C4, {"r2": [100.0]}, {1: 1.0})],
            "NO_BASELINE",
            "no fresh start of the baseline",
        ),
    ],
)
def test_without_a_comparable_curve_nothing_is_claimed(
    given: list[ProbeEvidence], verdict: str, reason: str
) -> None:
    judged = judge_curve(given)
    assert judged.verdict == verdict
    assert reason in judged.reason


def test_the_outcome_asks_for_starts_of_all_points_until_it_is_decided() -> None:
    asked: list[int] = []
    answers = [
        ProbeJudgement(Verdict.INCONCLUSIVE, needs_more_runs=True),
        ProbeJudgement(Verdict.PASS, (building.judgement(verdict=Verdict.PASS, runs_used=2),)),
    ]

    def outcome(probe: Probe) -> Outcome:
        return building.outcome(probe=probe)

    def again(probes: object) -> bool:
        asked.append(len(list(probes)))  # type: ignore[call-overload]
        return True

    means = [Measurement({"output_throughput": value}) for value in (90.0, 160.0, 1.0)]
    found = sweep_outcome(SWEEP, outcome, lambda: answers[len(asked)], again, lambda: means)
    assert (asked, found.verdict, len(found.measurements)) == ([4], Verdict.PASS, 2)
    (measured,) = found.measured
    assert (measured.values, round(measured.value, 9)) == ((90.0, 160.0), 120.0)
    assert found.compared_with.endswith("5 fresh starts; the median over 4 points")
    undecided = sweep_outcome(SWEEP, outcome, lambda: answers[0], lambda _: False, lambda: means)
    assert undecided.verdict == Verdict.INCONCLUSIVE
    assert [one.n for one in undecided.measured] == [3]
    assert len(undecided.measurements) == 3


def test_a_point_that_failed_fails_the_curve_with_its_cause() -> None:
    error = RunError("oom", "out of memory")
    failed = building.outcome(verdict=Verdict.ERROR, error=error, judgements=(), folder=Path("/r"))
    found = sweep_outcome(
        SWEEP,
        lambda _: failed,
        lambda: ProbeJudgement(Verdict.PASS),
        lambda _: False,
        lambda: [],
    )
    assert (found.verdict, found.error) == (Verdict.ERROR, error)


def test_a_curve_is_measured_by_the_starts_that_measured_every_point() -> None:
    measured = [
        point(C1, STEADY, {1: 90.0, 2: 100.0, 4: 90.0}),
        point(C4, STEADY, {1: 160.0, 4: 40.0}),
    ]
    found = curve_measurements(SWEEP, measured)
    assert [round(one.metrics["output_throughput"], 9) for one in found] == [120.0, 60.0]
