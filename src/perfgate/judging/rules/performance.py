"""Performance: a few expensive fresh starts against a measured baseline.

A `PerformanceTest` holds all that a verdict rests on; it looks after each start, in order, and
stops at the first look that decides. The rule itself is `perfgate.judging.rules.sequential`, which
loads numpy and is imported only where something is judged; here its numbers become a judgement.
Against a document: `perfgate.judging.rules.documented`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal, get_args

from perfgate.core.errors import InputError
from perfgate.core.measured import Change
from perfgate.core.metrics import Metric, is_accuracy, lookup
from perfgate.core.rule import ControlPolicy, ControlRule, Rule
from perfgate.core.verdict import (
    HOST_SHIFT_MEANING,
    Judgement,
    Mark,
    Verdict,
    counted,
    may_decide,
    percent,
    reason_of,
    unjudged,
    with_interval,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import WIDEST_BAND, RunNoise, checked_sigma, t_tail

if TYPE_CHECKING:
    from perfgate.judging.rules.sequential import Levels

_RULE = Rule()
_CONTROL_RULE = ControlRule()
_NO_WORSE = (Verdict.PASS, Verdict.IMPROVEMENT)
_FEWEST_WITHOUT_PRIOR = 3

# A run so many sigma from the others is told. By chance alone 5 in 1,000 pairs differ by as much.
_FAR_SIGMAS = 4

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

    def __post_init__(self) -> None:
        if self.policy not in get_args(ControlPolicy):
            raise InputError(
                "not a policy for controls",
                found=self.policy,
                expected=" or ".join(get_args(ControlPolicy)),
            )

    @property
    def is_controlled(self) -> bool:
        """Whether a control can be asked for."""
        return self.controls is not None and self.policy != "none"

    @property
    def made(self) -> Sequence[Any]:
        """Values of the controls made so far."""
        return () if self.controls is None or not len(self.controls) else self.controls

    def has_zero(self) -> str:
        """Why the values cannot be compared relatively: one is 0; else empty."""
        metric = performance_metric(self.metric)
        return scale.has_zero(metric, self.baseline, self.new, self.made)

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
        return judge_losses(self, Losses.of(self), rule)

    def change(self, rule: Rule = _RULE) -> "Change":
        """How far it moved over all new runs: for metrics that are reported and do not gate.

        Raises:
            InputError: as `judge`, and where a value is 0; no band is needed.
        """
        if why := self.has_zero():
            raise InputError(why)
        losses = Losses.of(self)
        metric, new, rule = losses.metric, losses.after, self.noise.rule(rule)
        level = _level(losses, self, rule)
        scale.check_unit(metric, losses.before, new)
        seen = Seen.of(new, level, rule)
        return Change(
            metric.name,
            scale.value(metric, float(level.centre[0])),
            scale.value(metric, fmean(new)),
            scale.change(metric, seen.loss),
            seen.interval(metric),
            len(new),
            t_tail(seen.loss / float(level.standard_error(len(new))[0]), level.dof),
        )


@dataclass(frozen=True)
class Losses:
    """The values of a comparison on the scale of `rules.scale`; positive is worse."""

    metric: Metric
    before: Sequence[float]
    after: Sequence[float]
    controls: Sequence[float]

    @classmethod
    def of(cls, test: PerformanceTest) -> "Losses":
        """Raises InputError: an unknown metric, or values that cannot be judged."""
        metric, made = performance_metric(test.metric), test.made
        return cls(
            metric,
            scale.badness(metric, test.baseline, "baseline"),
            scale.badness(metric, test.new, "new"),
            scale.badness(metric, made, "control") if len(made) else (),
        )


@dataclass(frozen=True)
class Seen:
    """The mean loss of some starts, with its bounds L and U; positive is worse."""

    loss: float
    low: float
    high: float

    @classmethod
    def of(cls, runs: Sequence[float], level: "Levels", rule: Rule) -> "Seen":
        """What so many new runs say against a baseline."""
        from perfgate.judging.rules.sequential import as_cases

        return cls(*(float(one[0]) for one in level.bounds(as_cases([runs]), rule)))

    def interval(self, metric: Metric) -> tuple[float, float]:
        """The bounds as changes of the value, low first."""
        return scale.interval(metric, self.low, self.high)

    def improved(self, margin: float) -> bool:
        """Whether the gain is real and at least half of what would count as a loss."""
        return self.high < 0 and -self.loss >= margin / 2


@dataclass(frozen=True)
class _Decision:
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


def judge_losses(test: PerformanceTest, losses: Losses, rule: Rule) -> Judgement:
    """The judgement of values that are on the scale; the settings are those of `test`."""
    metric, noise = losses.metric, test.noise
    rule = noise.rule(rule)
    declared = declared_band(metric, test.band)
    margin = scale.margin(metric, declared)
    level = _level(losses, test, rule)
    scale.check_unit(metric, losses.before, losses.after)
    # What `rule.max_runs` starts find, on the log scale.
    notes, forced = [], float(level.smallest_detectable(rule.max_runs, rule.alpha)[0])
    if level.pulled[0]:
        notes.append(f"{counted(int(level.pulled[0]), 'outlying baseline value')} winsorised")
    if noise.widen and forced > margin:
        margin = forced
        notes.append(widened_note(declared, scale.band(metric, forced), float(level.sigma[0])))
    elif not test.is_controlled and forced > margin:
        most = counted(rule.max_runs, "fresh start")
        least = _share(scale.band(metric, forced))
        notes.append(f"the band is below the noise floor: {most} resolve {least}")
    judged = _judged(test, losses, level, margin, notes, rule)
    if noise.widen and scale.band(metric, forced) > WIDEST_BAND and judged.verdict in _NO_WORSE:
        judged = replace(
            judged,
            verdict=Verdict.INCONCLUSIVE,
            reason=f"{percent(judged.change or 0.0)}: {TOO_NOISY}",
            needs_more_runs=False,
            needs_control=False,
            mark="MACHINE",
        )
    return replace(judged, notes=(*judged.notes, noise.note)) if noise.note else judged


def _judged(
    test: PerformanceTest,
    losses: Losses,
    level: "Levels",
    margin: float,
    notes: list[str],
    rule: Rule,
) -> Judgement:
    metric, runs = losses.metric, list(losses.after[: rule.max_runs])
    decided = _decide(test, losses, level, margin, rule)
    verdict, used = decided.verdict, decided.new
    seen = Seen.of(runs[:used], level, rule)
    if verdict == Verdict.PASS and not decided.mark and seen.low > 0:
        notes.append("small loss within the band")
    if verdict == Verdict.PASS and seen.improved(margin):
        if len(runs) < 2:
            notes.append("improved; a second fresh start would have to agree")
        elif used == 1 and Seen.of(runs[1:2], level, rule).improved(margin):
            verdict, used, seen = Verdict.IMPROVEMENT, 2, Seen.of(runs[:2], level, rule)
        else:
            notes.append("improved, but not in each of the first two fresh starts")
    notes += _far_runs(metric, float(level.sigma[0]), runs[:used])
    if decided.mark == "HOST_SHIFT":
        notes.append("HOST_SHIFT: machine, not build")
    if decided.mark == "NO_CONTROL" and verdict == Verdict.REGRESSION:
        why = f" ({test.why_no_control})" if test.why_no_control else ""
        notes.append(f"no control: the machine is not excluded{why}")
    return Judgement(
        metric=metric.name,
        verdict=verdict,
        baseline=scale.value(metric, float(level.centre[0])),
        measured=scale.value(metric, fmean(runs[:used])),
        change=scale.change(metric, seen.loss),
        interval=seen.interval(metric),
        band=scale.band(metric, margin),
        runs_used=used,
        needs_more_runs=bool(decided.need),
        reason=_reason(losses, replace(decided, verdict=verdict, new=used), seen, margin),
        notes=tuple(notes),
        controls_used=decided.controls,
        needs_control=decided.need == "control",
        mark=decided.mark,
    )


def _decide(
    test: PerformanceTest, losses: Losses, level: "Levels", margin: float, rule: Rule
) -> _Decision:
    from perfgate.judging.rules import sequential as many

    with_controls = _CONTROL_RULE.with_at_most(rule.max_runs)
    new, controls = many.as_cases([losses.after[: rule.max_runs]]), many.as_cases([losses.controls])
    if test.is_controlled:
        looks = with_controls.looks
        found = many.controlled(level, new, controls, margin, with_controls)
    else:
        looks = many.without_controls(rule.max_runs)
        found = many.alone(level, new, margin, rule)
    code, verdict = int(found.codes[0]), found.first()[0]
    if code != many.INCONCLUSIVE:
        mark: Mark = "HOST_SHIFT" if code == many.HOST_SHIFT else ""
        if code == many.REGRESSION and not test.is_controlled:
            mark = "NO_CONTROL"
            verdict = Verdict.INCONCLUSIVE if test.policy == "required" else verdict
        starts, beside = looks[found.at[0]]
        return _Decision(verdict, starts, beside, mark)
    made, there = new.shape[1], controls.shape[1]
    lacking = [look for look in looks if look[0] > made or look[1] > there]
    wanted, beside = (lacking or looks[-1:])[0]
    need: Literal["", "new", "control"] = ""
    if lacking:
        need = "new" if made < wanted else "control"
    starts, beside = min(wanted, made), min(beside, there)
    broken = beside and many.is_broken(level, controls[:, :beside], margin, with_controls)[0]
    mark = "MACHINE" if broken else ""
    return _Decision(verdict, starts, beside, mark, need, looks[-1][0] - starts if need else 0)


def _reason(losses: Losses, decided: _Decision, seen: Seen, margin: float) -> str:
    """One sentence: how far it moved, where the true change lies, and what follows from that."""
    metric, verdict = losses.metric, decided.verdict
    (low, high, band), digits = _told_apart([*seen.interval(metric), scale.change(metric, margin)])
    change = with_interval(percent(scale.change(metric, seen.loss), digits), low, high)
    runs = counted(len(losses.before), "baseline run")
    after = f"{counted(decided.new, 'fresh start')} against {runs}"
    if decided.controls:
        after += f" and {counted(decided.controls, 'control')}"
    if decided.mark == "HOST_SHIFT":
        what = f"{change}: the machine, not the build: {HOST_SHIFT_MEANING}"
        return f"{what}, by the {band} band; {after}"
    if decided.mark == "MACHINE" and not decided.need:
        return (
            f"{change}: the machine, not the build: even the baseline's build is slower than its "
            f"history by far; {after}; measure again on another machine"
        )
    if decided.mark == "NO_CONTROL" and verdict == Verdict.INCONCLUSIVE:
        return f"{change}: a loss is seen, and gate.control requires a control; {after}"
    gain = percent(scale.change(metric, -margin / 2), digits)
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


def _told_apart(shares: Sequence[float]) -> tuple[list[str], int]:
    """Shares as percentages, with as many digits as tell the last one, the band, from the rest."""
    for digits in (1, 2, 3):
        texts = [percent(share, digits) for share in shares]
        if texts[-1] not in texts[:-1]:
            break
    return texts, digits


def _far_runs(metric: Metric, sigma: float, runs: Sequence[float]) -> list[str]:
    """Notes of runs that lie far from the others; they are told and never dropped.

    A run is far if it lies beyond 4 sigma from the median of the others, and of all as well: of
    three runs the two that agree have a median of the others half-way to the third.
    """

    def away(distance: float) -> str:
        return f"{percent(scale.change(metric, distance))} ({abs(distance) / sigma:.1f} sigma)"

    reach, widest = _FAR_SIGMAS * sigma, max(runs) - min(runs)
    if widest <= reach:
        return []
    if len(runs) == 2:
        return [f"fresh start 2 lies {away(runs[1] - runs[0])} from fresh start 1; both are used"]
    middle, told = median(runs), []
    for position, run in enumerate(runs):
        others = median([*runs[:position], *runs[position + 1 :]])
        if abs(run - middle) > reach and abs(run - others) > reach:
            told.append(
                f"fresh start {position + 1} lies {away(run - others)} from the "
                f"median of the other {len(runs) - 1}; it is used like them"
            )
    if 2 * len(told) >= len(runs):  # no run is the odd one out
        apart = away(widest).lstrip("+-")
        return [f"the {len(runs)} fresh starts lie up to {apart} apart; all are used"]
    return told


def _level(losses: Losses, test: PerformanceTest, rule: Rule) -> "Levels":
    """What new runs are compared with, as the only case.

    Raises:
        InputError: a noise that cannot be used, or too few values to measure it.
    """
    from perfgate.judging.rules import sequential

    metric, noise, values = losses.metric, test.noise, sorted(losses.before)
    prior = checked_sigma(metric.family.sigma if noise.sigma is None else noise.sigma)
    prior_dof = rule.prior_dof
    if prior_dof == 0 and len(values) < _FEWEST_WITHOUT_PRIOR:
        raise InputError(
            "too few runs to measure the noise without a prior",
            found=f"at most {len(values)} runs of one build",
            expected=f"{_FEWEST_WITHOUT_PRIOR} or more",
            hint="measure more fresh starts of the baseline, or give a prior",
        )
    if prior_dof == 0 and values[0] == values[-1]:
        raise InputError(
            "all runs gave the same value, so their noise cannot be measured",
            hint="give a prior: a sigma with some degrees of freedom",
        )
    base, between = sequential.as_cases([values]), noise.between
    behind = None if test.sessions is None else max(1, test.sessions)
    # The new runs' spread stays out: a build that turned noisy must not earn a wider interval.
    return sequential.levels(base, prior, sessions=behind, between=between, prior_dof=prior_dof)


def widened_note(declared: float, wide: float, sigma: float) -> str:
    """That a band is wider than the scenario says, and why; all as fractions."""
    return (
        f"band widened from {_share(declared)} to {_share(wide)}, the smallest detectable with "
        f"this machine's noise of {_share(sigma)} per start"
    )


def performance_metric(name: str, otherwise: str = "perfgate.judging.rules.accuracy") -> Metric:
    """The performance metric of that name; `otherwise` is what judges an accuracy.

    Raises:
        InputError: no metric has it, or it is an accuracy.
    """
    if is_accuracy(name):
        raise InputError(
            "an accuracy is not judged as performance",
            found=name,
            hint=f"use {otherwise}",
        )
    return lookup(name)


def declared_band(metric: Metric, band: float | None) -> float:
    """The band, or if none is given that of the metric's family.

    Raises:
        InputError: it has none either.
    """
    declared = metric.family.band if band is None else band
    if declared is None:
        raise InputError(
            f"{metric.name} is only reported: it has no default band and cannot gate without one",
            hint=f"give {metric.name} a band in gate.bands, or take it out of gate.metrics",
        )
    return declared


def _share(share: float) -> str:
    return percent(share, sign="")
