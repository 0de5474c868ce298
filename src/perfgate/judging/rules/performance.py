"""Performance: a few expensive runs against a measured baseline.

One value is one fresh start of the engine; the sequential rule itself is in
`perfgate.judging.rules.sequential_test`. Against a document: `perfgate.judging.rules.documented`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric, is_accuracy, lookup
from perfgate.core.rule import ControlPolicy, Rule
from perfgate.core.verdict import Judgement, Verdict, counted, percent, unjudged
from perfgate.judging.rules import noise as noises
from perfgate.judging.rules import scale
from perfgate.judging.rules.baseline_level import BaselineLevel
from perfgate.judging.rules.controls import Controls
from perfgate.judging.rules.noise import BETWEEN
from perfgate.judging.rules.sequential_test import judge

_RULE = Rule()
_NO_WORSE = (Verdict.PASS, Verdict.IMPROVEMENT)

# Why a machine whose noise forces so wide a band proves no PASS.
TOO_NOISY = (
    f"machine too noisy: with a band beyond {percent(noises.WIDEST_BAND, 0, sign='')} a PASS would "
    "claim hardly anything; measure again when it is idle"
)


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
    """Judge new runs against a measured baseline, as far as they decide.

    With controls, as `rules.controlled_test` does. Without, with d the mean loss on the log
    scale, [L, U] its bounds and delta the margin, look n = 1, 2, … asks in this order: U < delta is
    PASS; L > 0, n >= 2 and L > 0 from the runs after the first alone is REGRESSION; else another
    fresh start is needed. It is IMPROVEMENT instead of PASS when the first two starts, each alone,
    show U < 0 and -d >= delta / 2. Runs after the look that decides, or beyond `rule.max_runs`, are
    not used. A worse new value never betters the verdict.

    Args:
        metric: canonical name of a performance metric.
        baseline: values of accepted runs, one per fresh start, in any order.
        new: values of the new build, one per fresh start, in the order measured.
        between: the share of the variance that a whole session has in common.
        sessions: sessions behind the baseline; None: as many as values.
        controls: values of the baseline's build in the new build's session, in the order measured;
            None: it cannot be started.
        policy: whether controls are asked for, and needed.
        why_no_control: why the other build cannot be started, in words; empty: nobody asked.
        band: the loss that counts, as a fraction; None: that of the metric's family.
        sigma: prior noise of one run on the log scale; None: that of the family.
        rule: error rates and effort; None: `Rule()`.
        widen: widen the band to what the noise lets `rule.max_runs` runs resolve. Where that is
            wider than 25 %, nothing passes: the machine is too noisy (statistics §9).

    Returns:
        the judgement; NOT_COMPARABLE where a value is 0 and may be (`Metric.may_be_zero`).

    Raises:
        InputError: unknown metric, no band, values that cannot be judged or that cannot all be in
            one unit (`perfgate.judging.rules.scale.UNIT_FACTOR`), or no baseline value.
    """
    found = performance_metric(metric)
    made = () if controls is None else controls
    if why := scale.has_zero(found, baseline, new, made):
        return unjudged(metric, Verdict.NOT_COMPARABLE, why, band=band)
    return judge_on_scale(
        found,
        scale.badness(found, baseline, "baseline"),
        scale.badness(found, new, "new"),
        band=band,
        sigma=sigma,
        between=between,
        sessions=sessions,
        controls=Controls(
            None if controls is None else _controls_on_scale(found, controls),
            policy,
            why_no_control,
        ),
        rule=rule,
        widen=widen,
    )


def _controls_on_scale(metric: Metric, controls: Sequence[float]) -> tuple[float, ...]:
    return scale.badness(metric, controls, "control") if len(controls) else ()


def judge_on_scale(
    metric: Metric,
    baseline: Sequence[float],
    new: Sequence[float],
    *,
    band: float | None,
    sigma: float | None,
    between: float = BETWEEN,
    sessions: int | None = None,
    controls: Controls | None = None,
    rule: Rule | None,
    widen: bool = False,
) -> Judgement:
    """`judge_performance` of values that are on the scale of `rules.scale` already."""
    declared = declared_band(metric, band)
    margin = scale.margin(metric, declared)
    level, notes = baseline_level(
        metric,
        baseline,
        sigma,
        rule or _RULE,
        between=between,
        sessions=sessions,
    )
    scale.check_unit(metric, baseline, new)
    if not widen:
        if controls is None or not controls.can_be_started:
            notes += _floor_note(level, margin)
        return judge(level, new, margin, notes, controls)
    forced = forced_margin(level)
    if forced > margin:
        margin = forced
        notes.append(widened_note(declared, scale.band(metric, forced), level.noise.sigma))
    judged = judge(level, new, margin, notes, controls)
    if scale.band(metric, forced) > noises.WIDEST_BAND and judged.verdict in _NO_WORSE:
        return _of_noisy_machine(judged)
    return judged


def forced_margin(level: BaselineLevel) -> float:
    """The band that the noise forces: what `level.rule.max_runs` starts find, on the log scale."""
    return level.smallest_detectable(level.rule.max_runs)


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
    """How far a metric moved over all new runs: for metrics that are reported and do not gate.

    Arguments and errors as in `judge_performance`; no band is needed.
    """
    found = performance_metric(metric)
    if why := scale.has_zero(found, baseline, new):
        raise InputError(why)
    before = scale.badness(found, baseline, "baseline")
    values = scale.badness(found, new, "new")
    level, _ = baseline_level(
        found, before, sigma, rule or _RULE, between=between, sessions=sessions
    )
    scale.check_unit(found, before, values)
    look = level.look(values)
    return Change(
        metric,
        scale.value(found, level.centre),
        scale.value(found, fmean(values)),
        scale.change(found, look.loss),
        level.interval(look),
        len(values),
        level.p_value(look),
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


def baseline_level(
    metric: Metric,
    values: Sequence[float],
    sigma: float | None,
    rule: Rule,
    *,
    between: float = BETWEEN,
    sessions: int | None = None,
) -> tuple[BaselineLevel, list[str]]:
    """Measured values as what new runs are compared with, and notes on them.

    Args:
        metric: a performance metric.
        values: accepted runs on the log scale, in any order.
        sigma, rule, between, sessions: as in `judge_performance`.

    Raises:
        InputError: a noise that cannot be used, or too few values to measure it.
    """
    prior = metric.family.sigma if sigma is None else noises.checked_sigma(sigma)
    kept, pulled = noises.winsorise(values, prior)
    notes = [f"{counted(pulled, 'outlying baseline value')} winsorised"] if pulled else []
    # The new runs' spread stays out: a build that turned noisy must not earn a wider interval.
    noise = replace(noises.pooled(prior, rule.prior_dof, [kept]), between=between)
    against = counted(len(kept), "baseline run")
    behind = len(kept) if sessions is None else sessions
    level = BaselineLevel(
        metric, fmean(kept), len(kept), noise, rule, against, sessions=max(1, behind)
    )
    return level, notes


def _floor_note(level: BaselineLevel, margin: float) -> list[str]:
    most = level.rule.max_runs
    least = level.smallest_detectable(most)
    if margin >= least:
        return []
    band = scale.band(level.metric, least)
    return [
        f"the band is below the noise floor: {counted(most, 'fresh start')} resolve {_share(band)}"
    ]


def _share(share: float) -> str:
    return percent(share, sign="")
