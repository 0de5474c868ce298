"""Performance: a few expensive runs against a measured baseline.

One value is one fresh start of the engine; the sequential rule itself is in
`perfgate.gate.sequential_test`. Against a document: `perfgate.gate.documented`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric, is_accuracy, lookup
from perfgate.gate import noise as noises
from perfgate.gate import scale
from perfgate.gate.baseline_level import BaselineLevel
from perfgate.gate.controls import ControlPolicy, Controls
from perfgate.gate.noise import BETWEEN
from perfgate.gate.rule import Rule
from perfgate.gate.sequential_test import judge
from perfgate.gate.verdict import Judgement, Verdict, counted, percent, unjudged

_RULE = Rule()


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
    measured_noise: bool = False,
) -> Judgement:
    """Judge new runs against a measured baseline, as far as they decide.

    With controls, as `perfgate.gate.controlled_test` does. Without, with d the mean loss on the log
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
        sigma: prior noise of one run on the log scale; None: that of the family, or with
            `measured_noise` the weak prior of `perfgate.gate.noise`.
        rule: error rates and effort; None: `Rule()`.
        measured_noise: this machine's own noise decides. Error rates and the prior's weight are
            then those of `perfgate.gate.noise` (of `rule` only `max_runs` counts), and the band is
            widened to what that noise lets the gate resolve.

    Returns:
        the judgement; NOT_COMPARABLE where a value is 0 and may be (`Metric.may_be_zero`).

    Raises:
        InputError: unknown metric, no band, values that cannot be judged or that cannot all be in
            one unit (`perfgate.gate.scale.UNIT_FACTOR`), or too few baseline values to measure the
            noise.
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
        measured_noise=measured_noise,
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
    measured_noise: bool = False,
) -> Judgement:
    """`judge_performance` of values that are on the scale of `perfgate.gate.scale` already."""
    declared = declared_band(metric, band)
    margin = scale.margin(metric, declared)
    level, notes = baseline_level(
        metric,
        baseline,
        sigma,
        rule or _RULE,
        measured_noise,
        between=between,
        sessions=sessions,
    )
    scale.check_unit(metric, baseline, new)
    if measured_noise:
        wide = measured_margin(level, margin)
        if wide > margin:
            notes.append(
                f"band widened from {_share(declared)} to {_share(scale.band(metric, wide))}, the "
                f"smallest detectable with this machine's noise of {_share(level.noise.sigma)} "
                "per start"
            )
        margin = wide
    elif controls is None or not controls.can_be_started:
        notes += _floor_note(level, margin)
    return judge(level, new, margin, notes, controls)


def describe_change(
    metric: str,
    baseline: Sequence[float],
    new: Sequence[float],
    *,
    sigma: float | None = None,
    between: float = BETWEEN,
    sessions: int | None = None,
    rule: Rule | None = None,
    measured_noise: bool = False,
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
        found, before, sigma, rule or _RULE, measured_noise, between=between, sessions=sessions
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


def performance_metric(name: str, otherwise: str = "perfgate.gate.accuracy") -> Metric:
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
    measured_noise: bool,
    *,
    between: float = BETWEEN,
    sessions: int | None = None,
) -> tuple[BaselineLevel, list[str]]:
    """Measured values as what new runs are compared with, and notes on them.

    Args:
        metric: a performance metric.
        values: accepted runs on the log scale, in any order.
        sigma, rule, measured_noise, between, sessions: as in `judge_performance`.

    Raises:
        InputError: a noise that cannot be used, or too few values to measure it.
    """
    prior = metric.family.sigma if sigma is None else noises.checked_sigma(sigma)
    if measured_noise:
        if len(values) < noises.FEWEST_TO_MEASURE_NOISE:
            raise InputError(
                f"too few baseline runs to measure this machine's noise in {metric.name}",
                found=len(values),
                expected=f"{noises.FEWEST_TO_MEASURE_NOISE} or more",
                hint="measure the reference again with 4 or 5 fresh starts (gate.reference_starts)",
            )
        prior = noises.WEAK_SIGMA if sigma is None else sigma
        rule = measured_rule(rule)
    kept, pulled = noises.winsorise(values, prior)
    notes = [f"{counted(pulled, 'outlying baseline value')} winsorised"] if pulled else []
    # The new runs' spread stays out: a build that turned noisy must not earn a wider interval.
    noise = noises.pooled(prior, rule.prior_dof, [kept])
    if not measured_noise:
        noise = replace(noise, between=between)
    against = counted(len(kept), "baseline run")
    behind = len(kept) if sessions is None else sessions
    level = BaselineLevel(
        metric, fmean(kept), len(kept), noise, rule, against, sessions=max(1, behind)
    )
    return level, notes


def measured_rule(rule: Rule) -> Rule:
    """The rule of a machine that measures its own noise; of `rule` only `max_runs` counts."""
    return Rule(noises.MEASURED_ALPHA, noises.MEASURED_BETA, rule.max_runs, noises.WEAK_DOF)


def measured_margin(level: BaselineLevel, declared: float) -> float:
    """The margin of such a machine: what its noise lets the gate resolve, at least `declared`."""
    return noises.measured_margin(
        level.noise, n_base=level.n_base, max_runs=level.rule.max_runs, floor=declared
    )


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
