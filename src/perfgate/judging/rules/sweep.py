"""Sweep: the whole curve of a scenario's points, judged as one value a fresh start.

Points of one server share its luck, so they are never counted as independent evidence: a start's
value is the median over its points of how far each lies from its own level. Each point is judged
beside this by `perfgate.judging.rules.performance`. Source: statistics §5.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict, counted, unjudged
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import RunNoise, checked_sigma
from perfgate.judging.rules.performance import PerformanceTest, judge_losses

if TYPE_CHECKING:
    from perfgate.judging.rules.sequential import Floats

# With fewer points the median says no more than the points do.
FEWEST_POINTS = 4
_RULE = Rule()
# Correlation of the points of one start, where there are too few starts to know it; from
# `_LARGEST` on the curve shows nothing that the points do not.
_CORRELATION, _LARGEST = 0.5, 0.6
_FEWEST_STARTS = 10
# The noise of a curve is taken as at least half of a point's.
_LEAST_FACTOR = 0.5


@dataclass(frozen=True)
class CurveTest(PerformanceTest):
    """A performance metric of a whole sweep: for each fresh start the values of all points.

    They are in one order, and each start has all of them, `FEWEST_POINTS` at least; band and noise
    are those of one point.
    """

    def judge(self, rule: Rule = _RULE) -> Judgement:
        """Judge fresh starts that measured every point of a sweep, by their median over the points.

        With P points that correlate by ρp within a start, the median's noise is that of one point
        times κ = √(ρp + (1-ρp)/P), at least a half; the band is narrowed by the same factor. So a
        loss of less than the band at every point shows, and a loss at one point alone mostly does
        not: that is for the point's own verdict. ρp is estimated from ten baseline starts on, else
        taken as 0.5.

        Args:
            rule: error rates and effort.

        Returns:
            the judgement; its values are geometric means over the points, its change and interval
            those of the median. NO_BASELINE where the points go up and down together (ρp > 0.6), so
            that the curve would show nothing more.

        Raises:
            InputError: as `PerformanceTest.judge`.
        """
        from perfgate.judging.rules.sequential import as_cases, middle, winsorised

        metric, noise = scale.performance_metric(self.metric), self.noise
        if why := self.has_zero():
            return unjudged(self.metric, Verdict.NOT_COMPARABLE, why, band=self.band)
        before, now, other = (
            [
                scale.badness(metric, start, f"{what} start {number},")
                for number, start in enumerate(side, start=1)
            ]
            for side, what in (
                (self.baseline, "baseline"),
                (self.new, "new"),
                (self.made, "control"),
            )
        )
        points = len(before[0])
        for number in range(points):
            of_point = ([start[number] for start in side] for side in (before, now))
            scale.check_unit(metric, *of_point)
        prior = metric.family.sigma if noise.sigma is None else checked_sigma(noise.sigma)
        levels = winsorised(as_cases(before).T, prior).mean(axis=1)
        correlation = correlation_of_points(as_cases(before) - levels)
        if correlation > _LARGEST:
            why = f"the points of one start go up and down together (correlation {correlation:.2f})"
            told = f"{why}: the points tell all"
            return unjudged(self.metric, Verdict.NO_BASELINE, told, band=self.band)
        factor = max(_LEAST_FACTOR, math.sqrt(correlation + (1 - correlation) / points))
        margin = factor * scale.margin(metric, scale.declared_band(metric, self.band))
        base, new, controls = (
            (levels.mean() + middle(as_cases(side) - levels)).tolist() if side else []
            for side in (before, now, other)
        )
        of_median = RunNoise(factor * prior, noise.between)
        narrowed = replace(self, band=scale.band(metric, margin), noise=of_median)
        judged = judge_losses(narrowed, (base, new, controls), rule)
        notes = judged.notes
        if judged.verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE):
            losses = (as_cases(now[: judged.runs_used]).mean(axis=0) - levels).tolist()
            most = max(losses)
            worst = f"point {losses.index(most) + 1} of {points} lost most"
            notes += (f"{worst}: {scale.describe(metric, most)}",)
        reason = f"median over {counted(points, 'point')}: {judged.reason}"
        return replace(judged, reason=reason, notes=notes)


def correlation_of_points(off: "Floats") -> float:
    """The correlation of the points of one start, 0…1; 0.5 where there are under ten starts.

    The intraclass correlation of a one-way analysis of variance (Shrout and Fleiss 1979, form
    ICC(1)), of the starts' distances from each point's level.

    Args:
        off: those distances, on the log scale; shape (starts, points).
    """
    starts, points = off.shape
    if starts < _FEWEST_STARTS:
        return _CORRELATION
    means = off.mean(axis=1)
    between = points * ((means - means.mean()) ** 2).sum() / (starts - 1)
    within = ((off - means[:, None]) ** 2).sum() / (starts * (points - 1))
    total = float(between + (points - 1) * within)
    return 0.0 if total == 0 else min(1.0, max(0.0, float(between - within) / total))
