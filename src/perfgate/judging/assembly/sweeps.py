"""Sweeps: the whole curve of a scenario's points, judged beside each point of it.

A loss too small for any single point shows in their median. Points of one server share its luck,
so a fresh start that measured every point counts as one value, not as many.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from perfgate.baselines import BaselineRun
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Rule, Verdict, counted
from perfgate.judging.assembly.bands import band_of, noise_of
from perfgate.judging.assembly.judge_input import JudgeInput, Outcome, ProbeJudgement
from perfgate.judging.assembly.judgement import ProbeEvidence
from perfgate.judging.assembly.measured import central_value, measured_metrics
from perfgate.judging.rules.performance import FEWEST_POINTS, CurveTest
from perfgate.scenarios.markers import Kind
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Scenario

# Each costs about 0.004 % of false alarms: from here on a release run has more than the one in a
# hundred that is promised (statistics §3).
MOST_COMPARISONS = 500

_Start = TypeVar("_Start")
_Measured = TypeVar("_Measured")


@dataclass(frozen=True)
class SweepProbe:
    """All points of one scenario, as one curve."""

    kind: ClassVar[Kind] = "throughput"
    label: ClassVar[str] = "sweep"
    scenario: Scenario

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> str:
        """Readable name, unique in the suite: ``local-smollm2-serve-sweep``."""
        return f"{self.scenario.id}-{self.label}"

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What must be measured: every point."""
        return load_probes(self.scenario)

    def gating_metrics(self) -> tuple[str, ...]:
        """The performance metrics of the scenario's gate."""
        return tuple(metric for metric in self.scenario.gate.metrics if not is_accuracy(metric))


def sweep_probes(scenario: Scenario) -> tuple[SweepProbe, ...]:
    """The curve, where there are points enough and a metric that gates.

    A machine that measures its own reference has none: its noise decides point by point.
    """
    sweep = SweepProbe(scenario)
    if scenario.gate.noise == "measured" or len(sweep.probes) < FEWEST_POINTS:
        return ()
    return (sweep,) if sweep.gating_metrics() else ()


def gated_comparisons(scenario: Scenario) -> int:
    """The gated comparisons of speeds: metric × point × {baseline, anchor}, and the curve.

    A machine that measures its own reference has no anchor, and rates of its own.
    """
    if scenario.gate.noise == "measured":
        return 0
    speeds = sum(not is_accuracy(metric) for metric in scenario.gate.metrics)
    curves = sum(len(probe.gating_metrics()) for probe in sweep_probes(scenario))
    return 2 * speeds * len(load_probes(scenario)) + curves


def require_small_family(scenarios: Iterable[Scenario]) -> None:
    """Refuse a suite that gates so much on one hardware that its false alarms add up.

    Args:
        scenarios: all of the suite, whatever is selected of it.

    Raises:
        InputError: more than `MOST_COMPARISONS` on one GPU.
    """
    counts: Counter[str] = Counter()
    for scenario in scenarios:
        counts[scenario.hardware.gpu] += gated_comparisons(scenario)
    for gpu, count in counts.items():
        if count > MOST_COMPARISONS:
            raise InputError(
                f"the suite gates too many speeds on {gpu}: of release runs without any change, "
                "more than one in a hundred would end in a REGRESSION",
                found=f"{count} comparisons",
                expected=f"at most {MOST_COMPARISONS}: metrics × points × (baseline and anchor), "
                "and curves",
                hint="gate fewer metrics or points (gate.metrics); the others are still reported",
            )


def curve_input(sweep: SweepProbe, points: Sequence[ProbeEvidence], rule: Rule) -> JudgeInput:
    """All that the verdict of a curve rests on, but for waivers and broken answers.

    Each gating metric is judged on the median over all points (`rules.performance.CurveTest`).
    Only fresh starts that measured every point count, on either side. There is no verdict against
    documents: they report points.

    Args:
        sweep: the curve.
        points: of each of its points, in order.
        rule: error rates and the most fresh starts.
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
    builds = points[0].controls
    of_points = [point.controls.measured.get("baseline") for point in points]
    controlled = [starts for starts in of_points if starts is not None]
    controls = _of_all_points(controlled) if len(controlled) == len(points) else None
    tests = [
        CurveTest(
            metric,
            band_of(metric, sweep.scenario),
            _values(metric, before),
            _values(metric, now),
            noise_of(metric, sweep.scenario, points[0].reference.noise),
            len({run.run for runs in before for run in runs[:1]}),
            controls=None if controls is None else _values(metric, controls),
            policy=builds.policy,
            why_no_control=builds.skip_reasons.get("baseline", ""),
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
    metric: str, starts: Sequence[Sequence[Measurement | BaselineRun]]
) -> list[list[float]]:
    """The metric at every point, for each start that has it there."""
    return [
        [point.metrics[metric] for point in points]
        for points in starts
        if all(metric in one.metrics for one in points)
    ]


def curve_outcome(
    sweep: SweepProbe, judged: ProbeJudgement, points: Sequence[ProbeEvidence], first: Outcome
) -> Outcome:
    """What becomes of a curve that was measured.

    Its values are those of the gating metrics, each the geometric mean over all points, one per
    fresh start that measured every point.

    Args:
        sweep: the curve.
        judged: its verdict.
        points: of each of its points, in order.
        first: what became of the first point.
    """
    measurements = [
        Measurement(
            {
                metric: central_value(metric, [one.metrics[metric] for one in start])
                for metric in sweep.gating_metrics()
                if all(metric in one.metrics for one in start)
            }
        )
        for start in _of_all_points([point.measured for point in points])
    ]
    used = max((judgement.runs_used for judgement in judged.judgements), default=0) or len(
        measurements
    )
    return first.of_same_starts(
        sweep,
        **judged.of_outcome(),
        measurements=measurements[:used],
        compared_with=f"{first.compared_with}; the median over {counted(len(points), 'point')}",
        measured=measured_metrics(measurements, judged.judgements),
    )
