"""Performance: a few expensive fresh starts against a measured baseline.

A `PerformanceTest` holds all that a verdict rests on; it looks after each start, in order, and
stops at the first look that decides. The rule itself is `perfgate.judging.rules.sequential`, which
loads numpy and is imported only where something is judged; here its numbers become a judgement.
Of a sweep the whole curve is one value a start: points of one server share its luck, so they are
never counted as independent evidence, and each is judged beside this (statistics §5).
Against a document: `perfgate.judging.rules.documented`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from perfgate.core.errors import InputError
from perfgate.core.measurement import Change
from perfgate.core.metrics import Metric
from perfgate.core.verdict import ControlPolicy, Judgement, Mark, Rule, Verdict, counted, percent
from perfgate.judging.rules import scale
from perfgate.judging.rules.constants import ControlRule
from perfgate.judging.rules.noise import WIDEST_BAND, RunNoise, checked_sigma, t_tail
from perfgate.judging.rules.reasons import HOST_SHIFT_MEANING, may_decide, reason_of, unjudged

if TYPE_CHECKING:
    from perfgate.judging.rules.sequential import Floats, Levels

_RULE = Rule()
_CONTROL_RULE = ControlRule()
_NO_WORSE = (Verdict.PASS, Verdict.IMPROVEMENT)

# Of the baseline, the new build and controls, on the scale of `rules.scale`.
Losses = tuple[Sequence[float], Sequence[float], Sequence[float]]

# A run so many sigma from the others is told. By chance alone 5 in 1,000 pairs differ by as much.
_FAR_SIGMAS = 4

# A curve of fewer points has a median that says no more than the points do.
FEWEST_POINTS = 4
# Correlation of the points of one start, where there are too few starts to know it; from
# `_LARGEST` on the curve shows nothing that the points do not.
_CORRELATION, _LARGEST = 0.5, 0.6
_FEWEST_STARTS = 10
# The noise of a curve is taken as at least half of a point's.
_LEAST_FACTOR = 0.5

# Why a machine whose noise forces so wide a band proves no PASS.
TOO_NOISY = (
    f"machine too noisy: with a band beyond {percent(WIDEST_BAND, 0, sign='')} a PASS would "
    "claim hardly anything; measure again when it is idle"
)


@dataclass(frozen=True)
class PerformanceTest:
    """All that the verdict on a performance metric rests on, in the metric's unit.

    Of each fresh start it has one value; of a curve the values of all points.

    Attributes:
        metric: canonical name.
        band: the loss that counts, as a fraction; None: that of the metric's family.
        baseline: accepted values, one per fresh start, in any order.
        new: those of the new build, in the order measured.
        noise: of one start.
        sessions: sessions behind the baseline; None: as many as values.
        controls: values of the baseline's build in the new build's session, in the order measured;
            None: it cannot be started.
        policy: whether controls are asked for, and needed.
        why_no_control: why that build cannot be started, in words; empty: nobody asked.
    """

    metric: str
    band: float | None
    baseline: Sequence[Any]
    new: Sequence[Any]
    noise: RunNoise = field(default_factory=RunNoise)
    sessions: int | None = None
    controls: Sequence[Any] | None = None
    policy: ControlPolicy = "auto"
    why_no_control: str = ""

    @property
    def is_controlled(self) -> bool:
        """Whether a control can be asked for."""
        return self.controls is not None and self.policy != "none"

    @property
    def made(self) -> Sequence[Any]:
        """Values of the controls made so far."""
        return () if self.controls is None or not len(self.controls) else self.controls

    def judge(self, rule: Rule = _RULE) -> Judgement:
        """Judge new runs against a measured baseline, as far as they decide.

        With controls, as `sequential.controlled` does. Without, with d the mean loss on the log
        scale, [L, U] its bounds and delta the margin, look n = 1, 2, … asks in this order:
        U < delta is PASS; L > 0, n >= 2 and L > 0 from the runs after the first alone is
        REGRESSION; else another fresh start is needed. It is IMPROVEMENT instead of PASS when the
        first two starts, each alone, show U < 0 and -d >= delta / 2. Runs after the look that
        decides, or beyond `rule.max_runs`, are not used. A worse new value never betters the
        verdict.

        Args:
            rule: error rates and effort.

        Returns:
            the judgement; NOT_COMPARABLE where a value is 0 and may be (`Metric.may_be_zero`).

        Raises:
            InputError: unknown metric, no band, values that cannot be judged or that cannot all be
                in one unit (`perfgate.judging.rules.scale.UNIT_FACTOR`), or no baseline value.
        """
        if why := self.has_zero():
            return unjudged(self.metric, Verdict.NOT_COMPARABLE, why, band=self.band)
        return _judged(self, self._losses(), rule)

    def change(self, rule: Rule = _RULE) -> Change:
        """How far it moved over all new runs: for metrics that are reported and do not gate.

        Raises:
            InputError: as `judge`, and where a value is 0; no band is needed.
        """
        if why := self.has_zero():
            raise InputError(why)
        before, new, _ = self._losses()
        metric, level = scale.performance_metric(self.metric), level_of(self, before, rule)
        scale.check_unit(metric, before, new)
        seen = level.estimate(new, self.noise.rule(rule))
        return Change(
            metric.name,
            scale.value(metric, float(level.centre[0])),
            scale.value(metric, fmean(new)),
            scale.change(metric, seen.loss),
            seen.interval(metric),
            len(new),
            t_tail(seen.loss / float(level.standard_error(len(new))[0]), level.dof),
        )

    def has_zero(self) -> str:
        """Why the values cannot be compared relatively: one is 0; else empty."""
        metric = scale.performance_metric(self.metric)
        return scale.has_zero(metric, self.baseline, self.new, self.made)

    def _losses(self) -> Losses:
        metric, made = scale.performance_metric(self.metric), self.made
        return (
            scale.log_loss(metric, self.baseline, "baseline"),
            scale.log_loss(metric, self.new, "new"),
            scale.log_loss(metric, made, "control") if len(made) else (),
        )


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
        sides = {"baseline": self.baseline, "new": self.new, "control": self.made}
        before, now, other = (
            [
                scale.log_loss(metric, start, f"{what} start {number},")
                for number, start in enumerate(side, start=1)
            ]
            for what, side in sides.items()
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
        judged = _judged(narrowed, (base, new, controls), rule)
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


class _Decision(NamedTuple):
    """What the starts made so far decide.

    Attributes:
        verdict: PASS, REGRESSION or INCONCLUSIVE.
        new, controls: fresh starts of each build that it rests on.
        mark: as in `Judgement`.
        need: which start is wanted next; empty: it is decided, or none is left.
        left: how many more starts of the new build are allowed.
    """

    verdict: Verdict
    new: int
    controls: int
    mark: Mark
    need: Literal["", "new", "control"] = ""
    left: int = 0


def _judged(test: PerformanceTest, losses: Losses, rule: Rule) -> Judgement:
    """The judgement of values that are on the scale; the settings are those of `test`."""
    metric, rule = scale.performance_metric(test.metric), test.noise.rule(rule)
    before, new, _ = losses
    declared = scale.declared_band(metric, test.band)
    margin, notes = scale.margin(metric, declared), []
    level = level_of(test, before, rule)
    scale.check_unit(metric, before, new)
    if level.pulled[0]:
        notes.append(f"{counted(int(level.pulled[0]), 'outlying baseline value')} winsorised")
    # What `rule.max_runs` starts find, on the log scale.
    forced = float(level.smallest_detectable(rule.max_runs, rule.alpha)[0])
    least = scale.band(metric, forced)
    if test.noise.widen and forced > margin:
        margin = forced
        notes.append(widened_note(declared, least, float(level.sigma[0])))
    elif not test.is_controlled and forced > margin:
        starts = counted(rule.max_runs, "fresh start")
        resolution = f"{starts} resolve {percent(least, sign='')}"
        notes.append(f"the band is below the noise floor: {resolution}")
    runs = list(new[: rule.max_runs])
    decided = _decide(test, losses, level, margin, rule)
    seen = level.estimate(runs[: decided.new], rule)
    if decided.verdict == Verdict.PASS and not decided.mark and seen.low > 0:
        notes.append("small loss within the band")
    if decided.verdict == Verdict.PASS and _improved(seen, margin):
        why = no_improvement(
            "fresh start",
            len(runs),
            lambda: decided.new == 1 and _improved(level.estimate(runs[1:2], rule), margin),
        )
        notes += [why] if why else []
        if not why:
            decided = decided._replace(verdict=Verdict.IMPROVEMENT, new=2)
            seen = level.estimate(runs[:2], rule)
    used = runs[: decided.new]
    notes += [*_far_runs(metric, float(level.sigma[0]), used), *_notes_of_mark(test, decided)]
    reason = _reason(metric, len(before), decided, seen, margin)
    if test.noise.widen and least > WIDEST_BAND and decided.verdict in _NO_WORSE:
        reason = f"{scale.describe(metric, seen.loss)}: {TOO_NOISY}"
        decided = decided._replace(verdict=Verdict.INCONCLUSIVE, mark="MACHINE", need="")
    values = scale.value(metric, float(level.centre[0])), scale.value(metric, fmean(used))
    return scale.judgement(
        metric,
        decided.verdict,
        seen,
        margin,
        values,
        reason,
        runs_used=decided.new,
        needs_more_runs=bool(decided.need),
        notes=tuple(filter(None, (*notes, test.noise.note))),
        controls_used=decided.controls,
        needs_control=decided.need == "control",
        mark=decided.mark,
    )


def _notes_of_mark(test: PerformanceTest, decided: _Decision) -> list[str]:
    if decided.mark == "HOST_SHIFT":
        return ["HOST_SHIFT: machine, not build"]
    if decided.mark != "NO_CONTROL" or decided.verdict != Verdict.REGRESSION:
        return []
    why = f" ({test.why_no_control})" if test.why_no_control else ""
    return [f"no control: the machine is not excluded{why}"]


def _improved(seen: scale.Estimate, margin: float) -> bool:
    """Whether the gain is real and at least half of what would count as a loss."""
    return seen.high < 0 and -seen.loss >= margin / 2


def no_improvement(noun: str, made: int, agrees: Callable[[], bool]) -> str:
    """Why a gain is no improvement; empty: it is, as the second start or evaluation agrees."""
    if made < 2:
        return f"improved; a second {noun} would have to agree"
    return "" if agrees() else f"improved, but not in each of the first two {noun}s"


def _decide(
    test: PerformanceTest, losses: Losses, level: "Levels", margin: float, rule: Rule
) -> _Decision:
    from perfgate.judging.rules import sequential as many

    with_controls = _CONTROL_RULE.with_at_most(rule.max_runs)
    new, controls = many.as_cases([losses[1][: rule.max_runs]]), many.as_cases([losses[2]])
    if test.is_controlled:
        looks = with_controls.looks
        found = many.controlled(level, new, controls, margin, with_controls)
    else:
        looks = many.without_controls(rule.max_runs)
        found = many.alone(level, new, margin, rule)
    code, (starts, beside) = int(found.codes[0]), looks[found.at[0]]
    if code == many.REGRESSION and not test.is_controlled:
        required = test.policy == "required"
        verdict = Verdict.INCONCLUSIVE if required else Verdict.REGRESSION
        return _Decision(verdict, starts, beside, "NO_CONTROL")
    if code != many.INCONCLUSIVE:
        shifted = code == many.HOST_SHIFT
        return _Decision(found.first()[0], starts, beside, "HOST_SHIFT" if shifted else "")
    made, there = new.shape[1], controls.shape[1]
    lacking = [look for look in looks if look[0] > made or look[1] > there]
    wanted, beside = (lacking or looks[-1:])[0]
    need: Literal["", "new", "control"] = ""
    if lacking:
        need = "new" if made < wanted else "control"
    starts, beside = min(wanted, made), min(beside, there)
    broken = beside and many.is_broken(level, controls[:, :beside], margin, with_controls)[0]
    left = looks[-1][0] - starts if need else 0
    return _Decision(Verdict.INCONCLUSIVE, starts, beside, "MACHINE" if broken else "", need, left)


def _reason(
    metric: Metric, runs: int, decided: _Decision, seen: scale.Estimate, margin: float
) -> str:
    """One sentence: how far it moved, where the true change lies, and what follows from that."""
    verdict, mark = decided.verdict, decided.mark
    shares, wide = seen.interval(metric), scale.change(metric, margin)
    # As many digits as tell the band from the bounds.
    apart = (n for n in (1, 2) if percent(wide, n) not in [percent(share, n) for share in shares])
    digits = next(apart, 3)
    change, band = seen.describe(metric, digits), percent(wide, digits)
    after = f"{counted(decided.new, 'fresh start')} against {counted(runs, 'baseline run')}"
    if decided.controls:
        after += f" and {counted(decided.controls, 'control')}"
    if mark == "HOST_SHIFT":
        what = f"{change}: the machine, not the build: {HOST_SHIFT_MEANING}"
        return f"{what}, by the {band} band; {after}"
    if mark == "MACHINE" and not decided.need:
        return (
            f"{change}: the machine, not the build: even the baseline's build is slower than its "
            f"history by far; {after}; measure again on another machine"
        )
    if mark == "NO_CONTROL" and verdict == Verdict.INCONCLUSIVE:
        return f"{change}: a loss is seen, and gate.control requires a control; {after}"
    gain = scale.describe(metric, -margin / 2, digits)
    with_controls = "the controls are not as slow"
    ahead = "a control is wanted" if decided.need == "control" else may_decide(decided.left)
    return reason_of(
        verdict,
        change,
        band,
        after,
        # d - t(1-β) SE > -δ: a gain of the band is excluded too.
        equal=2 * seen.loss - seen.high > -margin,
        gain=f"{gain} that counts as a gain; each of the first two starts agrees",
        beyond=seen.loss >= margin,
        proof=with_controls if decided.controls else "confirmed by the later starts alone",
        likely=seen.low > 0,
        ahead=f", {ahead}",
    )


def _far_runs(metric: Metric, sigma: float, runs: Sequence[float]) -> list[str]:
    """Notes of runs that lie far from the others; they are told and never dropped.

    A run is far if it lies beyond 4 sigma from the median of the others, and of all as well: of
    three runs the two that agree have a median of the others half-way to the third.
    """

    def away(distance: float) -> str:
        return f"{scale.describe(metric, distance)} ({abs(distance) / sigma:.1f} sigma)"

    reach, widest = _FAR_SIGMAS * sigma, max(runs) - min(runs)
    if widest <= reach:
        return []
    if len(runs) == 2:
        return [f"fresh start 2 lies {away(runs[1] - runs[0])} from fresh start 1; both are used"]
    middle, notes = median(runs), []
    for position, run in enumerate(runs):
        others = median([*runs[:position], *runs[position + 1 :]])
        if abs(run - middle) > reach and abs(run - others) > reach:
            notes.append(
                f"fresh start {position + 1} lies {away(run - others)} from the "
                f"median of the other {len(runs) - 1}; it is used like them"
            )
    if 2 * len(notes) >= len(runs):  # no run is the odd one out
        apart = away(widest).lstrip("+-")
        return [f"the {len(runs)} fresh starts lie up to {apart} apart; all are used"]
    return notes


def level_of(test: PerformanceTest, before: Sequence[float], rule: Rule) -> "Levels":
    """What new runs are compared with, as the only case; errors as of `checked_sigma`."""
    from perfgate.judging.rules import sequential

    noise, family = test.noise, scale.performance_metric(test.metric).family
    # The new runs' spread stays out: a build that turned noisy must not earn a wider interval.
    return sequential.levels(
        sequential.as_cases([sorted(before)]),
        checked_sigma(family.sigma if noise.sigma is None else noise.sigma),
        sessions=None if test.sessions is None else max(1, test.sessions),
        between=noise.between,
        prior_dof=noise.rule(rule).prior_dof,
    )


def widened_note(declared: float, wide: float, sigma: float) -> str:
    """That a band is wider than the scenario says, and why; all as fractions."""
    was, now, noise = (percent(share, sign="") for share in (declared, wide, sigma))
    return (
        f"band widened from {was} to {now}, the smallest detectable with this machine's noise of "
        f"{noise} per start"
    )
