"""Sweeps: the curve is judged on fresh starts that measured every point, and on nothing else."""

import math
from dataclasses import replace
from typing import Any

import building
import pytest
from refusals import refused
from starts_made import SPEED, entry_of, speeds
from tables import each

from perfgate.core.files.paths import scenario_folders
from perfgate.core.verdict import Rule, Verdict
from perfgate.judging.assembly.judge_input import ProbeJudgement, judge
from perfgate.judging.assembly.judgement import ControlStarts, ProbeEvidence, Reference
from perfgate.judging.assembly.sweeps import (
    MOST_COMPARISONS,
    SweepProbe,
    curve_input,
    curve_outcome,
    gated_comparisons,
    require_small_family,
    sweep_probes,
)
from perfgate.plan.toolchain import registered
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import GatePolicy, Scenario


def scenario(*points: int, **gate: Any) -> Scenario:
    workload = replace(building.SCENARIO.workload, concurrency=points)
    policy = replace(GatePolicy((SPEED, building.SUMS)), **gate)
    return replace(building.SCENARIO, gate=policy, workload=workload)


SCENARIO = scenario(1, 2, 4, 8)
SWEEP = SweepProbe(SCENARIO)
C1, C2, C4, C8 = load_probes(SCENARIO)
# Baselines: name of the run → one value per fresh start of it.
STEADY = {"r": [100.0, 100.2, 99.8, 100.1, 99.9]}


def point(probe, before, now, controls=None, cpu="b") -> ProbeEvidence:
    """What is known of a point; `now` and `controls`: number of the start → what it gave."""
    entries = [entry_of(*speeds(*ones), run=run) for run, ones in (before or {}).items()]
    runs = tuple(run for one in entries for run in one.runs)
    reference = Reference(replace(entries[0], runs=runs) if entries else None)
    measured, others = (
        dict(zip(given, speeds(*given.values()), strict=True)) for given in (now, controls or {})
    )
    known = ControlStarts(measured={} if controls is None else {"baseline": others})
    return ProbeEvidence(probe, reference, {"content": "a", "cpu": cpu}, measured, known)


def alike(before, now, controls=None) -> list[ProbeEvidence]:
    return [point(probe, before, now, controls) for probe in (C1, C2, C4, C8)]


def judged(*points: ProbeEvidence) -> ProbeJudgement:
    return judge(curve_input(SWEEP, points, Rule()))


@each(
    "made, has_one",
    [
        (SCENARIO, True),
        (scenario(1, 2, 4), False),
        (scenario(1, 2, 4, 8, noise="measured"), False),
        (scenario(1, 2, 4, 8, metrics=(building.SUMS,)), False),
    ],
)
def test_only_a_sweep_of_several_points_has_a_curve(made, has_one) -> None:
    assert [one.id for one in sweep_probes(made)] == ["small-serve-sweep"] * has_one


SLOW = {1: 97.0, 2: 97.0, 5: 97.0}
PARTIAL = [point(C1, STEADY, SLOW, {3: 97.0}), *alike(STEADY, SLOW, {3: 97.0, 4: 97.0})[1:]]


@each(
    "points, verdict, used, wanted, mark",
    [
        (alike(STEADY, {1: 97.0, 2: 97.1}), "REGRESSION", 0, (), "NO_CONTROL"),
        (alike(STEADY, {1: 100.0}), "PASS", 0, (), ""),
        # Controls of every point are the curve's controls, and no others.
        (alike(STEADY, SLOW, {}), "INCONCLUSIVE", 0, {"baseline"}, ""),
        (alike(STEADY, SLOW, {3: 97.0, 4: 97.0}), "PASS", 2, (), "HOST_SHIFT"),
        (alike(STEADY, SLOW, {3: 100.0, 4: 100.0}), "REGRESSION", 2, (), ""),
        (PARTIAL, "INCONCLUSIVE", 1, {"baseline"}, ""),
        ([point(C1, STEADY, SLOW), *PARTIAL[1:]], "REGRESSION", 0, (), "NO_CONTROL"),
    ],
)
def test_a_loss_of_all_points_is_that_of_the_curve(points, verdict, used, wanted, mark) -> None:
    found = judged(*points)
    (judgement,) = found.judgements
    assert (found.verdict, found.controls_wanted) == (verdict, set(wanted))
    assert (judgement.controls_used, judgement.mark) == (used, mark)
    change = points[0].values(SPEED)[0] / 100 - 1
    assert judgement.change == pytest.approx(change, abs=0.001)


def test_starts_that_did_not_measure_every_point_do_not_count() -> None:
    others = alike(STEADY, {1: 100.0, 2: 1.0})[1:]
    found = judged(point(C1, STEADY, {1: 100.0, 3: 1.0}), *others)
    assert (found.verdict, found.judgements[0].runs_used) == (Verdict.PASS, 1)
    # Of the baseline's too, matched by run and number: the 1.0 of c1 has no partner.
    c1, rest = {"r1": [100.0, 100.0], "r2": [1.0]}, {"r1": [100.0, 100.0]}
    found = judged(point(C1, c1, {1: 100.0}), *alike(rest, {1: 100.0})[1:])
    assert (found.verdict, found.judgements[0].baseline) == (Verdict.PASS, pytest.approx(100.0))


@each(
    "first, other, verdict, reason",
    [
        (STEADY, point(C4, None, {1: 1.0}), "NO_BASELINE", "missing"),
        (STEADY, point(C4, STEADY, {1: 1.0}, cpu="x"), "NOT_COMPARABLE", "c4: cpu: measured x"),
        ({"r1": [1.0]}, point(C4, {"r2": [1.0]}, {1: 1.0}), "NO_BASELINE", "no fresh start of the"),
        (STEADY, point(C4, STEADY, {2: 1.0}), "INCONCLUSIVE", "no fresh start measured every"),
    ],
)
def test_without_a_comparable_curve_nothing_is_claimed(first, other, verdict, reason) -> None:
    found = judged(point(C1, first, {1: 1.0}), other)
    assert (found.verdict, found.needs_more_runs) == (verdict, verdict == "INCONCLUSIVE")
    assert reason in found.reason


def test_a_curve_is_measured_by_the_starts_that_measured_every_point() -> None:
    c1 = point(C1, STEADY, {1: 90.0, 2: 100.0, 4: 90.0, 5: 1.0})
    measured = [c1, point(C4, STEADY, {1: 160.0, 4: 40.0, 5: 1.0})]
    passed = ProbeJudgement(Verdict.PASS, (building.judgement(verdict=Verdict.PASS, runs_used=2),))
    first = building.outcome(probe=C1)
    found = curve_outcome(SWEEP, passed, measured, first)
    assert [round(one.metrics[SPEED], 9) for one in found.measurements] == [120, 60]
    (mean,) = found.measured
    assert (mean.n, round(mean.value, 9)) == (2, round(math.sqrt(120 * 60), 9))
    assert (found.probe, found.build) == (SWEEP, first.build)
    assert found.compared_with.endswith("5 fresh starts; the median over 2 points")
    undecided = curve_outcome(SWEEP, ProbeJudgement(Verdict.INCONCLUSIVE), measured, first)
    assert ([one.n for one in undecided.measured], len(undecided.measurements)) == ([3], 3)


ONE = replace(building.SCENARIO, gate=GatePolicy((SPEED, building.SUMS)))


def test_a_speed_counts_at_each_point_against_baseline_and_anchor() -> None:
    assert gated_comparisons(ONE) == 4  # two points; an accuracy has constants of its own
    assert gated_comparisons(SCENARIO) == 9  # and the curve
    # A machine that measures itself has rates of its own.
    assert gated_comparisons(replace(ONE, gate=replace(ONE.gate, noise="measured"))) == 0


def test_from_the_most_on_a_suite_is_refused_hardware_by_hardware() -> None:
    most = [ONE] * (MOST_COMPARISONS // 4)
    require_small_family(most)
    other = replace(ONE, hardware=replace(ONE.hardware, gpu="H200"))
    require_small_family([*most, other])
    refused(require_small_family, [*most, ONE], match="found: 504 comparisons")
    scenarios = load_suite(scenario_folders(), registered()).scenarios
    assert sum(map(gated_comparisons, scenarios)) > 100
    require_small_family(scenarios)
