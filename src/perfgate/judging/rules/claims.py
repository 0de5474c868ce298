"""Claims: documented statements that one result is better or worse than another, or than a number.

Unlike a regression test, a claim is about two settings of one build, measured in one session on one
machine: there is no history, and no spread between machines to allow for. The starts of both sides
are taken in pairs, in the order made; against a number there is one side. A claim is an interval
that the true loss must lie in, decided by the paired test (`rules.paired`):

    better         below 0
    better by g    below 0, and the estimate at most -g/2; refuted above -g  (g: the minimum effect)
    not_worse      below δ                                               (δ: the margin)
    not_better     above -δ
    worse          anywhere: the document warns of a cost, it does not promise one

With a documented size and our tolerance, e being the largest loss that is still that size:

    better         below min(0, e)
    worse          below e

so a size that is missed in the good direction is no failure. A claim that fails is "not
reproduced": it may be the document's fault, and is no part of what is promised of a release run.
Simulated error rates: statistics §10.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfgate.core.errors import InputError
from perfgate.core.metrics import ACCURACY, Metric, is_accuracy, lookup
from perfgate.core.verdict import Judgement, Verdict, counted, percent
from perfgate.judging.rules import accuracy, paired, scale
from perfgate.judging.rules.accuracy import Answers, Score
from perfgate.judging.rules.noise import FEWEST, checked_sigma
from perfgate.scenarios.scenario import Claim


@dataclass(frozen=True)
class EarlierStarts:
    """That one side is an accepted baseline: its starts were made in other sessions.

    Attributes:
        side: which side.
        sessions: how many sessions its starts are of.
    """

    side: paired.Side
    sessions: int


@dataclass(frozen=True)
class ClaimTest:
    """A claim and the numbers of both sides: that which it speaks of, then the other one.

    It states an interval that the true loss must lie in. Losses are on the scale of `rules.scale`,
    of an accuracy the drop of the share itself. That a claim has a meaning is checked where it is
    read (`perfgate.scenarios.claims`).

    The tolerance is ours: a document gives one number of one machine, without a spread. It is a
    loss of the value against what the document's ratio of both sides makes of the other one. With
    +7.6 % documented and a tolerance of 5 %, the limit is 1.076 · 0.95 - 1 = +2.2 %.

    Raises:
        InputError: an unknown metric, or one without a band and no margin where one is needed.

    Attributes:
        claim: the statement.
        values: of a speed: one per fresh start of each side, in order; none where it is a number.
        answers: of an accuracy: question key → answered correctly, of each evaluation of each side;
            empty ones are left out.
        scores: of an accuracy: that of the first evaluation of each side, where the answers are not
            known.
        earlier: that one side is a baseline's; None: both are of one session.
        own_noise: whether the machine's own noise decides; `sigma` does not count.
        sigma: noise of one fresh start of a speed on the log scale; None: that of the family.
    """

    claim: Claim
    values: tuple[Sequence[float], ...] = ()
    answers: tuple[Sequence[Answers], ...] = ()
    scores: tuple[Score | None, ...] = ()
    earlier: EarlierStarts | None = None
    own_noise: bool = False
    sigma: float | None = None

    def __post_init__(self) -> None:
        if self.has_margin and self.band is None:
            raise InputError(
                f"a claim of {self.claim.expect!r} about {self.claim.metric} needs a margin",
                hint="that it is not worse, or not better, at all can never be shown; say which "
                "change would count",
            )

    @property
    def metric(self) -> Metric:
        """What is compared."""
        return lookup(self.claim.metric)

    @property
    def has_margin(self) -> bool:
        """Whether a margin of loss, or of gain, does not count yet."""
        return self.claim.expect in ("not_worse", "not_better")

    @property
    def has_size(self) -> bool:
        """Whether the size that the document gives decides too."""
        return self.claim.documented is not None and not self.has_margin

    @property
    def band(self) -> float | None:
        """The margin: as given, or the metric's band; None: the claim has none."""
        return (self.claim.margin or self.metric.family.band) if self.has_margin else None

    @property
    def takes_all(self) -> bool:
        """Whether it holds whatever is measured."""
        return self.claim.expect == "worse" and self.claim.documented is None

    @property
    def effect(self) -> paired.Effect:
        """The interval that the true loss must lie in."""
        expect, edge = self.claim.expect, self._edge
        if self.takes_all:
            return paired.Effect()
        if self.has_size:
            return paired.Effect(upper=self._limit if expect == "worse" else min(0.0, self._limit))
        if self.claim.minimum_effect:
            # A gain that is real and at least half of the minimum holds it: no more could ever be
            # proved of one that is just as large (statistics §10).
            return paired.Effect(upper=0.0, refuted=edge, largest=edge / 2)
        return paired.Effect(lower=edge) if expect == "not_better" else paired.Effect(upper=edge)

    @property
    def _edge(self) -> float:
        """The margin, or the minimum effect, as a loss: negative where it is a gain; else 0."""
        share = self.claim.minimum_effect if self.band is None else self.band
        if self.claim.expect == "not_worse":
            return scale.margin(self.metric, share)
        is_higher_better = self.metric.direction == "higher"
        return scale.loss(self.metric, share if is_higher_better else -share) if share else 0.0

    @property
    def _size(self) -> float:
        """The documented change as a loss: negative where it is a gain."""
        return scale.loss(self.metric, self.claim.documented or 0.0)

    @property
    def _limit(self) -> float:
        """The largest loss that is still the documented size."""
        return self._size + scale.margin(self.metric, self.claim.tolerance)

    def explain(
        self, verdict: Verdict, seen: scale.Estimate, *, lacks: str = ""
    ) -> tuple[str, tuple[str, ...]]:
        """The verdict in words, and notes; `lacks`: why nothing can be decided yet."""
        told = seen.describe(self.metric)
        notes: tuple[str, ...] = ()
        if self.claim.minimum_effect:
            unit = "points" if is_accuracy(self.claim.metric) else "%"
            effect = f"minimum effect {100 * self.claim.minimum_effect:g} {unit}"
            notes = (f"{effect}, ours: the document gives no number",)
        if lacks:
            return f"{told}: {lacks}", notes
        if self.takes_all:
            return told, (_cost(seen),)
        words = self._words_of_size(seen) if self.has_size else self._words()
        holds, fails, undecided, more = words
        why = {
            Verdict.PASS: f"the claim holds: {told}, {holds}",
            Verdict.REGRESSION: f"the claim does not hold: {told}, {fails}",
            Verdict.INCONCLUSIVE: f"{told}: {undecided}",
        }
        return why[verdict], (*more, *notes)

    def _words(self) -> tuple[str, str, str, tuple[str, ...]]:
        """What holds, what fails and what is open, in words, and notes."""
        edge, word = scale.describe(self.metric, self._edge), self.claim.expect.removeprefix("not_")
        holds, fails = "better", "worse"
        if self.has_margin:
            holds, fails = f"not {word} by {edge}", f"{word} by more than {edge}"
        elif self.claim.minimum_effect:
            holds, fails = f"better by {edge}", f"not better by {edge}"
        notes = (f"documented: {percent(self.claim.documented)}",) if self.claim.documented else ()
        return holds, fails, f"neither {holds} nor {fails} is proved", notes

    def _words_of_size(self, seen: scale.Estimate) -> tuple[str, str, str, tuple[str, ...]]:
        """The same of a documented size."""
        tolerance, limit = f"our tolerance of {100 * self.claim.tolerance:g} %", self._limit
        terms = f"limit {scale.describe(self.metric, limit)} with {tolerance}"
        if self._size < 0 <= limit:
            terms = f"less than {tolerance}: the direction decides"
        terms = f"(documented {percent(self.claim.documented or 0.0)}, {terms})"
        if self.claim.expect == "worse":
            cost = "more than the documented cost"
            open_ = f"that it is no {cost} is neither proved nor excluded {terms}"
            return f"no {cost} {terms}", f"{cost} {terms}", open_, (_cost(seen),)
        direction = f"its direction {'holds' if seen.high < 0 else 'is not proved'}"
        size = ", its size is neither proved nor excluded" if limit < 0 else ""
        fails = f"its size does not hold {terms}, {direction}"
        if seen.low > 0:
            fails = f"the direction is the opposite {terms}"
        notes: tuple[str, ...] = ()
        if seen.high < self._size - scale.margin(self.metric, self.claim.tolerance):
            notes = ("better than documented by more than our tolerance: no failure",)
        return f"direction and size {terms}", fails, f"{direction}{size} {terms}", notes

    def judge(self) -> Judgement:
        """Judge the claim, by rules of its own; formulas at the top of this module.

        Returns:
            the judgement; `baseline` is the other side, `runs_used` counts pairs, REGRESSION means
            that the claim does not hold, `band` is the margin or the tolerance.

        Raises:
            InputError: nothing to compare, or values that cannot be judged.
        """
        judged = self._of_accuracy() if is_accuracy(self.claim.metric) else self._of_speed()
        return replace(judged, against="claim")

    def _of_speed(self) -> Judgement:
        """The paired test of a speed."""
        metric, (new, versus), value = self.metric, self.values, self.claim.value
        rule = self._rule()
        ours = scale.log_loss(metric, new, "new")
        other, what = (versus, "compared") if value is None else ([value], "claimed")
        theirs = scale.log_loss(metric, other, what)
        stored = (ours if rule.complete == "new" else theirs) if rule.sessions else None
        few = stored is not None and len(stored) < FEWEST
        if few or self.takes_all:
            rule = replace(rule, looks=(rule.most,))
        seen = paired.paired_test(theirs, ours, self.effect, rule)
        verdict, lacks, made = seen.verdict, "", counted(seen.starts, "fresh start")
        if self.takes_all:
            verdict = Verdict.PASS
        elif stored is not None and few:
            lacks = f"the baseline has {counted(len(stored), 'fresh start')}, at least {FEWEST}"
        elif seen.starts < rule.looks[0]:
            lacks = f"at least {counted(rule.looks[0], 'fresh start')}"
        if lacks:
            verdict, lacks = Verdict.INCONCLUSIVE, f"{lacks} a side decide"
        if value is not None:
            made += f" against the claimed {value:.10g} {metric.unit}"
        elif stored is not None:
            made += f" against {len(stored)} of the baseline"
        else:
            made = counted(seen.starts, "pair") + " of starts"
        why, notes = self.explain(verdict, seen.estimate, lacks=lacks)
        more = verdict == Verdict.INCONCLUSIVE and not few and seen.starts < rule.most
        judged = seen.judgement(
            metric, verdict, f"{why}; {made}", needs_more_runs=more, notes=notes
        )
        return replace(judged, band=self.band or self.claim.tolerance or None)

    def _rule(self) -> paired.PairedRule:
        """The constants, and whose spread counts.

        Two engines, or a setting that turns noisy, may differ in how far their starts vary: of a
        size, or where nothing else is known, each side's error is its own.
        """
        claim, earlier, family = self.claim, self.earlier, self.metric.family
        prior = checked_sigma(family.sigma if self.sigma is None else self.sigma)
        rule = replace(paired.CLAIM_RULE, sigma=prior)
        if self.own_noise:
            rule = paired.OWN_NOISE_CLAIM_RULE
        if claim.value is not None:
            return replace(rule, spread="new", between=0.0, complete="other")
        if earlier is not None:
            rule = replace(rule, complete=earlier.side, sessions=max(1, earlier.sessions))
        is_each = claim.documented or earlier or self.own_noise or claim.expect == "not_better"
        return replace(rule, spread="each") if is_each else rule

    def _of_accuracy(self) -> Judgement:
        """Where both sides' answers are known, questions are paired (`judge_paired`), else the
        scores are compared (`judge_unpaired`).

        Of both it takes the bounds L and U of the drop, which fail with 0.002 (of scores 0.005) and
        0.05, and decides as for performance, on the scale of the score itself: a drop that is real
        but may be smaller than the margin does not refute the claim. A number that it is compared
        with is taken as exact.
        """
        metric, value = self.metric.name, self.claim.value
        ours, theirs = ([one for one in side if one] for side in self.answers)
        band = self.band or ACCURACY.band or 0.0
        if ours and theirs:
            judged = accuracy.judge_paired(metric, theirs, ours, margin=band)
        else:
            score, reference = (
                accuracy.score_of(answers[0]) if answers else given
                for answers, given in zip((ours, theirs), self.scores, strict=True)
            )
            if value is not None:
                reference = accuracy.documented_score(value)
            if reference is None or score is None:
                expected = "answers or a score of both sides"
                raise InputError(f"no score of {metric}", expected=expected)
            judged = accuracy.judge_unpaired(metric, reference, [score], margin=band)
        if judged.change is None or judged.interval is None:
            return judged  # not the same questions
        low, high = judged.interval
        seen, effect = scale.Estimate(-judged.change, -high, -low), self.effect
        verdict = paired.as_verdict(effect.holds(*seen), effect.fails(seen.low, seen.high))
        why, notes = self.explain(verdict, seen)
        return replace(
            judged,
            verdict=verdict,
            band=self.band,
            needs_more_runs=judged.needs_more_runs and verdict == Verdict.INCONCLUSIVE,
            reason=f"{why}; {counted(judged.runs_used, 'evaluation')}",
            notes=notes,
        )


def _cost(seen: scale.Estimate) -> str:
    """What is known of a cost that a document warns of."""
    if seen.low > 0:
        return "the cost that the document warns of shows"
    if seen.high < 0:
        return "there is no cost here, but a gain"
    return "no cost shows here: neither a loss nor a gain is proved"
