"""Paired test: the fresh starts of two sides, measured in turns, and what they prove. Pure.

Two builds side by side (`rules.ab`), a machine that measures its own reference
(`rules.interleaved`) and documented claims (`rules.claims`) are this one test. All of them state an
interval that the true loss must lie in: the statement holds once the confidence interval lies
inside, and is refuted once it lies outside.

Values are losses on the log scale of `rules.scale`, positive: the new side is worse. Arrays have
the shape (..., starts): a verdict is one case, a plan or a study gives many at once. (numpy is
imported where it is needed: a session that judges nothing does not load it.) With n new starts and
m of the reference, outliers pulled in to median ± reach:

    d = mean new - mean reference        v_i = (ν₀ σ² (1-ρ) + Σ (x - mean)²) / (ν₀ + n_i - 1)
    SE² = v_new/n + v_reference/m        L = d - t(1-α) SE        U = d + t(1-β) SE

What varies from use to use is in `PairedRule`. Constants and error rates: statistics §9 and §10.
"""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, Literal, NamedTuple

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import BETWEEN, FEWEST, OWN_DOF, OWN_SIGMA, t_quantile

# Below this spread the median deviation of a few starts is luck.
_LEAST_SPREAD = 0.01

# Whose spread is the noise: the reference's, so that a side that turned noisy earns no wider
# interval; of "larger" that of both where it makes a loss harder to prove; each side's own; that of
# the new side alone, against a number.
Spread = Literal["reference", "larger", "each", "new"]
Side = Literal["new", "other"]  # the other side is the reference


@dataclass(frozen=True)
class PairedRule:
    """Constants of the test, and what is known of the noise beforehand.

    Attributes:
        alpha: one-sided error rate, per look, of calling a loss real.
        beta: of excluding a loss of the upper end.
        looks: new starts after which it looks, in order.
        needed: new starts that must lie beyond half the band before a loss of it counts.
        prior_dof: ν₀, how many observations the prior noise is worth.
        sigma: σ, the prior noise of one start; 1: losses are given in its units.
        between: ρ, the share of its variance that both sides have in common.
        clip: a value is pulled in beyond so many sigma, or robust deviations, from the median.
        own_noise: whether the machine's own noise decides: it alone tells what an outlier is, and
            a band is widened to what it resolves.
        spread: whose spread is the noise.
        clips_new: whether outliers of the new side are pulled in too.
        complete: the side of which every look takes all starts; None: as many as of the other.
        sessions: those behind a side that is a stored baseline; 0: both are of one session.
    """

    alpha: float = 0.005
    beta: float = 0.025
    looks: tuple[int, ...] = (2, 3, 4, 5, 6)
    needed: int = 3
    prior_dof: float = 10
    sigma: float = 1.0
    between: float = BETWEEN
    clip: float = 2.0
    own_noise: bool = False
    spread: Spread = "reference"
    clips_new: bool = True
    complete: Side | None = None
    sessions: int = 0

    def __post_init__(self) -> None:
        sizes = (self.prior_dof, self.sigma, self.clip, 1 - self.between)
        rising = self.looks == tuple(sorted({0, *self.looks}))[1:]
        if not (
            all(0 < rate < 0.5 for rate in (self.alpha, self.beta))
            and all(0 < size < inf for size in sizes)
            and (self.looks and rising and self.needed >= 2)
        ):
            raise InputError(
                "the rule of a paired test cannot be used",
                found=self,
                expected="0 < alpha, beta < 0.5; prior_dof, sigma and clip above 0; between below "
                "1; needed of 2 or more; looks that rise",
            )

    @property
    def most(self) -> int:
        """New starts, at most."""
        return self.looks[-1]

    @property
    def once(self) -> "PairedRule":
        """The rule with its last look alone."""
        return replace(self, looks=(self.most,))


AB_RULE = PairedRule()
CLAIM_RULE = PairedRule(alpha=0.002, beta=0.002, looks=(3, 4, 5, 6))
OWN_NOISE_RULE = PairedRule(
    alpha=0.002,
    beta=0.05,
    looks=(4, 5, 6),
    needed=4,
    prior_dof=OWN_DOF,
    sigma=OWN_SIGMA,
    between=0.0,
    clip=3.0,
    own_noise=True,
    spread="larger",
)
OWN_NOISE_CLAIM_RULE = replace(OWN_NOISE_RULE, alpha=0.002, beta=0.002, spread="each")


@dataclass(frozen=True)
class Effect:
    """The interval that the true loss must lie in, on the scale of losses.

    Attributes:
        lower, upper: its ends; infinite: none.
        refuted: the lower bound of a loss that refutes it; None: one above `upper`.
        largest: the estimate must not be larger, however sure its bounds are.
        is_band: whether `upper` is a loss that counts: the machine's own noise may widen it, and
            what refutes it must show in single starts.
        widest: the band from which on the machine is too noisy for it: nothing holds, no further
            start is asked for, and only starts that all lie beyond the band refute it.
    """

    lower: float = -inf
    upper: float = inf
    refuted: float | None = None
    largest: float = inf
    is_band: bool = False
    widest: float = inf

    @classmethod
    def below_band(cls, margin: float, widest: float = inf) -> "Effect":
        """A loss below the band; any loss that is real and shows in enough starts refutes it."""
        return cls(upper=margin, refuted=0.0, is_band=True, widest=widest)

    def holds(self, loss: Any, low: Any, high: Any, upper: Any = None) -> Any:
        """Whether the interval [low, high] lies inside; `upper`: the end, where it was widened."""
        upper = self.upper if upper is None else upper
        return (low > self.lower) & (high < upper) & (loss <= self.largest)

    def fails(self, low: Any, high: Any) -> Any:
        """Whether the interval [low, high] lies outside."""
        return (high < self.lower) | (low > (self.upper if self.refuted is None else self.refuted))


def as_verdict(holds: bool, fails: bool) -> Verdict:
    """PASS: a statement holds; REGRESSION: it is refuted."""
    return Verdict.PASS if holds else Verdict.REGRESSION if fails else Verdict.INCONCLUSIVE


class Look(NamedTuple):
    """What one look sees, or the look that decided; arrays with the shape of the cases.

    Attributes:
        starts: new starts that it rests on; of a complete new side those of the reference.
        reference: the reference's level.
        loss: d.
        low, high: L and U.
        sigma: noise of one start of the reference.
        upper: the upper end of the effect, widened where the noise forces it.
        too_noisy: whether it is forced beyond `Effect.widest`.
        holds, fails: whether the statement does; neither: undecided.
    """

    starts: Any
    reference: Any
    loss: Any
    low: Any
    high: Any
    sigma: Any
    upper: Any
    too_noisy: Any
    holds: Any
    fails: Any

    @property
    def verdict(self) -> Verdict:
        """The verdict of a single case."""
        return as_verdict(self.holds, self.fails)

    def judgement(self, metric: Metric, verdict: Verdict, reason: str, *, more: bool) -> Judgement:
        """The judgement of a single case, without band and notes."""
        return Judgement(
            metric=metric.name,
            verdict=verdict,
            baseline=scale.value(metric, self.reference),
            measured=scale.value(metric, self.reference + self.loss),
            change=scale.change(metric, self.loss),
            interval=scale.interval(metric, self.low, self.high),
            band=None,
            runs_used=self.starts,
            needs_more_runs=more,
            reason=reason,
        )


def paired_test(reference: Any, new: Any, effect: Effect, rule: PairedRule) -> Look:
    """Look where the rule says; of each case the first look that decides.

    Args:
        reference, new: losses of either side, one per fresh start in the order measured; shapes
            (..., starts) that broadcast but for the starts. Starts without a partner, or beyond the
            rule's last look, are not used.
        effect: the interval to be proved.
        rule: constants.

    Returns:
        that look, or the last one of a case that none decides; of a single case plain numbers.
    """
    import numpy as np

    def at(count: int) -> Look:
        theirs = reference if rule.complete == "other" else reference[..., :count]
        ours = new if rule.complete == "new" else new[..., :count]
        return _look(theirs, ours, effect, rule)

    reference, new = np.asarray(reference), np.asarray(new)
    counts = {"other": reference.shape[-1], "new": new.shape[-1]}
    last = min(rule.most, *(count for side, count in counts.items() if side != rule.complete))
    first, *others = (*(count for count in rule.looks if count < last), last)
    found = at(first)
    for count in others:
        # Of a machine that is too noisy more starts narrow no band.
        undecided = ~(found.holds | found.fails | found.too_noisy)
        if not undecided.any():
            break
        found = Look(*(np.where(undecided, x, y) for x, y in zip(at(count), found, strict=True)))
    if last not in rule.looks:  # the last starts are too few, or lie between two looks
        decided = found.starts < last
        found = found._replace(holds=found.holds & decided, fails=found.fails & decided)
    return found if np.ndim(found.loss) else Look(*(x.item() for x in found))


def _look(reference: Any, new: Any, effect: Effect, rule: PairedRule) -> Look:
    """What all of these starts say; arguments as of `paired_test`."""
    import numpy as np

    theirs = pull_in(reference, rule)
    ours = pull_in(new, rule) if rule.clips_new else np.asarray(new)
    centre = theirs.mean(axis=-1)
    loss = ours.mean(axis=-1) - centre
    dof, variance, wide, narrow = _errors(theirs, ours, rule)
    t_low, t_high = t_quantile(1 - rule.alpha, dof), t_quantile(1 - rule.beta, dof)
    low, high = loss - t_low * np.sqrt(wide), loss + t_high * np.sqrt(narrow)
    sigma, forced = np.sqrt(variance), np.full_like(loss, -inf)
    if effect.is_band and rule.own_noise:
        planned = theirs.shape[-1] if rule.complete == "other" else rule.most
        forced = (t_low + t_high) * sigma * sqrt(1 / rule.most + 1 / planned)
    too_noisy, upper = forced > effect.widest, np.maximum(effect.upper, forced)
    holds, fails = effect.holds(loss, low, high, upper), effect.fails(low, high)
    if effect.is_band:
        level = np.median(theirs, axis=-1) if rule.clips_new else centre
        gaps = ours - level[..., None]
        fails &= (gaps > upper[..., None] / 2).sum(axis=-1) >= rule.needed
        fails &= ~too_noisy | (gaps.min(axis=-1) > upper)
    holds &= ~too_noisy
    fails &= ~holds
    starts = np.full_like(loss, (theirs if rule.complete == "new" else ours).shape[-1], dtype=int)
    return Look(starts, centre, loss, low, high, sigma, upper, too_noisy, holds, fails)


def _errors(theirs: Any, ours: Any, rule: PairedRule) -> tuple[float, Any, Any, Any]:
    """Degrees of freedom, variance of one start, and SE² of the lower and of the upper bound."""
    import numpy as np

    m, n = theirs.shape[-1], ours.shape[-1]
    theirs, ours = theirs.var(axis=-1) * m, ours.var(axis=-1) * n

    def pooled(squares: Any, dof: int) -> Any:
        prior = rule.sigma**2 * (1 - rule.between)
        return (rule.prior_dof * prior + squares) / (rule.prior_dof + dof)

    def own(squares: Any, dof: int) -> Any:
        """The variance of one start of a side: no less than its starts show."""
        return np.maximum(pooled(squares, dof), squares / dof) if dof else pooled(squares, dof)

    variance, shared = pooled(theirs, m - 1), 0.0
    if rule.spread == "new":
        error = pooled(ours, n - 1) / n
        return rule.prior_dof + n - 1, variance, error, error
    if rule.spread == "each":
        if rule.sessions:
            shared = rule.between * rule.sigma**2 * (1 + 1 / rule.sessions)
        error = own(ours, n - 1) / n + own(theirs, m - 1) / m + shared
        return rule.prior_dof + min(n, m) - 1, variance, error, error
    wide = variance
    if rule.spread == "larger":
        wide = np.maximum(variance, pooled(theirs + ours, m + n - 2))
    share = 1 / n + 1 / m
    return rule.prior_dof + m - 1, variance, wide * share, variance * share


def pull_in(values: Any, rule: PairedRule) -> Any:
    """The values with outliers pulled in, where there are enough of them to know one."""
    import numpy as np

    from perfgate.judging.rules.sequential import winsorised

    least = _LEAST_SPREAD if rule.own_noise else rule.sigma
    shows_spread = rule.own_noise or rule.spread == "each"
    return winsorised(np.asarray(values), least, rule.clip, FEWEST if shows_spread else inf)


class StartValues(NamedTuple):
    """Fresh starts with several blocks each, and the two variances that they are made of.

    Attributes:
        means: one value a start, as `paired_test` takes them, shape (..., starts).
        between: variance between starts, without what the blocks add to a mean; shape (...).
        within: variance of a block within its start; shape (...).
    """

    means: Any
    between: Any
    within: Any


def start_values(blocks: Any) -> StartValues:
    """The values of starts that were measured in blocks, e.g. A B B A on two running servers.

    The start stays the unit of the test: its blocks share its luck, so more of them narrow a mean
    and are no further evidence. By analysis of variance, b blocks a start:

        within = Σ (x - start mean)² / (starts (b-1))     between = s² of the means - within / b

    Args:
        blocks: losses, shape (..., starts, blocks), two starts at least; with one block a start all
            variance is between starts.
    """
    import numpy as np

    blocks = np.asarray(blocks)
    means, count = blocks.mean(axis=-1), blocks.shape[-1]
    within = np.zeros(means.shape[:-1])
    if count > 1:
        within = blocks.var(axis=-1, ddof=1).mean(axis=-1)
    return StartValues(means, means.var(axis=-1, ddof=1) - within / count, within)
