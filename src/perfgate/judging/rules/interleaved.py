"""Interleaved starts: a machine that measures its own reference in between, judged by its noise.

Reference R and new build N take turns, so that a machine that drifts touches both alike. The noise
is that which R showed: nothing is known of a laptop beforehand. By the paired test (`rules.paired`)
with all references at every look; error rates: statistics §9.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric
from perfgate.core.rule import FEWEST_REFERENCES, FIRST_LOOK, Rule
from perfgate.core.verdict import (
    Judgement,
    Verdict,
    counted,
    may_decide,
    percent,
    reason_of,
    unjudged,
    with_interval,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import WIDEST_BAND
from perfgate.judging.rules.paired import (
    OWN_NOISE_RULE,
    Effect,
    Look,
    PairedRule,
    paired_test,
    pull_in,
)
from perfgate.judging.rules.performance import (
    TOO_NOISY,
    declared_band,
    performance_metric,
    widened_note,
)

# Degrees of freedom that earlier sessions of this machine add, at most.
_MOST_EARLIER = 15.0


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
    """

    metric: str
    band: float | None
    references: Sequence[float]
    new: Sequence[float]
    earlier: Sequence[Sequence[float]] = ()
    most: int = 6

    def judge(self, _: Rule) -> Judgement:
        """Judge new starts against references that took turns with them in one session.

        REGRESSION: a loss is real, and four starts lie beyond half the band. PASS: it lies below
        the band. IMPROVEMENT: moreover a gain is real, and four starts show half a band of it. On a
        machine that is too noisy nothing passes, and a REGRESSION needs every start over the whole
        band: of so wide a band, only what cannot be overlooked is told.

        Raises:
            InputError: unknown metric, no band, values that cannot be judged, too few references.
        """
        found, rule = performance_metric(self.metric), rule_for(self.most)
        if why := scale.has_zero(found, self.references, self.new):
            return unjudged(self.metric, Verdict.NOT_COMPARABLE, why, band=self.band)
        before = scale.badness(found, self.references, "reference")
        now = scale.badness(found, self.new, "new")
        scale.check_unit(found, before, now)
        groups = [
            scale.badness(found, group, "earlier reference") for group in self.earlier if len(group)
        ]
        if len(before) < FEWEST_REFERENCES:
            raise InputError(
                f"too few reference starts to measure this machine's noise in {found.name}",
                found=len(before),
                expected=f"{FEWEST_REFERENCES} or more",
                hint="measure the reference again with 4 to 8 fresh starts (gate.reference_starts)",
            )
        declared = declared_band(found, self.band)
        widest = scale.margin(found, WIDEST_BAND)
        effect = Effect.below_band(scale.margin(found, declared), widest)
        seen = paired_test(before, now, effect, with_history(rule, groups))
        verdict, wide = seen.verdict, scale.band(found, seen.upper)
        notes = []
        if pulled := int((pull_in(before, rule) != before).sum()):
            notes.append(f"{counted(pulled, 'outlying reference')} winsorised")
        if seen.upper > effect.upper:
            notes.append(widened_note(declared, wide, seen.sigma))
        gains = sum(x - seen.reference < -seen.upper / 2 for x in now[: seen.starts])
        if verdict == Verdict.PASS and seen.high < 0 and gains >= rule.needed:
            verdict = Verdict.IMPROVEMENT
        if verdict == Verdict.PASS and seen.low > 0:
            notes.append("small loss within the band")
        open_ = verdict == Verdict.INCONCLUSIVE
        left = (rule.looks[0] if seen.too_noisy else rule.most) - seen.starts if open_ else 0
        reason = _reason(found, seen, verdict, len(before), rule, left)
        return replace(
            seen.judgement(found, verdict, reason, more=left > 0),
            band=wide,
            notes=tuple(notes),
            mark="MACHINE" if seen.too_noisy and open_ else "",
            is_interleaved=True,
        )


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


def _reason(
    metric: Metric, seen: Look, verdict: Verdict, references: int, rule: PairedRule, left: int
) -> str:
    bounds = scale.interval(metric, seen.low, seen.high)
    told = with_interval(percent(scale.change(metric, seen.loss)), *map(percent, bounds))
    band = percent(scale.change(metric, seen.upper))
    after = f"{counted(seen.starts, 'fresh start')} in turns with {references} of the reference"
    if verdict == Verdict.IMPROVEMENT:
        return f"{told}, a gain that each of {rule.needed} starts shows; {after}"
    if verdict == Verdict.PASS:
        return f"{told}, within the {band} band; {after}"
    if verdict == Verdict.INCONCLUSIVE and seen.too_noisy:
        return f"{told}: {TOO_NOISY}; {after}"
    beyond, likely = seen.loss >= seen.upper, seen.low > 0
    ahead = f", {may_decide(left)}"
    return reason_of(verdict, told, band, after, beyond=beyond, likely=likely, ahead=ahead)
