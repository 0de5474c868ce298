"""A/B: two builds side by side in one session, without any history. Pure.

Starts come in pairs, A B B A A B B A …, so that a drifting machine touches both builds alike; after
each pair the rule looks at all of them. With d the mean loss of B against A on the log scale of
`perfgate.judging.rules.scale` (positive: B is worse), r pairs and s the noise of one start,

    SE = s √(2/r)          L = d - t(1-α) SE          U = d + t(1-β) SE

"no worse" is U < δ. "Worse" is L > 0 where three starts of B lie more than δ/2 over A's median;
"better" is the same with A and B swapped. s comes from A and the prior, never from B: a build that
turned noisy earns no wider interval. Constants and simulated error rates: statistics §10.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from statistics import fmean
from typing import Literal

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric
from perfgate.core.verdict import Judgement, Verdict, counted, percent, unjudged
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import (
    BETWEEN,
    OWN_DOF,
    OWN_SIGMA,
    WIDEST_BAND,
    checked_sigma,
    median,
    sum_of_squares,
    t_quantile,
)
from perfgate.judging.rules.performance import declared_band, performance_metric

Answer = Literal["worse", "no worse", "undecided"]

# Below this spread the median deviation of a few starts is luck.
_LEAST_REACH = 0.01


@dataclass(frozen=True)
class AbRule:
    """Constants of an A/B (statistics §10).

    Attributes:
        alpha: one-sided error rate, per look, of calling a loss real.
        beta: of excluding a loss of the band.
        prior_dof: how many observations the prior noise is worth.
        pairs: pairs of starts, at most.
        first_look: pairs after which it looks first.
        fewest: pairs from which on outliers are pulled in, and "worse" may be said.
        needed: starts of B that must lie beyond half the band.
    """

    alpha: float = 0.005
    beta: float = 0.025
    prior_dof: float = 10
    pairs: int = 6
    first_look: int = 2
    fewest: int = 3
    needed: int = 3

    def __post_init__(self) -> None:
        if not (
            all(0 < rate < 0.5 for rate in (self.alpha, self.beta))
            and self.prior_dof > 0
            and 1 <= self.first_look <= self.pairs
            and 2 <= self.fewest <= self.pairs
            and 2 <= self.needed <= self.pairs
        ):
            raise InputError(
                "the rule of an A/B cannot be used",
                found=self,
                expected="0 < alpha, beta < 0.5; prior_dof above 0; at least two pairs, no "
                "look after the last of them",
            )


AB_RULE = AbRule()
# A machine that measures its own noise: A's own spread beside a weak prior (statistics §9).
OWN_NOISE_RULE = AbRule(alpha=0.002, beta=0.05, prior_dof=OWN_DOF, first_look=4, needed=4)
_OWN_CLIP = 3.0
_CLIP = 2.0


@dataclass(frozen=True)
class AbNoise:
    """The noise of one start on the log scale.

    Attributes:
        sigma: its prior standard deviation.
        between: the share of its variance that a whole session has in common, which the
            difference of two builds in one session is free of.
        measured: whether the machine's own noise decides: the prior is weak, and the band is
            widened to what that noise lets it resolve.
    """

    sigma: float
    between: float = BETWEEN
    measured: bool = False

    @classmethod
    def own(cls) -> "AbNoise":
        """That of a machine that measures it itself."""
        return cls(OWN_SIGMA, 0.0, measured=True)

    @property
    def rule(self) -> AbRule:
        """The constants that go with it."""
        return OWN_NOISE_RULE if self.measured else AB_RULE

    @property
    def within(self) -> float:
        """The noise of one start within a session."""
        return self.sigma * sqrt(1 - self.between)

    def kept(self, values: Sequence[float]) -> tuple[float, ...]:
        """The values with outliers pulled in."""
        centre = median(values)
        reach = _CLIP * self.sigma
        if self.measured:
            spread = 1.4826 * median([abs(x - centre) for x in values])
            reach = _OWN_CLIP * max(spread, _LEAST_REACH)
        return tuple(min(max(x, centre - reach), centre + reach) for x in values)


@dataclass(frozen=True)
class AbLook:
    """All starts so far, as one look sees them.

    Attributes:
        a, b: losses of either build, outliers pulled in; as many of both.
        noise: of one start, beforehand.
        rule: the constants.
        declared: the band on the scale.
    """

    a: tuple[float, ...]
    b: tuple[float, ...]
    noise: AbNoise
    rule: AbRule
    declared: float

    @property
    def pairs(self) -> int:
        return len(self.a)

    @property
    def loss(self) -> float:
        """d: how much worse B is than A."""
        return fmean(self.b) - fmean(self.a)

    @property
    def dof(self) -> float:
        return self.rule.prior_dof + self.pairs - 1

    @cached_property
    def sigma(self) -> float:
        """s, of A's starts and the prior."""
        return sqrt(
            (self.rule.prior_dof * self.noise.within**2 + sum_of_squares(self.a)) / self.dof
        )

    @property
    def low(self) -> float:
        """L. Where the machine's own noise decides, B's spread counts if it is the larger one."""
        sigma = self.sigma
        if self.noise.measured:
            squares = (
                self.rule.prior_dof * self.noise.within**2
                + sum_of_squares(self.a)
                + sum_of_squares(self.b)
            )
            sigma = max(sigma, sqrt(squares / (self.dof + self.pairs - 1)))
        return self.loss - t_quantile(1 - self.rule.alpha, self.dof) * sigma * self._share

    @property
    def high(self) -> float:
        """U."""
        return self.loss + t_quantile(1 - self.rule.beta, self.dof) * self.sigma * self._share

    @property
    def _share(self) -> float:
        return sqrt(2 / self.pairs)

    @property
    def margin(self) -> float:
        """The band on the scale, widened to what the machine's own noise lets it resolve."""
        if not self.noise.measured:
            return self.declared
        reach = sum(t_quantile(1 - rate, self.dof) for rate in (self.rule.alpha, self.rule.beta))
        return max(self.declared, reach * self.sigma * sqrt(2 / self.rule.pairs))

    @property
    def answer(self) -> Answer:
        if self.high < self.margin:
            return "no worse"
        middle = median(self.a)
        far = sum(x - middle > self.margin / 2 for x in self.b)
        if self.pairs >= self.rule.fewest and self.low > 0 and far >= self.rule.needed:
            return "worse"
        return "undecided"

    @property
    def improved(self) -> bool:
        """Whether B looks better by half a band or more."""
        return self.loss <= -self.margin / 2

    def swapped(self) -> "AbLook":
        """The same starts with A and B exchanged."""
        return replace(self, a=self.b, b=self.a)


def look(
    a: Sequence[float],
    b: Sequence[float],
    margin: float,
    noise: AbNoise,
    rule: AbRule | None = None,
) -> AbLook:
    """What the starts say together, outliers pulled in where there are enough to know them.

    Args:
        a, b: losses of either build, one per start in order; as many of both, at least one.
        margin: the band on the scale.
        noise: of one start.
        rule: the constants; None: those that go with the noise.
    """
    rule = rule or noise.rule
    if len(a) >= rule.fewest:
        a, b = noise.kept(a), noise.kept(b)
    return AbLook(tuple(a), tuple(b), noise, rule, margin)


def decide(
    a: Sequence[float],
    b: Sequence[float],
    margin: float,
    noise: AbNoise,
    rule: AbRule | None = None,
) -> AbLook:
    """Look after each pair and stop at the first look that decides; arguments as of `look`.

    Returns:
        that look, or the last one: its `answer` is "undecided" where none decided yet.
    """
    rule = rule or noise.rule
    most = min(len(a), len(b), rule.pairs)
    found = look(a[:most], b[:most], margin, noise, rule)
    for pairs in range(rule.first_look, most):
        seen = look(a[:pairs], b[:pairs], margin, noise, rule)
        if seen.answer != "undecided":
            return seen
    return found


def judge_ab(
    metric: str,
    a: Sequence[float],
    b: Sequence[float],
    *,
    band: float | None = None,
    sigma: float | None = None,
    between: float = BETWEEN,
    measured_noise: bool = False,
    rule: AbRule | None = None,
) -> Judgement:
    """Judge B against A, as far as their starts decide.

    REGRESSION: B is worse. PASS: it is no worse by the band. IMPROVEMENT: moreover, A is worse than
    B by the same rule, on at least three pairs; where B looks better by half a band after two, a
    third pair is asked for. A machine whose noise forces a band of more than `WIDEST_BAND` proves
    no PASS.

    Args:
        metric: canonical name of a performance metric.
        a, b: values of either build, one per start in the order measured; starts without a partner
            are not used.
        band: the loss that counts, as a fraction; None: that of the metric's family.
        sigma: noise of one start on the log scale; None: that of the family.
        between: the share of its variance that a whole session has in common.
        measured_noise: the machine's own noise decides; `sigma` and `between` do not count.
        rule: the constants; None: those that go with the noise.

    Returns:
        the judgement: `baseline` is A, `measured` is B, `runs_used` counts pairs.

    Raises:
        InputError: unknown metric, no band, or values that cannot be judged or cannot be in one
            unit.
    """
    found = performance_metric(metric)
    declared = declared_band(found, band)
    if why := scale.has_zero(found, a, b):
        return replace(unjudged(metric, Verdict.NOT_COMPARABLE, why, band=band), against="ab")
    ours = scale.badness(found, b, "B")
    theirs = scale.badness(found, a, "A")
    scale.check_unit(found, theirs, ours)
    noise = AbNoise.own()
    if not measured_noise:
        noise = AbNoise(checked_sigma(found.family.sigma if sigma is None else sigma), between)
    seen = decide(theirs, ours, scale.margin(found, declared), noise, rule)
    return _judgement(found, *_verdict(seen, theirs, ours))


def _verdict(
    seen: AbLook, a: Sequence[float], b: Sequence[float]
) -> tuple[Verdict, AbLook, bool, tuple[str, ...]]:
    """Verdict, the look that it rests on, whether another pair may change it, and notes."""
    left = seen.pairs < seen.rule.pairs
    early = seen.pairs < seen.rule.first_look
    if early or seen.answer == "undecided":
        return Verdict.INCONCLUSIVE, seen, left, ()
    if seen.answer == "worse":
        return Verdict.REGRESSION, seen, False, ()
    if seen.improved and seen.pairs < seen.rule.fewest:
        more = min(len(a), len(b), seen.rule.fewest)
        seen = look(a[:more], b[:more], seen.declared, seen.noise, seen.rule)
        if more < seen.rule.fewest:
            note = "B looks better: a third pair tells"
            return Verdict.PASS, seen, True, (note,)
    if seen.improved and seen.swapped().answer == "worse":
        return Verdict.IMPROVEMENT, seen, False, ()
    return Verdict.PASS, seen, False, ("small loss within the band",) if seen.low > 0 else ()


def _judgement(
    metric: Metric, verdict: Verdict, used: AbLook, more: bool, notes: tuple[str, ...]
) -> Judgement:
    band = scale.band(metric, used.margin)
    if used.margin > used.declared:
        notes = (
            *notes,
            f"band widened from {_share(scale.band(metric, used.declared))} to {_share(band)}, the "
            f"smallest detectable with this machine's noise of {_share(used.sigma)} per start",
        )
    if verdict in (Verdict.PASS, Verdict.IMPROVEMENT) and band > WIDEST_BAND:
        verdict, noisy = Verdict.INCONCLUSIVE, True
        more = used.pairs < used.rule.pairs
    else:
        noisy = False
    low, high = sorted(scale.change(metric, x) for x in (used.low, used.high))
    return Judgement(
        metric=metric.name,
        verdict=verdict,
        baseline=scale.value(metric, fmean(used.a)),
        measured=scale.value(metric, fmean(used.b)),
        change=scale.change(metric, used.loss),
        interval=(low, high),
        band=band,
        runs_used=used.pairs,
        needs_more_runs=more,
        reason=_reason(metric, used, verdict, noisy=noisy, more=more),
        notes=notes,
        against="ab",
    )


def _reason(metric: Metric, seen: AbLook, verdict: Verdict, *, noisy: bool, more: bool) -> str:
    """One sentence: the ratio, who is ahead and by how much, and what that proves."""
    ratios = sorted(1 + scale.change(metric, x) for x in (seen.low, seen.high))
    ratio = 1 + scale.change(metric, seen.loss)
    band = _share(scale.band(metric, seen.margin))
    told = f"{in_words(metric, seen.loss)} (B/A {ratio:.3f}, {ratios[0]:.3f}…{ratios[1]:.3f})"
    after = f"{counted(seen.pairs, 'pair')} of starts"
    if noisy:
        return (
            f"{told}: machine too noisy: the band that its noise forces, {band}, is beyond "
            f"{percent(WIDEST_BAND, 0, sign='')}; {after}"
        )
    if verdict == Verdict.REGRESSION:
        size = "beyond" if seen.loss >= seen.margin else "a real loss that may reach"
        return f"{told}, {size} the {band} band; {after}"
    if verdict == Verdict.IMPROVEMENT:
        return f"{told}, proved by the rule with A and B swapped; {after}"
    if verdict == Verdict.PASS:
        return f"{told}, no worse by the {band} band; {after}"
    ahead = (
        f"up to {seen.rule.pairs - seen.pairs} more may decide" if more else "no more are allowed"
    )
    return f"{told}: neither worse nor no worse by the {band} band is proved; {after}, {ahead}"


def in_words(metric: Metric, loss: float) -> str:
    """Who is ahead: ``B is 8.0 % slower than A``.

    Args:
        metric: what was compared.
        loss: B against A on the scale.
    """
    change = scale.change(metric, loss)
    if percent(change) == "+0.0 %":
        return "B is as A, within 0.05 %"
    worse, better = ("slower", "faster") if metric.family.name in _SPEEDS else ("worse", "better")
    return f"B is {percent(abs(change), sign='')} {worse if loss > 0 else better} than A"


_SPEEDS = frozenset({"throughput", "latency", "tpot", "tpot_tail", "ttft", "ttft_tail", "itl_tail"})


def _share(share: float) -> str:
    return percent(share, sign="")
