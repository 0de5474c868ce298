"""A/B: two builds side by side in one session, without any history. Pure.

Starts come in pairs, A B B A A B B A …, so that a drifting machine touches both builds alike. After
each pair the paired test (`rules.paired`) asks whether the loss of B against A lies below the band;
A is the reference. "Better" is "worse" with A and B swapped. Error rates: statistics §10.
"""

from collections.abc import Sequence
from dataclasses import replace

from perfgate.core.metrics import Metric
from perfgate.core.verdict import (
    Judgement,
    Verdict,
    counted,
    may_decide,
    percent,
    reason_of,
    unjudged,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import BETWEEN, FEWEST, WIDEST_BAND, checked_sigma
from perfgate.judging.rules.paired import (
    AB_RULE,
    OWN_NOISE_RULE,
    Effect,
    Look,
    PairedRule,
    paired_test,
)
from perfgate.judging.rules.performance import declared_band, performance_metric, widened_note

_SPEEDS = frozenset({"throughput", "latency", "tpot", "tpot_tail", "ttft", "ttft_tail", "itl_tail"})


def judge_ab(
    metric: str,
    a: Sequence[float],
    b: Sequence[float],
    *,
    band: float | None = None,
    sigma: float | None = None,
    between: float = BETWEEN,
    measured_noise: bool = False,
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
    rule = ab_rule(found, sigma, between, measured_noise=measured_noise)
    effect = Effect.below_band(scale.margin(found, declared))
    seen, verdict, more, notes = _decide(theirs, ours, effect, rule)
    wide = scale.band(found, seen.upper)
    if seen.upper > effect.upper:
        notes += (widened_note(scale.band(found, effect.upper), wide, seen.sigma),)
    too_noisy = verdict in (Verdict.PASS, Verdict.IMPROVEMENT) and wide > WIDEST_BAND
    if too_noisy:
        verdict, more = Verdict.INCONCLUSIVE, seen.starts < rule.most
    left = rule.most - seen.starts if more else 0
    reason = _reason(found, seen, verdict, left, too_noisy=too_noisy)
    judged = seen.judgement(found, verdict, reason, more=more)
    return replace(judged, band=wide, notes=notes, against="ab")


def ab_rule(
    metric: Metric, sigma: float | None, between: float, *, measured_noise: bool
) -> PairedRule:
    """The constants of an A/B of one metric; arguments and errors as of `judge_ab`."""
    if measured_noise:
        return OWN_NOISE_RULE
    prior = checked_sigma(metric.family.sigma if sigma is None else sigma)
    return replace(AB_RULE, sigma=prior, between=between)


def _decide(
    a: Sequence[float], b: Sequence[float], effect: Effect, rule: PairedRule
) -> tuple[Look, Verdict, bool, tuple[str, ...]]:
    """The look that decides, the verdict, whether another pair may change it, and notes."""
    seen = paired_test(a, b, effect, rule)
    if seen.verdict != Verdict.PASS:
        return seen, seen.verdict, not seen.fails and seen.starts < rule.most, ()
    if _is_ahead(seen) and seen.starts < FEWEST:
        if min(len(a), len(b)) < FEWEST:
            return seen, Verdict.PASS, True, ("B looks better: a third pair tells",)
        seen = _at(FEWEST, a, b, effect, rule)
    if _is_ahead(seen) and _at(seen.starts, b, a, effect, rule).fails:
        return seen, Verdict.IMPROVEMENT, False, ()
    return seen, Verdict.PASS, False, ("small loss within the band",) if seen.low > 0 else ()


def _at(
    pairs: int, a: Sequence[float], b: Sequence[float], effect: Effect, rule: PairedRule
) -> Look:
    """What so many pairs say together."""
    looks = tuple(count for count in rule.looks if count >= pairs)
    return paired_test(a[:pairs], b[:pairs], effect, replace(rule, looks=looks))


def _is_ahead(seen: Look) -> bool:
    """Whether B looks better by half a band or more."""
    return bool(seen.loss <= -seen.upper / 2)


def _reason(metric: Metric, seen: Look, verdict: Verdict, left: int, *, too_noisy: bool) -> str:
    """One sentence: the ratio, who is ahead and by how much, and what that proves.

    Args:
        left: pairs that may still be made.
    """
    ratio, *ratios = (1 + scale.change(metric, x) for x in (seen.loss, seen.low, seen.high))
    band = percent(scale.band(metric, seen.upper), sign="")
    after = f"{counted(seen.starts, 'pair')} of starts"
    told = describe(metric, seen.loss)
    told += f" (B/A {ratio:.3f}, {min(ratios):.3f}…{max(ratios):.3f})"
    if too_noisy:
        widest = percent(WIDEST_BAND, 0, sign="")
        forced = f"the band that its noise forces, {band}, is beyond {widest}"
        return f"{told}: machine too noisy: {forced}; {after}"
    if verdict == Verdict.IMPROVEMENT:
        return f"{told}, proved by the rule with A and B swapped; {after}"
    if verdict == Verdict.PASS:
        return f"{told}, no worse by the {band} band; {after}"
    if verdict == Verdict.REGRESSION:
        return reason_of(verdict, told, band, after, beyond=seen.loss >= seen.upper)
    neither = f"neither worse nor no worse by the {band} band is proved"
    return f"{told}: {neither}; {after}, {may_decide(left)}"


def describe(metric: Metric, loss: float) -> str:
    """Who is ahead: ``B is 8.0 % slower than A``.

    Args:
        metric: what was compared.
        loss: B against A on the scale.
    """
    change = scale.change(metric, loss)
    if abs(change) < 0.0005:
        return "B is as A, within 0.05 %"
    worse, better = ("slower", "faster") if metric.family.name in _SPEEDS else ("worse", "better")
    return f"B is {percent(abs(change), sign='')} {worse if loss > 0 else better} than A"
