"""Sweep: the whole curve of a scenario's points, judged as one value a fresh start.

Points of one server share its luck, so they are never counted as independent evidence: a start's
value is the median over its points of how far each lies from its own level. Each point is judged
beside this by `perfgate.judging.rules.performance`. Source: statistics §5.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric
from perfgate.core.rule import ControlPolicy, Rule
from perfgate.core.verdict import Judgement, Verdict, counted, percent, unjudged
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import BETWEEN, checked_sigma, median
from perfgate.judging.rules.performance import (
    Comparison,
    declared_band,
    judge,
    performance_metric,
)

# With fewer points the median says no more than the points do.
FEWEST_POINTS = 4
# Correlation of the points of one start, where there are too few starts to know it; from
# `_LARGEST` on the curve shows nothing that the points do not.
_CORRELATION, _LARGEST = 0.5, 0.6
_FEWEST_STARTS = 10
# The noise of a curve is taken as at least half of a point's.
_LEAST_FACTOR = 0.5

Starts = Sequence[Sequence[float]]


def judge_sweep(
    metric: str,
    baseline: Starts,
    new: Starts,
    *,
    band: float | None = None,
    sigma: float | None = None,
    between: float = BETWEEN,
    sessions: int | None = None,
    controls: Starts | None = None,
    policy: ControlPolicy = "auto",
    why_no_control: str = "",
    rule: Rule | None = None,
) -> Judgement:
    """Judge fresh starts that measured every point of a sweep, by their median over the points.

    With P points that correlate by ρp within a start, the median's noise is that of one point times
    κ = √(ρp + (1-ρp)/P), at least a half; the band is narrowed by the same factor. So a loss of
    less than the band at every point shows, and a loss at one point alone mostly does not: that is
    for the point's own verdict. ρp is estimated from ten baseline starts on, else taken as 0.5.

    Args:
        metric: canonical name of a performance metric.
        baseline: for each fresh start, the values of all points, in one order on both sides.
        new: the same of the new build, the starts in the order measured.
        band: the loss of one point that counts, as a fraction; None: that of the metric's family.
        sigma: noise of one start's point on the log scale; None: that of the metric's family.
        controls: as `new`, of the baseline's build in the same session; None: it cannot be started.
        rule: error rates and effort; None: `Rule()`.
        between, sessions, policy, why_no_control: as in `judge_performance`.

    Returns:
        the judgement; its values are geometric means over the points, its change and interval those
        of the median. NO_BASELINE where the points go up and down together (ρp > 0.6), so that the
        curve would show nothing more.

    Raises:
        InputError: as `judge_performance`, or fresh starts with different numbers of points, or
            with fewer than four.
    """
    from perfgate.judging.rules.sequential import one_case, winsorised

    found = performance_metric(metric)
    made = () if controls is None else controls
    if why := scale.has_zero(found, baseline, new, made):
        return unjudged(metric, Verdict.NOT_COMPARABLE, why, band=band)
    before, now = _starts(found, baseline, "baseline"), _starts(found, new, "new")
    other = _starts(found, made, "control") if len(made) else []
    points = _points(found, [*before, *now, *other])
    for before_point, now_point in zip(
        zip(*before, strict=True), zip(*now, strict=True), strict=True
    ):
        scale.check_unit(found, before_point, now_point)
    prior = found.family.sigma if sigma is None else checked_sigma(sigma)
    points_before = map(one_case, zip(*before, strict=True))
    levels = [float(winsorised(point, prior).mean()) for point in points_before]
    correlation = correlation_of_points(before, levels)
    if correlation > _LARGEST:
        why = f"the points of one start go up and down together (correlation {correlation:.2f})"
        return unjudged(metric, Verdict.NO_BASELINE, f"{why}: the points tell all", band=band)
    factor = max(_LEAST_FACTOR, math.sqrt(correlation + (1 - correlation) / points))
    margin = factor * scale.margin(found, declared_band(found, band))
    centre = fmean(levels)
    medians, medians_now, beside = (
        [centre + _median_loss(start, levels) for start in side] for side in (before, now, other)
    )
    judged = judge(
        Comparison(
            found,
            medians,
            medians_now,
            scale.band(found, margin),
            factor * prior,
            between,
            sessions,
            None if controls is None else beside,
            policy,
            why_no_control,
            rule or Rule(),
        )
    )
    notes = list(judged.notes)
    if judged.verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE):
        notes.append(_worst_point(found, levels, now[: judged.runs_used]))
    reason = f"median over {counted(points, 'point')}: {judged.reason}"
    return replace(judged, reason=reason, notes=tuple(notes))


def correlation_of_points(starts: Starts, levels: Sequence[float]) -> float:
    """The correlation of the points of one start, 0…1; 0.5 where there are under ten starts.

    The intraclass correlation of a one-way analysis of variance (Shrout and Fleiss 1979, form
    ICC(1)), of the starts' distances from each point's level.

    Args:
        starts: for each start, its points on the log scale.
        levels: the level of each point.
    """
    if len(starts) < _FEWEST_STARTS:
        return _CORRELATION
    off = [[x - level for x, level in zip(one, levels, strict=True)] for one in starts]
    points, means = len(levels), [fmean(one) for one in off]
    centre = fmean(means)
    between = points * math.fsum((mean - centre) ** 2 for mean in means) / (len(off) - 1)
    squares = ((x - mean) ** 2 for one, mean in zip(off, means, strict=True) for x in one)
    within = math.fsum(squares) / (len(off) * (points - 1))
    total = between + (points - 1) * within
    return 0.0 if total == 0 else min(1.0, max(0.0, (between - within) / total))


def _median_loss(start: Sequence[float], levels: Sequence[float]) -> float:
    return median([x - level for x, level in zip(start, levels, strict=True)])


def _starts(metric: Metric, starts: Starts, what: str) -> list[tuple[float, ...]]:
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


def _some(metric: Metric, starts: Starts, what: str) -> Starts:
    if len(starts) == 0:  # also for arrays
        raise InputError(f"no {what} starts of {metric.name}", expected="at least one")
    return starts


def _points(metric: Metric, starts: Starts) -> int:
    counts = sorted({len(start) for start in starts})
    if len(counts) > 1:
        raise InputError(
            f"the fresh starts of {metric.name} measured different numbers of points",
            found=" and ".join(map(str, counts)),
            expected="every point of the sweep in each of them",
            hint="leave out the starts that did not measure every point",
        )
    if counts[0] < FEWEST_POINTS:
        raise InputError(
            f"too few points of {metric.name} for a curve",
            found=counts[0],
            expected=f"{FEWEST_POINTS} or more: with fewer, the points tell all",
        )
    return counts[0]


def _worst_point(metric: Metric, levels: Sequence[float], now: Starts) -> str:
    losses = [fmean(new) - level for level, new in zip(levels, zip(*now, strict=True), strict=True)]
    worst = max(range(len(losses)), key=losses.__getitem__)
    return (
        f"point {worst + 1} of {len(losses)} lost most: "
        f"{percent(scale.change(metric, losses[worst]))}"
    )
