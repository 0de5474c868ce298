"""Sweep: the whole curve of a scenario's points, judged as one value a fresh start.

Points of one server share its luck, so they are averaged on the log scale and never counted as
independent evidence. Each point is judged beside this by `perfgate.gate.performance`.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric
from perfgate.gate import scale
from perfgate.gate.controls import ControlPolicy, Controls
from perfgate.gate.noise import BETWEEN
from perfgate.gate.performance import judge_on_scale, performance_metric
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import Judgement, Verdict, counted, percent, unjudged


def judge_sweep(
    metric: str,
    baseline: Sequence[Sequence[float]],
    new: Sequence[Sequence[float]],
    *,
    band: float | None = None,
    sigma: float | None = None,
    between: float = BETWEEN,
    sessions: int | None = None,
    controls: Sequence[Sequence[float]] | None = None,
    policy: ControlPolicy = "auto",
    why_no_control: str = "",
    rule: Rule | None = None,
    measured_noise: bool = False,
) -> Judgement:
    """Judge fresh starts that measured every point of a sweep by their mean over the points.

    The value of a start is the geometric mean of its points, which is the mean of their losses on
    the log scale: each point weighs the same, however large its numbers are. The spread is that of
    these means from start to start. So a loss of less than the band at every point shows, and a
    loss at one point alone mostly does not: that is for the point's own verdict.

    Args:
        metric: canonical name of a performance metric.
        baseline: for each fresh start, the values of all points, in one order on both sides.
        new: the same of the new build, the starts in the order measured.
        band: the loss of the mean that counts, as a fraction; None: that of the metric's family.
        sigma: prior noise of one start's mean on the log scale; None: that of the metric's family,
            which is as if the points of one start went up and down together.
        rule: error rates and effort; None: `Rule()`.
        controls: as `new`, of the baseline's build in the same session; None: it cannot be started.
        between, sessions, policy, why_no_control, measured_noise: as in `judge_performance`.

    Returns:
        the judgement; its values are geometric means over the points.

    Raises:
        InputError: as `judge_performance`, or fresh starts with different numbers of points.
    """
    found = performance_metric(metric)
    if why := scale.has_zero(found, baseline, new):
        return unjudged(metric, Verdict.NOT_COMPARABLE, why, band=band)
    before = _starts(found, baseline, "baseline")
    now = _starts(found, new, "new")
    points = _points(found, [*before, *now])
    for before_point, now_point in zip(
        zip(*before, strict=True), zip(*now, strict=True), strict=True
    ):
        scale.check_unit(found, before_point, now_point)
    judged = judge_on_scale(
        found,
        [fmean(start) for start in before],
        [fmean(start) for start in now],
        band=band,
        sigma=sigma,
        between=between,
        sessions=sessions,
        controls=Controls(
            None
            if controls is None
            else [fmean(start) for start in _starts(found, controls, "control")]
            if len(controls)
            else [],
            policy,
            why_no_control,
        ),
        rule=rule,
        measured_noise=measured_noise,
    )
    notes = list(judged.notes)
    if points > 1 and judged.verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE):
        notes.append(_worst_point(found, before, now[: judged.runs_used]))
    reason = f"mean over {counted(points, 'point')}: {judged.reason}"
    return replace(judged, reason=reason, notes=tuple(notes))


def _starts(
    metric: Metric, starts: Sequence[Sequence[float]], what: str
) -> list[tuple[float, ...]]:
    """The points of each start on the scale."""
    try:
        return [
            scale.badness(metric, start, f"{what} start {number},")
            for number, start in enumerate(_some(metric, starts, what), start=1)
        ]
    except TypeError:
        raise InputError(
            f"the {what} starts of {metric.name} cannot be judged",
            found=repr(starts),
            expected="a list of fresh starts, each a list of its points' values",
        ) from None


def _some(
    metric: Metric, starts: Sequence[Sequence[float]], what: str
) -> Sequence[Sequence[float]]:
    if len(starts) == 0:  # also for arrays
        raise InputError(f"no {what} starts of {metric.name}", expected="at least one")
    return starts


def _points(metric: Metric, starts: Sequence[Sequence[float]]) -> int:
    counts = sorted({len(start) for start in starts})
    if len(counts) > 1:
        raise InputError(
            f"the fresh starts of {metric.name} measured different numbers of points",
            found=" and ".join(map(str, counts)),
            expected="every point of the sweep in each of them",
            hint="leave out the starts that did not measure every point",
        )
    return counts[0]


def _worst_point(
    metric: Metric, before: Sequence[Sequence[float]], now: Sequence[Sequence[float]]
) -> str:
    losses = [
        fmean(new) - fmean(base)
        for base, new in zip(zip(*before, strict=True), zip(*now, strict=True), strict=True)
    ]
    worst = max(range(len(losses)), key=losses.__getitem__)
    return (
        f"point {worst + 1} of {len(losses)} lost most: "
        f"{percent(scale.change(metric, losses[worst]))}"
    )
