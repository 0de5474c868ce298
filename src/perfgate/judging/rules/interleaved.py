"""Interleaved starts: a machine that measures its own reference in between, judged by its noise.

Reference R and new build N take turns, so that a machine that drifts touches both alike. The noise
is that which R showed: nothing is known of a laptop beforehand. The rule, its constants and its
simulated error rates: statistics §9.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric
from perfgate.core.rule import FEWEST_REFERENCES, FIRST_LOOK
from perfgate.core.verdict import Judgement, Verdict, counted, percent, unjudged, with_interval
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import (
    OWN_DOF,
    OWN_SIGMA,
    WIDEST_BAND,
    Noise,
    checked_sigma,
    median,
    sum_of_squares,
    t_quantile,
)
from perfgate.judging.rules.performance import (
    TOO_NOISY,
    declared_band,
    performance_metric,
    widened_note,
)


@dataclass(frozen=True)
class InterleavedRule:
    """Constants of the test (statistics §9).

    Attributes:
        alpha: one-sided error rate of calling a loss real.
        beta: of excluding a loss of the band.
        clip: robust standard deviations from the median beyond which a reference is pulled in.
        least_reach: the robust standard deviation, at least; log scale.
        sigma: prior noise of one start, log scale.
        dof: how many observations it is worth.
        most_earlier: degrees of freedom that earlier sessions of this machine add, at most.
        half: the share of the band that a start must lie beyond, …
        needed: … and how many must.
        widest: the forced band, as a fraction, from which on the machine is too noisy.
        planned: references, and new starts at most, that the band is made for.
        looks: new starts after which it looks, in order.
    """

    alpha: float = 0.002
    beta: float = 0.05
    clip: float = 3.0
    least_reach: float = 0.01
    sigma: float = OWN_SIGMA
    dof: float = OWN_DOF
    most_earlier: float = 15
    half: float = 0.5
    needed: int = 4
    widest: float = WIDEST_BAND
    planned: int = 6
    looks: tuple[int, ...] = (4, 6)

    def __post_init__(self) -> None:
        rising = self.looks and all(a < b for a, b in zip(self.looks, self.looks[1:], strict=False))
        if not (
            0 < self.alpha < 0.5
            and 0 < self.beta < 0.5
            and 0 < self.half <= 1
            and 0 < self.widest < 1
            and self.dof > 0
            and self.clip > 0
            and self.least_reach > 0
            and self.most_earlier >= 0
            and rising
            and self.looks[0] >= 1
            and self.planned >= self.looks[-1]
        ):
            raise InputError(
                "the gate's rule for interleaved starts cannot be used",
                found=self,
                expected="0 < alpha, beta < 0.5; 0 < half, widest <= 1; dof, clip, least_reach "
                "above 0; looks that rise, the last one planned at most",
            )
        checked_sigma(self.sigma)


def rule_for(most: int) -> InterleavedRule:
    """The rule where so many new starts are allowed: looks at 4, 6, … and at the last."""
    most = max(1, most)
    looks = (*range(FIRST_LOOK, most, 2), most)
    return InterleavedRule(planned=most, looks=looks)


@dataclass(frozen=True)
class OwnLevel:
    """The reference that a machine measured of itself.

    Attributes:
        centre: its level on the log scale.
        noise: of one start; from the reference alone: a build that turned noisy earns no band.
        starts: references behind it.
        pulled: outlying references that were pulled in.
    """

    centre: float
    noise: Noise
    starts: int
    pulled: int = 0

    def error(self, new: int) -> float:
        """Standard error of the mean of so many new starts: s √(1/n + 1/R)."""
        return self.noise.sigma * math.sqrt(1 / new + 1 / self.starts)

    def forced_margin(self, rule: InterleavedRule) -> float:
        """The band that the noise forces: (t(1-α) + t(1-β)) s √(1/n + 1/R), log scale."""
        dof = self.noise.dof
        reach = t_quantile(1 - rule.alpha, dof) + t_quantile(1 - rule.beta, dof)
        return reach * self.error(rule.planned)


@dataclass(frozen=True)
class InterleavedDecision:
    """What the starts decide.

    Attributes:
        verdict: PASS, IMPROVEMENT, REGRESSION or INCONCLUSIVE.
        new: new starts that it rests on.
        low: the true loss lies below with probability α at most.
        high: above with β.
        needs_more: whether another new start may decide.
    """

    verdict: Verdict
    new: int
    low: float
    high: float
    needs_more: bool = False


def own_level(
    references: Sequence[float],
    earlier: Sequence[Sequence[float]] = (),
    rule: InterleavedRule | None = None,
) -> OwnLevel:
    """Level and noise from the references of this session, and the spread of earlier ones.

        c = median(R); r = max(1.4826 MAD, least_reach); k = clip(R, c - 3r, c + 3r)
        s² = (ν₀ s₀² + Σ(k - mean k)² + H v) / (ν₀ + n - 1 + H)

    with v the pooled variance within the earlier sessions, each clipped alike, and H its degrees of
    freedom, 15 at most.

    Args:
        references: of this session, log scale, in any order.
        earlier: those of this machine's earlier sessions, one group each.
        rule: constants.
    """
    rule = rule or InterleavedRule()
    kept, pulled = _clipped(references, rule)
    dof = rule.dof + len(kept) - 1
    squares = rule.dof * rule.sigma**2 + sum_of_squares(kept)
    source = [f"prior {rule.sigma:.2%} with {rule.dof:g} degrees of freedom"]
    source.append(f"spread of {len(kept)} interleaved references")
    groups = [_clipped(group, rule)[0] for group in earlier if len(group) > 1]
    if groups:
        within = sum(len(group) - 1 for group in groups)
        counted_dof = min(rule.most_earlier, within)
        squares += counted_dof * sum(map(sum_of_squares, groups)) / within
        dof += counted_dof
        source.append(f"spread within {counted(len(groups), 'earlier session')}")
    noise = Noise(math.sqrt(squares / dof), dof, ", ".join(source))
    return OwnLevel(fmean(kept), noise, len(kept), pulled)


def _clipped(values: Sequence[float], rule: InterleavedRule) -> tuple[list[float], int]:
    centre = median(values)
    spread = 1.4826 * median([abs(x - centre) for x in values])
    reach = rule.clip * max(spread, rule.least_reach)
    kept = [min(max(x, centre - reach), centre + reach) for x in values]
    return kept, sum(abs(x - centre) > reach for x in values)


def decide(
    level: OwnLevel,
    new: Sequence[float],
    margin: float,
    rule: InterleavedRule,
    *,
    too_noisy: bool = False,
) -> InterleavedDecision:
    """Look where the rule says and stop at the first look that decides.

    With d = mean(N) - level, n new starts, SE = √(1/n + 1/R):

        PASS        d + t(1-β) s SE < margin
        REGRESSION  d - t(1-α) max(s, s pooled with N's spread) SE > 0, and at least four N over
                    half the margin

    On a machine that is too noisy nothing passes, and a REGRESSION needs every N over the whole
    margin: of so wide a margin, only what cannot be overlooked is told.

    Args:
        level: the reference.
        new: losses of the new build on the log scale, in the order measured; at least one.
        margin: the band on that scale: the declared one, or wider, what the noise forces.
        rule: constants.
        too_noisy: whether the noise forces a band that is too wide.
    """
    looks = rule.looks[:1] if too_noisy else rule.looks  # more starts narrow no band
    for count in looks:
        if count <= len(new):
            verdict = _look(level, new[:count], margin, rule, too_noisy=too_noisy)
            if verdict != Verdict.INCONCLUSIVE:
                return InterleavedDecision(verdict, count, *_bounds(level, new[:count], rule))
    used = min(len(new), looks[-1])
    low, high = _bounds(level, new[:used], rule)
    return InterleavedDecision(Verdict.INCONCLUSIVE, used, low, high, used < looks[-1])


def _bounds(level: OwnLevel, new: Sequence[float], rule: InterleavedRule) -> tuple[float, float]:
    """[L, U] of the true loss after these new starts."""
    s, dof, mean = level.noise.sigma, level.noise.dof, fmean(new)
    loss, error = mean - level.centre, math.sqrt(1 / len(new) + 1 / level.starts)
    # A build that turned noisy proves less; it never earns a narrower bound.
    squares = dof * s * s + math.fsum((x - mean) ** 2 for x in new)
    wide = max(s, math.sqrt(squares / (dof + len(new) - 1)))
    low = loss - t_quantile(1 - rule.alpha, dof) * wide * error
    return low, loss + t_quantile(1 - rule.beta, dof) * s * error


def _look(
    level: OwnLevel,
    new: Sequence[float],
    margin: float,
    rule: InterleavedRule,
    *,
    too_noisy: bool,
) -> Verdict:
    low, high = _bounds(level, new, rule)
    gaps = [x - level.centre for x in new]
    if high < margin and not too_noisy:
        gained = sum(gap < -rule.half * margin for gap in gaps) >= rule.needed
        return Verdict.IMPROVEMENT if high < 0 and gained else Verdict.PASS
    lost = sum(gap > rule.half * margin for gap in gaps) >= rule.needed
    if low > 0 and lost and (not too_noisy or min(gaps) > margin):
        return Verdict.REGRESSION
    return Verdict.INCONCLUSIVE


def judge_interleaved(
    metric: str,
    references: Sequence[float],
    new: Sequence[float],
    *,
    earlier: Sequence[Sequence[float]] = (),
    band: float | None = None,
    rule: InterleavedRule | None = None,
) -> Judgement:
    """Judge new starts against references that took turns with them in one session.

    Args:
        metric: canonical name of a performance metric.
        references: its values, one per fresh start of the unchanged build; three at least.
        new: those of the new build, in the order measured.
        earlier: references of this machine's earlier sessions, one group each.
        band: the loss that counts, as a fraction; None: that of the metric's family. Widened to
            what the noise forces.
        rule: constants; None: six references and six new starts.

    Raises:
        InputError: unknown metric, no band, values that cannot be judged, too few references.
    """
    found, rule = performance_metric(metric), rule or InterleavedRule()
    if why := scale.has_zero(found, references, new):
        return unjudged(metric, Verdict.NOT_COMPARABLE, why, band=band)
    before = scale.badness(found, references, "reference")
    now = scale.badness(found, new, "new")
    scale.check_unit(found, before, now)
    groups = [scale.badness(found, group, "earlier reference") for group in earlier if len(group)]
    level = _checked_level(found, before, groups, rule)
    declared = declared_band(found, band)
    forced = level.forced_margin(rule)
    margin = max(scale.margin(found, declared), forced)
    too_noisy = scale.band(found, forced) > rule.widest
    decided = decide(level, now, margin, rule, too_noisy=too_noisy)
    return _judgement(found, level, now, declared, margin, decided, rule, too_noisy=too_noisy)


def _checked_level(
    metric: Metric,
    references: Sequence[float],
    earlier: Sequence[Sequence[float]],
    rule: InterleavedRule,
) -> OwnLevel:
    if len(references) < FEWEST_REFERENCES:
        raise InputError(
            f"too few reference starts to measure this machine's noise in {metric.name}",
            found=len(references),
            expected=f"{FEWEST_REFERENCES} or more",
            hint="measure the reference again with 4 to 8 fresh starts (gate.reference_starts)",
        )
    return own_level(references, earlier, rule)


def _judgement(
    metric: Metric,
    level: OwnLevel,
    new: Sequence[float],
    declared: float,
    margin: float,
    decided: InterleavedDecision,
    rule: InterleavedRule,
    *,
    too_noisy: bool,
) -> Judgement:
    used = new[: decided.new]
    loss = fmean(used) - level.centre
    bounds = sorted(scale.change(metric, bound) for bound in (decided.low, decided.high))
    wide = scale.band(metric, margin)
    notes = []
    if level.pulled:
        notes.append(f"{counted(level.pulled, 'outlying reference')} winsorised")
    if wide > declared:
        notes.append(widened_note(declared, wide, level.noise.sigma))
    if decided.verdict == Verdict.PASS and decided.low > 0:
        notes.append("small loss within the band")
    return Judgement(
        metric=metric.name,
        verdict=decided.verdict,
        baseline=scale.value(metric, level.centre),
        measured=scale.value(metric, fmean(used)),
        change=scale.change(metric, loss),
        interval=(bounds[0], bounds[1]),
        band=wide,
        runs_used=decided.new,
        needs_more_runs=decided.needs_more,
        reason=_reason(metric, level, loss, bounds, margin, decided, rule, too_noisy=too_noisy),
        notes=tuple(notes),
        mark="MACHINE" if too_noisy and decided.verdict == Verdict.INCONCLUSIVE else "",
        is_interleaved=True,
    )


def _reason(
    metric: Metric,
    level: OwnLevel,
    loss: float,
    bounds: Sequence[float],
    margin: float,
    decided: InterleavedDecision,
    rule: InterleavedRule,
    *,
    too_noisy: bool,
) -> str:
    low, high = (percent(one) for one in bounds)
    seen = with_interval(percent(scale.change(metric, loss)), low, high)
    band = percent(scale.change(metric, margin))
    after = f"{counted(decided.new, 'fresh start')} in turns with {level.starts} of the reference"
    if decided.verdict == Verdict.IMPROVEMENT:
        return f"{seen}, a gain that each of {rule.needed} starts shows; {after}"
    if decided.verdict == Verdict.PASS:
        return f"{seen}, within the {band} band; {after}"
    if decided.verdict == Verdict.REGRESSION:
        size = "beyond" if loss >= margin else "a real loss that may reach"
        return f"{seen}, {size} the {band} band; {after}"
    if too_noisy:
        return f"{seen}: {TOO_NOISY}; {after}"
    proof = "a loss is likely but not confirmed" if decided.low > 0 else "no loss is proved"
    left = rule.looks[-1] - decided.new if decided.needs_more else 0
    ahead = f"up to {left} more may decide" if left else "no more are allowed"
    return f"{seen}: {proof}, and the {band} band is not excluded; {after}, {ahead}"
