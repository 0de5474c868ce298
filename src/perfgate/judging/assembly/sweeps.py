"""Sweeps: the whole curve of a scenario's points, judged beside each point of it.

A loss too small for any single point shows in their median. Points of one server share its luck,
so a fresh start that measured every point counts as one value, not as many.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from perfgate.core.measured import MeasuredControl
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.core.rule import ControlPolicy, Rule
from perfgate.core.verdict import Verdict, counted
from perfgate.judging.assembly.bands import band_of
from perfgate.judging.assembly.judge_input import JudgeInput
from perfgate.judging.assembly.judgement import Reference, noise_of
from perfgate.judging.assembly.measured import central_value, measured_metrics
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.rules.probe import CurveTest, ProbeJudgement
from perfgate.judging.rules.sweep import FEWEST_POINTS
from perfgate.scenarios.markers import Kind
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Scenario

_Start = TypeVar("_Start")
_Measured = TypeVar("_Measured")


@dataclass(frozen=True)
class SweepProbe:
    """All points of one scenario, as one curve."""

    kind: ClassVar[Kind] = "throughput"
    scenario: Scenario

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> str:
        """Readable name, unique in the suite: ``local-smollm2-serve-sweep``."""
        return f"{self.scenario.id}-{self.label}"

    @property
    def label(self) -> str:
        return "sweep"

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What must be measured: every point."""
        return load_probes(self.scenario)

    def gating_metrics(self) -> tuple[str, ...]:
        """The performance metrics of the scenario's gate."""
        return tuple(one for one in self.scenario.gate.metrics if not is_accuracy(one))


def sweep_probes(scenario: Scenario) -> tuple[SweepProbe, ...]:
    """The curve, where there are points enough and a metric that gates.

    A machine that measures its own reference has none: its noise decides point by point.
    """
    sweep = SweepProbe(scenario)
    if scenario.gate.noise == "measured" or len(sweep.probes) < FEWEST_POINTS:
        return ()
    return (sweep,) if sweep.gating_metrics() else ()


@dataclass(frozen=True)
class Point:
    """One point of a sweep in one session.

    Attributes:
        probe: the point.
        reference: what it is compared with.
        fingerprint: the facts of the measurements that must equal the baseline's.
        measured: number of the fresh start → what it gave there.
        controls: number of the control of the baseline's build → what it gave there; None: that
            build cannot be started.
    """

    probe: Probe
    reference: Reference
    fingerprint: Mapping[str, str]
    measured: Mapping[int, Measurement]
    controls: Mapping[int, Measurement] | None = None


def curve_input(
    sweep: SweepProbe,
    points: Sequence[Point],
    rule: Rule,
    why_no_control: str = "",
    policy: ControlPolicy | None = None,
) -> JudgeInput:
    """All that the verdict of a curve rests on, but for waivers and broken answers.

    Each gating metric is judged on the median over all points (`perfgate.judging.rules.sweep`).
    Only fresh starts that measured every point count, on either side. There is no verdict against
    documents: they report points.

    Args:
        sweep: the curve.
        points: all of its points, in order.
        rule: error rates and the most fresh starts.
        why_no_control: why the baseline's build cannot be started; empty: it can, or nobody asked.
        policy: whether controls are made, and needed; None: as the scenario says.
    """
    given = JudgeInput.of(sweep.scenario, sweep.label, rule)
    entries = [point.reference.entry for point in points if point.reference.entry is not None]
    if len(entries) < len(points):
        why = "a curve is compared with a measured baseline of every point, and one is missing"
        return replace(given, verdict=Verdict.NO_BASELINE, reason=why)
    different = [
        f"{point.probe.label}: {'; '.join(facts)}"
        for point, entry in zip(points, entries, strict=True)
        if (facts := entry.differences(point.fingerprint))
    ]
    if different:
        return replace(given, verdict=Verdict.NOT_COMPARABLE, reason="; ".join(different))
    # Runs without a number of their start cannot be put together point by point.
    before = _of_all_points(
        [
            {(run.run, run.start): run for run in entry.runs if run.start is not None}
            for entry in entries
        ]
    )
    if not before:
        why = "no fresh start of the baseline measured every point of the sweep"
        return replace(given, verdict=Verdict.NO_BASELINE, reason=why)
    now = _of_all_points([point.measured for point in points])
    if not now:
        why = "no fresh start measured every point of the sweep"
        return replace(given, verdict=Verdict.INCONCLUSIVE, reason=why)
    controlled = [point.controls for point in points if point.controls is not None]
    controls = _of_all_points(controlled) if len(controlled) == len(points) else None
    tests = [
        CurveTest(
            metric,
            band_of(metric, sweep.scenario),
            [[run.metrics[metric] for run in runs] for runs in before],
            [[one.metrics[metric] for one in measured] for measured in now],
            noise_of(metric, sweep.scenario, points[0].reference.noise),
            len({run.run for runs in before for run in runs[:1]}),
            controls=_values(metric, controls),
            policy=policy or sweep.scenario.gate.control,
            why_no_control=why_no_control,
        )
        for metric in sweep.gating_metrics()
        if all(metric in run.metrics for runs in before for run in runs)
    ]
    if not tests:
        why = "the baseline has no metric of the gate"
        return replace(given, verdict=Verdict.NO_BASELINE, reason=why)
    return replace(given, tests=tests)


def _of_all_points(points: Sequence[Mapping[_Start, _Measured]]) -> list[list[_Measured]]:
    """The fresh starts that measured every point, in order: for each, its points."""
    first, *others = points
    complete = [start for start in first if all(start in measured for measured in others)]
    return [[measured[start] for measured in points] for start in complete]


def _values(
    metric: str, starts: Sequence[Sequence[Measurement]] | None
) -> list[list[float]] | None:
    """The metric at every point, for each start that has it there; None: there are no starts."""
    if starts is None:
        return None
    return [
        [one.metrics[metric] for one in points]
        for points in starts
        if all(metric in one.metrics for one in points)
    ]


def curve_measurements(sweep: SweepProbe, points: Sequence[Point]) -> tuple[Measurement, ...]:
    """The curve as measurements: the gating metrics, each the geometric mean over all points.

    Args:
        sweep: the curve.
        points: all of its points.

    Returns:
        one per fresh start that measured every point.
    """
    starts = [
        [one.metrics for one in measured]
        for measured in _of_all_points([point.measured for point in points])
    ]
    return tuple(
        Measurement(
            {
                metric: central_value(metric, [one[metric] for one in metrics])
                for metric in sweep.gating_metrics()
                if all(metric in one for one in metrics)
            }
        )
        for metrics in starts
    )


def sweep_outcome(
    sweep: SweepProbe,
    outcome: Callable[[Probe], Outcome],
    judged: Callable[[], ProbeJudgement],
    again: Callable[[Sequence[Probe]], bool],
    measured: Callable[[], Sequence[Measurement]],
    controls: Callable[[ProbeJudgement], tuple[MeasuredControl, ...]] = lambda _: (),
) -> Outcome:
    """What becomes of a curve.

    Args:
        sweep: the curve.
        outcome: what became of a point.
        judged: the curve judged on all that is measured so far.
        again: makes the starts of all these points that the curve wants next, of any build; False
            when none is left.
        measured: the curve's means, one per fresh start that measured every point.
        controls: the other builds that a verdict rests on.
    """
    while True:
        ends = [outcome(probe) for probe in sweep.probes]
        failed = next((end for end in ends if end.error is not None), None)
        if failed is not None:
            return failed.failing(sweep)
        found = judged()
        if not found.needs_more_runs or not again(sweep.probes):
            break
    measurements = measured()
    used = max((one.runs_used for one in found.judgements), default=0) or len(measurements)
    return ends[0].of_same_starts(
        sweep,
        found.verdict,
        judgements=found.judgements,
        measurements=measurements[:used],
        compared_with=f"{ends[0].compared_with}; the median over "
        + counted(len(sweep.probes), "point"),
        reason=found.reason,
        notes=found.notes,
        measured=measured_metrics(measurements, found.judgements),
        controls=controls(found),
    )
