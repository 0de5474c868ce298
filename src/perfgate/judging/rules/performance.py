"""Performance: a few expensive fresh starts against a measured baseline.

One `Comparison` holds all that a verdict rests on; `judge` looks after each start, in order, and
stops at the first look that decides. The rule itself is `perfgate.judging.rules.sequential`, which
loads numpy and is imported only where something is judged; here its numbers become a judgement.
Against a document: `perfgate.judging.rules.documented`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Literal, get_args

from perfgate.core.errors import InputError
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
from perfgate.judging.rules.noise import (
    BETWEEN,
    WIDEST_BAND,
    Noise,
    checked_sigma,
    median,
    t_tail,
)

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
class Comparison:
    """All that one verdict on a performance metric rests on, on the scale of `rules.scale`.

    Attributes:
        metric: what is compared.
        baseline: losses of accepted runs, one per fresh start, in any order.
        new: those of the new build, in the order measured.
        band: the loss that counts, as a fraction; None: that of the metric's family.
        sigma: prior noise of one run; None: that of the family.
        between: the share of its variance that a whole session has in common.
        sessions: sessions behind the baseline; None: as many as values.
        controls: losses of the baseline's build in the new build's session, in the order measured;
            None: it cannot be started.
        policy: whether controls are asked for, and needed.
        why_no_control: why the other build cannot be started, in words; empty: nobody asked.
        rule: error rates and effort.
        widen: widen the band to what the noise lets `rule.max_runs` runs resolve. Where that is
            wider than 25 %, nothing passes: the machine is too noisy (statistics §9).
    """

    metric: Metric
    baseline: Sequence[float]
    new: Sequence[float]
    band: float | None = None
    sigma: float | None = None
    between: float = BETWEEN
    sessions: int | None = None
    controls: Sequence[float] | None = None
    policy: ControlPolicy = "auto"
    why_no_control: str = ""
    rule: Rule = _RULE
    widen: bool = False

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


@dataclass(frozen=True)
class BaselineLevel:
    """What new runs are compared with.

    Attributes:
        levels: it, as the only case.
        noise: noise of one run.
        rule: error rates and effort.
        pulled: outlying values that were winsorised.
    """

    levels: "Levels"
    noise: Noise
    rule: Rule
    pulled: int

    @property
    def n_base(self) -> float:
        """Values behind it."""
        return self.levels.n_base

    @property
    def sessions(self) -> float:
        """Sessions behind it."""
        return self.levels.sessions


@dataclass(frozen=True)
class Change:
    """How far a metric moved, without a verdict; fields as in `Judgement`.

    `p_value` is one-sided: the probability of a loss at least this large if there is none.
    """

    metric: str
    baseline: float
    measured: float
    change: float
    interval: tuple[float, float]
    runs_used: int
    p_value: float


@dataclass(frozen=True)
class _Decision:
    """What the starts made so far decide.

    Attributes:
        verdict: PASS, REGRESSION or INCONCLUSIVE.
        new, controls: fresh starts of each build that it rests on.
        mark: as in `Judgement`.
        need: which start is wanted next; empty: it is decided, or none is left.
        most: fresh starts of the new build, at most.
    """

    verdict: Verdict
    new: int
    controls: int = 0
    mark: Mark = ""
    need: Literal["", "new", "control"] = ""
    most: int = 0


@dataclass(frozen=True)
class _Seen:
    """The mean loss of the starts used, with its bounds L and U; positive is worse."""

    loss: float
    low: float
    high: float

    def interval(self, metric: Metric) -> tuple[float, float]:
        """The bounds as changes of the value, low first."""
        low, high = sorted(scale.change(metric, bound) for bound in (self.low, self.high))
        return low, high


def judge_performance(
    metric: str,
    baseline: Sequence[float],
    new: Sequence[float],
    *,
    band: float | None = None,
    sigma: float | None = None,
    between: float = BETWEEN,
    sessions: int | None = None,
    controls: Sequence[float] | None = None,
    policy: ControlPolicy = "auto",
    why_no_control: str = "",
    rule: Rule | None = None,
    widen: bool = False,
) -> Judgement:
    """`judge` of values in the metric's unit.

    Returns:
        the judgement; NOT_COMPARABLE where a value is 0 and may be (`Metric.may_be_zero`).

    Raises:
        InputError: as `judge`, an unknown metric, or values that cannot be judged.
    """
    found = performance_metric(metric)
    made = () if controls is None else controls
    if why := scale.has_zero(found, baseline, new, made):
        return unjudged(metric, Verdict.NOT_COMPARABLE, why, band=band)
    before = scale.badness(found, baseline, "baseline")
    after = scale.badness(found, new, "new")
    beside = scale.badness(found, made, "control") if len(made) else ()
    return judge(
        Comparison(
            found,
            before,
            after,
            band,
            sigma,
            between,
            sessions,
            None if controls is None else beside,
            policy,
            why_no_control,
            rule or _RULE,
            widen,
        )
    )


def judge(comparison: Comparison) -> Judgement:
    """Judge new runs against a measured baseline, as far as they decide.

    With controls, as `sequential.controlled` does. Without, with d the mean loss on the log scale,
    [L, U] its bounds and delta the margin, look n = 1, 2, … asks in this order: U < delta is PASS;
    L > 0, n >= 2 and L > 0 from the runs after the first alone is REGRESSION; else another fresh
    start is needed. It is IMPROVEMENT instead of PASS when the first two starts, each alone, show
    U < 0 and -d >= delta / 2. Runs after the look that decides, or beyond `rule.max_runs`, are not
    used. A worse new value never betters the verdict.

    Raises:
        InputError: no band, a noise that cannot be used, or values that cannot all be in one unit
            (`perfgate.judging.rules.scale.UNIT_FACTOR`).
    """
    metric = comparison.metric
    declared = declared_band(metric, comparison.band)
    margin = scale.margin(metric, declared)
    level = baseline_level(comparison)
    scale.check_unit(metric, comparison.baseline, comparison.new)
    notes, forced = [], forced_margin(level)
    if level.pulled:
        notes.append(f"{counted(level.pulled, 'outlying baseline value')} winsorised")
    if comparison.widen and forced > margin:
        margin = forced
        notes.append(widened_note(declared, scale.band(metric, forced), level.noise.sigma))
    elif not comparison.is_controlled and forced > margin:
        most = counted(comparison.rule.max_runs, "fresh start")
        least = _share(scale.band(metric, forced))
        notes.append(f"the band is below the noise floor: {most} resolve {least}")
    judged = _judged(comparison, level, margin, notes)
    too_wide = comparison.widen and scale.band(metric, forced) > WIDEST_BAND
    return _of_noisy_machine(judged) if too_wide and judged.verdict in _NO_WORSE else judged


def _judged(
    comparison: Comparison, level: BaselineLevel, margin: float, notes: list[str]
) -> Judgement:
    from perfgate.judging.rules.sequential import one_case

    metric, rule = comparison.metric, comparison.rule
    runs = list(comparison.new[: rule.max_runs])
    decided = _decide(comparison, level, margin)
    verdict, used = decided.verdict, decided.new
    seen = _seen(level, runs[:used])
    if verdict == Verdict.PASS and not decided.mark and seen.low > 0:
        notes.append("small loss within the band")
    gains = [
        bool(level.levels.improved(one_case(some), margin, rule)[0])
        for some in (runs[:used], runs[1:2])
        if verdict == Verdict.PASS and some
    ]
    if any(gains[:1]) and len(gains) == 1:
        notes.append("improved; a second fresh start would have to agree")
    elif any(gains[:1]) and used == 1 and gains[1]:
        verdict, used = Verdict.IMPROVEMENT, 2
        seen = _seen(level, runs[:2])
    elif any(gains[:1]):
        notes.append("improved, but not in each of the first two fresh starts")
    notes += _far_runs(metric, level.noise.sigma, runs[:used])
    if decided.mark == "HOST_SHIFT":
        notes.append("HOST_SHIFT: machine, not build")
    if decided.mark == "NO_CONTROL" and verdict == Verdict.REGRESSION:
        why = f" ({comparison.why_no_control})" if comparison.why_no_control else ""
        notes.append(f"no control: the machine is not excluded{why}")
    return Judgement(
        metric=metric.name,
        verdict=verdict,
        baseline=scale.value(metric, float(level.levels.centre[0])),
        measured=scale.value(metric, fmean(runs[:used])),
        change=scale.change(metric, seen.loss),
        interval=seen.interval(metric),
        band=scale.band(metric, margin),
        runs_used=used,
        needs_more_runs=bool(decided.need),
        reason=_reason(comparison, replace(decided, verdict=verdict, new=used), seen, margin),
        notes=tuple(notes),
        controls_used=decided.controls,
        needs_control=decided.need == "control",
        mark=decided.mark,
    )


def _decide(comparison: Comparison, level: BaselineLevel, margin: float) -> _Decision:
    from perfgate.judging.rules import sequential as many

    rule, against = comparison.rule, level.levels
    new = many.one_case(comparison.new[: rule.max_runs])
    made, most = new.shape[1], rule.max_runs
    if comparison.controls is None or comparison.policy == "none":
        found = many.alone(against, new, margin, rule)
        used = int(found.new[0])
        if found.codes[0] == many.PASS:
            return _Decision(Verdict.PASS, used)
        if found.codes[0] == many.REGRESSION:
            is_open = comparison.policy == "required"
            verdict = Verdict.INCONCLUSIVE if is_open else Verdict.REGRESSION
            return _Decision(verdict, used, mark="NO_CONTROL")
        return _Decision(Verdict.INCONCLUSIVE, made, need="new" if made < most else "", most=most)
    with_controls = _CONTROL_RULE.with_at_most(most)
    controls = many.one_case(comparison.controls)
    found = many.controlled(against, new, controls, margin, with_controls)
    code, there = found.codes[0], controls.shape[1]
    if code != many.INCONCLUSIVE:
        verdict = Verdict.REGRESSION if code == many.REGRESSION else Verdict.PASS
        mark: Mark = "HOST_SHIFT" if code == many.HOST_SHIFT else ""
        return _Decision(verdict, int(found.new[0]), int(found.controls[0]), mark)
    looks = with_controls.looks
    lacking = [look for look in looks if look[0] > made or look[1] > there]
    wanted, beside = (lacking or looks[-1:])[0]
    used = min(beside, there)
    broken = used and many.is_broken(against, controls[:, :used], margin, with_controls)[0]
    return _Decision(
        Verdict.INCONCLUSIVE,
        min(wanted, made),
        used,
        "MACHINE" if broken else "",
        "" if not lacking else "new" if made < wanted else "control",
        looks[-1][0],
    )


def _seen(level: BaselineLevel, runs: Sequence[float]) -> _Seen:
    from perfgate.judging.rules.sequential import one_case

    return _Seen(*(float(one[0]) for one in level.levels.bounds(one_case(runs), level.rule)))


def _reason(comparison: Comparison, decided: _Decision, seen: _Seen, margin: float) -> str:
    """One sentence: how far it moved, where the true change lies, and what follows from that."""
    metric, verdict = comparison.metric, decided.verdict
    (low, high, band), digits = _told_apart([*seen.interval(metric), scale.change(metric, margin)])
    change = with_interval(percent(scale.change(metric, seen.loss), digits), low, high)
    runs = counted(len(comparison.baseline), "baseline run")
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
    left = decided.most - decided.new if decided.need else 0
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
        ahead=f", {'a control is wanted' if decided.need == 'control' else may_decide(left)}",
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


def baseline_level(comparison: Comparison) -> BaselineLevel:
    """What the new runs are compared with; they may still be missing.

    Raises:
        InputError: a noise that cannot be used, or too few values to measure it.
    """
    from perfgate.judging.rules import sequential

    values, prior_dof = sorted(comparison.baseline), comparison.rule.prior_dof
    prior = comparison.sigma
    prior = comparison.metric.family.sigma if prior is None else checked_sigma(prior)
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
    base, between = sequential.one_case(values), comparison.between
    behind = None if comparison.sessions is None else max(1, comparison.sessions)
    # The new runs' spread stays out: a build that turned noisy must not earn a wider interval.
    found = sequential.levels(base, prior, sessions=behind, between=between, prior_dof=prior_dof)
    parts = [f"prior {prior:.2%} with {prior_dof:g} degrees of freedom"] if prior_dof else []
    if len(values) > 1:
        parts.append(f"spread of {len(values)} runs")
    return BaselineLevel(
        found,
        Noise(float(found.sigma[0]), found.dof, " and ".join(parts), between),
        comparison.rule,
        int((sequential.winsorised(base, prior) != base).sum()),
    )


def forced_margin(level: BaselineLevel) -> float:
    """The band that the noise forces: what `level.rule.max_runs` starts find, on the log scale."""
    return float(level.levels.smallest_detectable(level.rule.max_runs, level.rule.alpha)[0])


def widened_note(declared: float, wide: float, sigma: float) -> str:
    """That a band is wider than the scenario says, and why; all as fractions."""
    return (
        f"band widened from {_share(declared)} to {_share(wide)}, the smallest detectable with "
        f"this machine's noise of {_share(sigma)} per start"
    )


def _of_noisy_machine(judged: Judgement) -> Judgement:
    """What is left of a PASS whose band would exclude hardly any loss."""
    seen = "" if judged.change is None else f"{percent(judged.change)}: "
    return replace(
        judged,
        verdict=Verdict.INCONCLUSIVE,
        reason=f"{seen}{TOO_NOISY}",
        needs_more_runs=False,
        needs_control=False,
        mark="MACHINE",
    )


def describe_change(
    metric: str,
    baseline: Sequence[float],
    new: Sequence[float],
    *,
    sigma: float | None = None,
    between: float = BETWEEN,
    sessions: int | None = None,
    rule: Rule | None = None,
) -> Change:
    """`describe` of values in the metric's unit; errors as of `judge_performance`."""
    found = performance_metric(metric)
    if why := scale.has_zero(found, baseline, new):
        raise InputError(why)
    before = scale.badness(found, baseline, "baseline")
    after = scale.badness(found, new, "new")
    return describe(
        Comparison(found, before, after, None, sigma, between, sessions, rule=rule or _RULE)
    )


def describe(comparison: Comparison) -> Change:
    """How far a metric moved over all new runs: for metrics that are reported and do not gate.

    Raises:
        InputError: as `judge`; no band is needed.
    """
    metric, new = comparison.metric, comparison.new
    level = baseline_level(comparison)
    scale.check_unit(metric, comparison.baseline, new)
    seen = _seen(level, new)
    return Change(
        metric.name,
        scale.value(metric, float(level.levels.centre[0])),
        scale.value(metric, fmean(new)),
        scale.change(metric, seen.loss),
        seen.interval(metric),
        len(new),
        t_tail(seen.loss / float(level.levels.standard_error(len(new))[0]), level.noise.dof),
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
