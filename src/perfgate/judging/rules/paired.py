"""Paired test: the fresh starts of two sides, measured in turns, and what they prove. Pure.

A machine that measures its own reference (`InterleavedTest`), two builds side by side (`AbTest`)
and documented claims (`rules.claims`) are this one test. All of them state an interval that the
true loss must lie in: the statement holds once the confidence interval lies inside, and is refuted
once it lies outside.

Values are losses on the log scale of `rules.scale`, positive: the new side is worse. Arrays have
the shape (..., starts): a verdict is one case, a plan or a study gives many at once. (numpy is
imported where it is needed: a session that judges nothing does not load it.) With n new starts and
m of the reference, outliers pulled in to median ± reach:

    d = mean new - mean reference        v_i = (ν₀ σ² (1-ρ) + Σ (x - mean)²) / (ν₀ + n_i - 1)
    SE² = v_new/n + v_reference/m        L = d - t(1-α) SE        U = d + t(1-β) SE

What varies from use to use is in `PairedRule`. Constants and error rates: statistics §9 and §10.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from statistics import fmean
from typing import Any, Literal, NamedTuple

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric
from perfgate.core.verdict import (
    FEWEST_REFERENCES,
    FIRST_LOOK,
    Judgement,
    Verdict,
    counted,
    percent,
)
from perfgate.judging.rules import noise, scale
from perfgate.judging.rules.performance import TOO_NOISY, widened_note
from perfgate.judging.rules.reasons import may_decide, reason_of, unjudged

# Degrees of freedom that earlier sessions of this machine add, at most.
_MOST_EARLIER = 15.0
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
    between: float = noise.BETWEEN
    clip: float = 2.0
    own_noise: bool = False
    spread: Spread = "reference"
    clips_new: bool = True
    complete: Side | None = None
    sessions: int = 0

    @property
    def most(self) -> int:
        """New starts, at most."""
        return self.looks[-1]


AB_RULE = PairedRule()
CLAIM_RULE = PairedRule(alpha=0.002, beta=0.002, looks=(3, 4, 5, 6))
OWN_NOISE_RULE = PairedRule(
    alpha=0.002,
    beta=0.05,
    looks=(4, 5, 6),
    needed=4,
    prior_dof=noise.OWN_DOF,
    sigma=noise.OWN_SIGMA,
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

    @property
    def estimate(self) -> scale.Estimate:
        """The loss of a single case with its bounds."""
        return scale.Estimate(self.loss, self.low, self.high)

    def judgement(self, metric: Metric, verdict: Verdict, reason: str, **more: Any) -> Judgement:
        """The judgement of a single case; `more` are its other fields."""
        at, end = self.reference, self.reference + self.loss
        values = scale.value(metric, at), scale.value(metric, end)
        more["runs_used"] = self.starts
        return scale.judgement(metric, verdict, self.estimate, self.upper, values, reason, **more)


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
    t_low, t_high = noise.t_quantile(1 - rule.alpha, dof), noise.t_quantile(1 - rule.beta, dof)
    low, high = loss - t_low * np.sqrt(wide), loss + t_high * np.sqrt(narrow)
    sigma, forced = np.sqrt(variance), np.full_like(loss, -inf)
    if effect.is_band and rule.own_noise:
        planned = theirs.shape[-1] if rule.complete == "other" else rule.most
        of_reference = 0.0 if rule.spread == "new" else 1 / planned
        forced = (t_low + t_high) * sigma * sqrt(1 / rule.most + of_reference)
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

    dof, variance = rule.prior_dof + m - 1, pooled(theirs, m - 1)
    wide = narrow = variance * (1 / n + 1 / m)
    if rule.spread == "new":
        dof, variance = rule.prior_dof + n - 1, pooled(ours, n - 1)
        wide = narrow = variance / n
    elif rule.spread == "each":
        dof, wide = rule.prior_dof + min(n, m) - 1, own(ours, n - 1) / n + own(theirs, m - 1) / m
        if rule.sessions:
            wide += rule.between * rule.sigma**2 * (1 + 1 / rule.sessions)
        narrow = wide
    elif rule.spread == "larger":
        wide = np.maximum(variance, pooled(theirs + ours, m + n - 2)) * (1 / n + 1 / m)
    return dof, variance, wide, narrow


def pull_in(values: Any, rule: PairedRule) -> Any:
    """The values with outliers pulled in, where there are enough of them to know one."""
    import numpy as np

    from perfgate.judging.rules.sequential import winsorised

    least = _LEAST_SPREAD if rule.own_noise else rule.sigma
    shows_spread = rule.own_noise or rule.spread == "each"
    return winsorised(np.asarray(values), least, rule.clip, noise.FEWEST if shows_spread else inf)


# A machine that measures its own reference. --------------------------------------------------


def rule_for(most: int) -> PairedRule:
    """The rule where so many new starts are allowed: looks at 4, 6, … and at the last."""
    most = max(1, most)
    looks = (*range(FIRST_LOOK, most, 2), most)
    return replace(OWN_NOISE_RULE, looks=looks, clips_new=False, complete="other")


@dataclass(frozen=True)
class InterleavedTest:
    """A performance metric against references that took turns with the new build in one session.

    Attributes:
        metric: canonical name.
        band: the loss that counts, as a fraction; None: that of the metric's family. Widened to
            what the noise forces.
        references: values of the unchanged build, one per fresh start; three at least.
        new: those of the new build, in the order measured.
        earlier: references of this machine's earlier sessions, one group each.
        most: fresh starts of the new build, at most.
        in_blocks: whether each start of the reference was up with the new one beside it, and load
            took turns on both: the difference of the two is then one value, and its spread over
            starts the noise, that between blocks and between starts both.
    """

    metric: str
    band: float | None
    references: Sequence[float]
    new: Sequence[float]
    earlier: Sequence[Sequence[float]] = ()
    most: int = 6
    in_blocks: bool = False

    def judge(self) -> Judgement:
        """Judge new starts against references that took turns with them in one session.

        REGRESSION: a loss is real, and four starts lie beyond half the band. PASS: it lies below
        the band. IMPROVEMENT: moreover a gain is real, and four starts show half a band of it. On a
        machine that is too noisy nothing passes, and a REGRESSION needs every start over the whole
        band: of so wide a band, only what cannot be overlooked is told.

        Raises:
            InputError: unknown metric, no band, values that cannot be judged, too few references.
        """
        metric, rule = scale.performance_metric(self.metric), rule_for(self.most)
        if why := scale.has_zero(metric, self.references, self.new):
            return unjudged(self.metric, Verdict.NOT_COMPARABLE, why, band=self.band)
        before = scale.log_loss(metric, self.references, "reference")
        now = scale.log_loss(metric, self.new, "new")
        scale.check_unit(metric, before, now)
        groups = [scale.log_loss(metric, one, "earlier reference") for one in self.earlier if one]
        if len(before) < FEWEST_REFERENCES and not self.in_blocks:
            raise InputError(
                f"too few reference starts to measure this machine's noise in {metric.name}",
                found=len(before),
                expected=f"{FEWEST_REFERENCES} or more",
                hint="measure the reference again with 4 to 8 fresh starts (gate.reference_starts)",
            )
        declared = scale.declared_band(metric, self.band)
        widest = scale.margin(metric, noise.WIDEST_BAND)
        effect = Effect.below_band(scale.margin(metric, declared), widest)
        if self.in_blocks:
            seen = _of_pairs(before, now, effect, self.most)
        else:
            seen = paired_test(before, now, effect, with_history(rule, groups))
        verdict, notes = seen.verdict, []
        if pulled := int((pull_in(before, rule) != before).sum()):
            notes.append(f"{counted(pulled, 'outlying reference')} winsorised")
        if seen.upper > effect.upper:
            notes.append(widened_note(declared, scale.band(metric, seen.upper), seen.sigma))
        than = before if self.in_blocks else [seen.reference] * len(now)
        pairs = zip(now[: seen.starts], than, strict=False)
        gains = sum(new - old < -seen.upper / 2 for new, old in pairs)
        if verdict == Verdict.PASS and seen.high < 0 and gains >= rule.needed:
            verdict = Verdict.IMPROVEMENT
        if verdict == Verdict.PASS and seen.low > 0:
            notes.append("small loss within the band")
        open_ = verdict == Verdict.INCONCLUSIVE
        unfit = open_ and seen.too_noisy
        left = (rule.looks[0] if seen.too_noisy else rule.most) - seen.starts if open_ else 0
        told, band = seen.estimate.describe(metric), scale.describe(metric, seen.upper)
        turns = "beside" if self.in_blocks else f"in turns with {len(before)} of"
        after = f"{counted(seen.starts, 'fresh start')} {turns} the reference"
        whys = {
            Verdict.IMPROVEMENT: f", a gain that each of {rule.needed} starts shows",
            Verdict.PASS: f", within the {band} band",
            Verdict.INCONCLUSIVE: f": {TOO_NOISY}" * unfit,
        }
        return seen.judgement(
            metric,
            verdict,
            _reason(seen, verdict, told, band, after, whys.get(verdict, ""), may_decide(left)),
            needs_more_runs=left > 0,
            notes=tuple(notes),
            mark="MACHINE" if unfit else "",
            is_interleaved=True,
        )


def blocks_rule(most: int) -> PairedRule:
    """The rule for starts of both builds that are up together: each difference is one value."""
    return replace(rule_for(most), spread="new", complete=None)


def _of_pairs(before: Sequence[float], now: Sequence[float], effect: Effect, most: int) -> Look:
    """The look at starts of both builds that were up together."""
    seen = paired_test(*_differences(before, now), effect, blocks_rule(most))
    return seen._replace(reference=fmean(before[: seen.starts]))


def _differences(before: Sequence[float], now: Sequence[float]) -> tuple[list[float], list[float]]:
    """Both sides of each pair of starts, less the first side's value."""
    differences = [new - old for old, new in zip(before, now, strict=False)]
    return [0.0] * len(differences), differences


def with_history(rule: PairedRule, earlier: Sequence[Sequence[float]]) -> PairedRule:
    """The rule with the spread that the references of earlier sessions add to the prior noise.

        σ² = (ν₀ σ₀² + H v) / (ν₀ + H)

    with v the pooled variance within those sessions, each with its outliers pulled in, and H its
    degrees of freedom, 15 at most.
    """
    groups = [pull_in(group, rule) for group in earlier if len(group) > 1]
    within = sum(len(group) - 1 for group in groups)
    if not within:
        return rule
    worth = min(_MOST_EARLIER, within)
    dof, variance = rule.prior_dof + worth, sum(x.var() * len(x) for x in groups) / within
    prior = rule.prior_dof * rule.sigma**2
    return replace(rule, prior_dof=dof, sigma=sqrt((prior + worth * variance) / dof))


# Two builds side by side. --------------------------------------------------------------------

_SPEEDS = frozenset({"throughput", "latency", "tpot", "tpot_tail", "ttft", "ttft_tail", "itl_tail"})


@dataclass(frozen=True)
class AbTest:
    """A speed of build B against build A, side by side in one session.

    Starts come in pairs, A B B A A B B A …, so that a drifting machine touches both builds alike.
    No history is needed. Error rates: statistics §10.

    Attributes:
        metric: canonical name of a performance metric.
        a, b: values of either build, one per start in the order measured; starts without a partner
            are not used.
        band: the loss that counts, as a fraction; None: that of the metric's family.
        noise: of one start; where it widens bands, the machine's own noise decides.
        in_blocks: whether both builds were up in each pair, as of `InterleavedTest`.
    """

    metric: str
    a: Sequence[float]
    b: Sequence[float]
    band: float | None
    noise: noise.RunNoise
    in_blocks: bool = False

    def judge(self) -> Judgement:
        """Judge B as far as the starts decide.

        REGRESSION: B is worse. PASS: it is no worse by the band. IMPROVEMENT: moreover, A is worse
        than B by the same rule, on at least three pairs; where B looks better by half a band after
        two, a third pair is asked for. A machine whose noise forces a band of more than
        `WIDEST_BAND` proves no PASS.

        Returns:
            the judgement: `baseline` is A, `measured` is B, `runs_used` counts pairs.

        Raises:
            InputError: unknown metric, no band, or values that cannot be judged or cannot be in one
                unit.
        """
        metric, of_noise = scale.performance_metric(self.metric), filter(None, [self.noise.note])
        declared = scale.declared_band(metric, self.band)
        if why := scale.has_zero(metric, self.a, self.b):
            unknown = unjudged(self.metric, Verdict.NOT_COMPARABLE, why, band=self.band)
            return replace(unknown, notes=tuple(of_noise), against="ab")
        ours, theirs = scale.log_loss(metric, self.b, "B"), scale.log_loss(metric, self.a, "A")
        scale.check_unit(metric, theirs, ours)
        effect = Effect.below_band(scale.margin(metric, declared))
        rule = blocks_rule(AB_RULE.most) if self.in_blocks else ab_rule(metric, self.noise)
        a, b = _differences(theirs, ours) if self.in_blocks else (theirs, ours)
        seen, verdict, more, notes = _decide(a, b, effect, rule)
        if self.in_blocks:
            seen = seen._replace(reference=fmean(theirs[: seen.starts]))
        wide = scale.band(metric, seen.upper)
        if seen.upper > effect.upper:
            notes += (widened_note(declared, wide, seen.sigma),)
        band, widest = percent(wide, sign=""), percent(noise.WIDEST_BAND, 0, sign="")
        after = f"{counted(seen.starts, 'pair')} of starts"
        whys = {
            Verdict.IMPROVEMENT: ", proved by the rule with A and B swapped",
            Verdict.PASS: f", no worse by the {band} band",
            Verdict.INCONCLUSIVE: f": neither worse nor no worse by the {band} band is proved",
        }
        if verdict in (Verdict.PASS, Verdict.IMPROVEMENT) and wide > noise.WIDEST_BAND:
            verdict, more = Verdict.INCONCLUSIVE, seen.starts < rule.most
            forced = f"the band that its noise forces, {band}, is beyond {widest}"
            whys = {verdict: f": machine too noisy: {forced}"}
        elif verdict == Verdict.INCONCLUSIVE:
            after += f", {may_decide(rule.most - seen.starts if more else 0)}"
        told, why = _who_is_ahead(metric, seen.estimate), whys.get(verdict, "")
        return seen.judgement(
            metric,
            verdict,
            _reason(seen, verdict, told, band, after, why),
            needs_more_runs=more,
            notes=(*notes, *of_noise),
            against="ab",
        )


def ab_rule(metric: Metric, known: noise.RunNoise) -> PairedRule:
    """The constants of an A/B of one metric; errors as of `checked_sigma`."""
    if known.widen:
        return OWN_NOISE_RULE
    prior = noise.checked_sigma(metric.family.sigma if known.sigma is None else known.sigma)
    return replace(AB_RULE, sigma=prior, between=known.between)


def _decide(
    a: Sequence[float], b: Sequence[float], effect: Effect, rule: PairedRule
) -> tuple[Look, Verdict, bool, tuple[str, ...]]:
    """The look that decides, the verdict, whether another pair may change it, and notes."""

    def at(pairs: int, a: Sequence[float], b: Sequence[float]) -> Look:
        """What so many pairs say together."""
        looks = tuple(count for count in rule.looks if count >= pairs)
        return paired_test(a[:pairs], b[:pairs], effect, replace(rule, looks=looks))

    def is_ahead(seen: Look) -> bool:
        """Whether B looks better by half a band or more."""
        return bool(seen.loss <= -seen.upper / 2)

    seen = paired_test(a, b, effect, rule)
    if seen.verdict != Verdict.PASS:
        return seen, seen.verdict, not seen.fails and seen.starts < rule.most, ()
    if is_ahead(seen) and seen.starts < noise.FEWEST:
        if min(len(a), len(b)) < noise.FEWEST:
            return seen, Verdict.PASS, True, ("B looks better: a third pair tells",)
        seen = at(noise.FEWEST, a, b)
    swapped = (a, [-loss for loss in b]) if rule.spread == "new" else (b, a)
    if is_ahead(seen) and at(seen.starts, *swapped).fails:
        return seen, Verdict.IMPROVEMENT, False, ()
    return seen, Verdict.PASS, False, ("small loss within the band",) if seen.low > 0 else ()


def _who_is_ahead(metric: Metric, seen: scale.Estimate) -> str:
    """``B is 8.0 % slower than A (B/A 0.920, 0.905…0.935)``, of B's loss against A."""
    change = scale.change(metric, seen.loss)
    ratio, *ends = (1 + scale.change(metric, x) for x in seen)
    ratios = f"(B/A {ratio:.3f}, {min(ends):.3f}…{max(ends):.3f})"
    if abs(change) < 0.0005:
        return f"B is as A, within 0.05 % {ratios}"
    worse, better = ("slower", "faster") if metric.family.name in _SPEEDS else ("worse", "better")
    word = worse if seen.loss > 0 else better
    return f"B is {percent(abs(change), sign='')} {word} than A {ratios}"


def _reason(
    seen: Look, verdict: Verdict, effect: str, band: str, after: str, why: str, ahead: str = ""
) -> str:
    """One sentence; without a `why` of its own that of every rule, as of `reason_of`."""
    if why:
        return f"{effect}{why}; {after}"
    size = {"beyond": seen.loss >= seen.upper, "likely": seen.low > 0}
    return reason_of(verdict, effect, band, after, **size, ahead=f", {ahead}")
