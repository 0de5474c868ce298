"""Performance: the sequential rule for a few expensive runs against a measured baseline.

One value is one fresh start of the engine. Each further start is one more look at the same data,
so the rule, its error rates and the reasons for its order are those of docs/verdicts.md, "The rule".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from perfgate.errors import InputError
from perfgate.gate import noise as noise_of
from perfgate.gate import scale
from perfgate.gate.noise import Noise
from perfgate.gate.verdict import Judgement, Verdict
from perfgate.metrics import Metric, is_accuracy, lookup

# From here on a pipeline's false alarms add up: 120 tests at alpha 0.025 give one in 7 % of the
# pipelines, at 0.005 in 1 % (simulated, docs/verdicts.md, "Error rates").
_MANY_TESTS = 20
_ALPHA_OF_MANY_TESTS = 0.005


@dataclass(frozen=True)
class Rule:
    """Error rates and effort of the gate.

    Attributes:
        alpha: one-sided error rate, per look, of calling a loss real.
        beta: one-sided error rate, per look, of excluding a loss of the band.
        max_runs: fresh starts of the new build, at most; REGRESSION needs at least two.
        prior_dof: how many observations the prior sigma is worth.
    """

    alpha: float = 0.025
    beta: float = 0.025
    max_runs: int = 5
    prior_dof: float = 10

    def __post_init__(self) -> None:
        rates = (self.alpha, self.beta)
        if not all(0 < rate < 0.5 for rate in rates) or self.max_runs < 1 or self.prior_dof < 0:
            raise InputError(
                "the gate's rule cannot be used",
                found=self,
                expected="0 < alpha, beta < 0.5, at least one run, prior_dof of 0 or more",
            )


def rule_for(tests: int) -> Rule:
    """The rule of a pipeline with so many gate tests: alpha 0.005 beyond 20, else 0.025.

    Raises:
        InputError: fewer than one test.
    """
    if tests < 1:
        raise InputError("a gate without tests", found=tests, expected="at least one")
    return Rule(alpha=_ALPHA_OF_MANY_TESTS) if tests > _MANY_TESTS else Rule()


@dataclass(frozen=True)
class Change:
    """How far a metric moved, without a verdict; fields as in `Judgement`."""

    metric: str
    baseline: float
    measured: float
    change: float
    interval: tuple[float, float]
    runs_used: int


@dataclass(frozen=True)
class _Look:
    """What a number of new runs say: mean loss on the log scale with its bounds, positive is bad.

    `low` is exceeded by the true loss but for a share alpha, `high` undercut but for beta.
    """

    runs: int
    loss: float
    low: float
    high: float


@dataclass(frozen=True)
class _Comparison:
    """The baseline, on the log scale, with the noise that new runs are judged by."""

    metric: Metric
    centre: float
    n_base: int
    winsorised: int
    noise: Noise
    rule: Rule

    def look(self, new: Sequence[float]) -> _Look:
        loss = fmean(new) - self.centre
        error = noise_of.standard_error(self.noise, self.n_base, len(new))
        low = loss - noise_of.t_quantile(1 - self.rule.alpha, self.noise.dof) * error
        high = loss + noise_of.t_quantile(1 - self.rule.beta, self.noise.dof) * error
        return _Look(len(new), loss, low, high)

    def change(self, look: _Look, new: Sequence[float]) -> Change:
        bounds = scale.change(self.metric, look.low), scale.change(self.metric, look.high)
        return Change(
            self.metric.name,
            scale.value(self.metric, self.centre),
            scale.value(self.metric, fmean(new[: look.runs])),
            scale.change(self.metric, look.loss),
            (min(bounds), max(bounds)),
            look.runs,
        )


def judge_performance(
    metric: str,
    baseline: Sequence[float],
    new: Sequence[float],
    *,
    band: float | None = None,
    sigma: float | None = None,
    rule: Rule | None = None,
    measured_noise: bool = False,
) -> Judgement:
    """Judge new runs against a measured baseline, as far as they decide.

    With d the mean loss on the log scale, [L, U] its bounds and delta the margin, look n = 1, 2, …
    asks in this order: U < delta is PASS; L > 0, n >= 2 and L > 0 from the runs after the first
    alone is REGRESSION; else another fresh start is needed. IMPROVEMENT instead of PASS when the
    first two starts, each alone, show U < 0 and -d >= delta / 2. Runs after the look that decides,
    or beyond `rule.max_runs`, are not used. Making any new value worse never betters the verdict.

    Args:
        metric: canonical name of a performance metric.
        baseline: values of accepted runs, one per fresh start, in any order.
        new: values of the new build, one per fresh start, in the order measured.
        band: the loss that counts, as a fraction; None: that of the metric's family.
        sigma: prior noise of one run, log scale; None: that of the family (with `measured_noise`:
            `perfgate.gate.noise.WEAK_SIGMA`).
        rule: error rates and effort; None: `Rule()`.
        measured_noise: the machine's own noise decides: a weak prior, the error rates of
            `perfgate.gate.noise`, and a band no narrower than that noise lets the gate resolve.

    Raises:
        InputError: unknown metric, no band, or values that cannot be judged.
    """
    looked_up = _performance_metric(metric)
    declared = looked_up.family.band if band is None else band
    if declared is None:
        raise InputError(
            f"{metric} is only reported: it has no default band and cannot gate without one",
            hint=f"give {metric} a band in the scenario's gate.bands, or take it out of "
            "gate.metrics",
        )
    margin = scale.margin(looked_up, declared)
    comparison = _compare(looked_up, baseline, sigma, rule or Rule(), measured_noise)
    notes = []
    if comparison.winsorised:
        notes.append(f"{comparison.winsorised} outlying baseline value(s) winsorised, none dropped")
    if measured_noise:
        declared_margin = margin
        margin = noise_of.measured_margin(
            comparison.noise,
            n_base=comparison.n_base,
            max_runs=comparison.rule.max_runs,
            floor=margin,
        )
        if margin > declared_margin:
            notes.append(
                f"band widened from {declared:.1%} to {scale.band(looked_up, margin):.1%}: what "
                f"this machine's noise of {comparison.noise.sigma:.1%} a run lets the gate resolve"
            )
    else:
        notes += _floor_note(comparison, margin)
    return _judge(comparison, scale.badness(looked_up, new, "new"), margin, notes)


def describe_change(
    metric: str,
    baseline: Sequence[float],
    new: Sequence[float],
    *,
    sigma: float | None = None,
    rule: Rule | None = None,
    measured_noise: bool = False,
) -> Change:
    """How far a metric moved over all new runs, for metrics that are reported and do not gate.

    Arguments and errors as in `judge_performance`; no band is needed.
    """
    looked_up = _performance_metric(metric)
    comparison = _compare(looked_up, baseline, sigma, rule or Rule(), measured_noise)
    losses = scale.badness(looked_up, new, "new")
    return comparison.change(comparison.look(losses), losses)


def _performance_metric(name: str) -> Metric:
    if is_accuracy(name):
        raise InputError(
            "an accuracy is not judged as performance",
            found=name,
            hint="use perfgate.gate.accuracy",
        )
    return lookup(name)


def _compare(
    metric: Metric,
    baseline: Sequence[float],
    sigma: float | None,
    rule: Rule,
    measured_noise: bool,
) -> _Comparison:
    values = scale.badness(metric, baseline, "baseline")
    if measured_noise:
        fewest = noise_of.FEWEST_TO_MEASURE_NOISE
        if len(values) < fewest:
            raise InputError(
                f"too few baseline runs to measure this machine's noise in {metric.name}",
                found=len(values),
                expected=f"{fewest} or more",
                hint="raise gate.reference_starts to 4 or 5 and measure the reference again",
            )
        sigma = noise_of.WEAK_SIGMA if sigma is None else sigma
        rule = replace(
            rule,
            alpha=noise_of.MEASURED_ALPHA,
            beta=noise_of.MEASURED_BETA,
            prior_dof=noise_of.WEAK_DOF,
        )
    prior = metric.family.sigma if sigma is None else sigma
    kept, winsorised = noise_of.winsorise(values, prior)
    # The spread of the new runs stays out: a build that turned noisy must not earn a wider interval.
    noise = noise_of.pooled(prior, rule.prior_dof, [kept])
    return _Comparison(metric, fmean(kept), len(kept), winsorised, noise, rule)


def _floor_note(comparison: _Comparison, margin: float) -> list[str]:
    runs = comparison.rule.max_runs
    least = noise_of.smallest_detectable(
        comparison.noise, comparison.n_base, runs, alpha=comparison.rule.alpha
    )
    if margin >= least:
        return []
    band = scale.band(comparison.metric, least)
    return [f"the band is below the noise floor: {runs} fresh starts resolve {band:.1%}"]


def _judge(
    comparison: _Comparison, losses: Sequence[float], margin: float, notes: list[str]
) -> Judgement:
    most = comparison.rule.max_runs
    verdict = Verdict.INCONCLUSIVE
    for runs in range(1, min(len(losses), most) + 1):
        look = comparison.look(losses[:runs])
        if look.high < margin:
            verdict = Verdict.PASS
            break
        # The first run made us suspect; only runs made after the suspicion can confirm it.
        if look.low > 0 and runs >= 2 and comparison.look(losses[1:runs]).low > 0:
            verdict = Verdict.REGRESSION
            break
    if verdict == Verdict.PASS and look.low > 0:
        notes.append("small loss within the band")
    if verdict == Verdict.PASS and _improved(look, margin):
        if len(losses) == 1 or most == 1:
            notes.append("improved; a second fresh start would have to agree")
        elif look.runs == 1 and _improved(comparison.look(losses[1:2]), margin):
            verdict = Verdict.IMPROVEMENT
            look = comparison.look(losses[:2])
        else:
            notes.append("improved, but not in each of the first two fresh starts")
    more = verdict == Verdict.INCONCLUSIVE and look.runs < most
    band = scale.band(comparison.metric, margin)
    change = comparison.change(look, losses)
    return Judgement(
        metric=comparison.metric.name,
        verdict=verdict,
        baseline=change.baseline,
        measured=change.measured,
        change=change.change,
        interval=change.interval,
        band=band,
        runs_used=look.runs,
        needs_more_runs=more,
        reason=_reason(verdict, comparison, look, change, margin),
        notes=tuple(notes),
    )


def _improved(look: _Look, margin: float) -> bool:
    return look.high < 0 and -look.loss >= margin / 2


def _reason(
    verdict: Verdict, comparison: _Comparison, look: _Look, change: Change, margin: float
) -> str:
    metric = comparison.metric
    band = scale.change(metric, margin)
    worst = scale.change(metric, look.high)
    best = scale.change(metric, look.low)
    after = f"after {look.runs} fresh start(s) against {comparison.n_base} of the baseline"
    moved = f"changed by {change.change:+.1%}"
    if verdict == Verdict.IMPROVEMENT:
        return f"{moved}, at least {worst:+.1%}, and two fresh starts agree, {after}"
    if verdict == Verdict.PASS:
        return f"{moved}, at worst {worst:+.1%}, so a loss of {band:+.1%} is excluded, {after}"
    if verdict == Verdict.REGRESSION:
        return (
            f"{moved}, at best {best:+.1%} and perhaps {worst:+.1%} (band {band:+.1%}), and the "
            f"starts after the first confirm it, {after}"
        )
    proved = "a loss is likely but not confirmed" if look.low > 0 else "no loss is proved"
    left = comparison.rule.max_runs - look.runs
    ahead = f"up to {left} more may decide" if left else "no more are allowed"
    return (
        f"{moved}, between {best:+.1%} and {worst:+.1%}: {proved}, yet a loss of {band:+.1%} is "
        f"not excluded, {after}; {ahead}"
    )


# A value from a document comes without a spread, perhaps from another machine.
_ENVIRONMENT_SIGMA = 0.03
_LEAST_TOLERANCE = 0.10
# Both sigmas are stipulated, not estimated, so the bounds are normal ones (no degrees of freedom).
_DOCUMENTED_RULE = Rule(alpha=0.05, beta=0.05, max_runs=2)


def judge_documented(
    metric: str,
    reference: float,
    new: Sequence[float],
    tolerance: float = _LEAST_TOLERANCE,
    *,
    sigma: float | None = None,
) -> Judgement:
    """placeholder"""
    raise NotImplementedError(math.inf)
