"""Accuracy: right and wrong answers to a fixed set of questions, never a made-up sigma.

Both builds answered the same questions, so that questions are paired and only those that changed
sides count; scores without answers are the business of `rules.scores`. Scores and margins
are fractions: 0.02 is two points. Formulas and error rates: statistics §7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy
from perfgate.core.rule import NormalRule
from perfgate.core.verdict import (
    Judgement,
    Verdict,
    counted,
    may_decide,
    points,
    reason_of,
    unjudged,
    with_interval,
)
from perfgate.judging.rules.scale import checked_points

if TYPE_CHECKING:
    from perfgate.judging.rules.sequential import Differences, Verdicts

Answers = Mapping[str, bool]

# Error rates of 0.2 % of calling a drop real and 5 % of excluding a drop of the margin. The same
# for every task, whatever else is judged (statistics §7).
RULE = NormalRule(pass_z=1.645, loss_z=2.88)
MOST_EVALUATIONS = RULE.most
# Evaluations that, each alone, must lose more than half the margin before a loss is called.
_MUST_AGREE = 2


@dataclass(frozen=True)
class Drop:
    """The mean drop of a score, with its bounds; positive is worse."""

    mean: float
    error: float
    rule: NormalRule

    @property
    def low(self) -> float:
        """Below it the true drop lies with the error rate of calling a drop real."""
        return max(self.mean - self.rule.loss_z * self.error, -1.0)

    @property
    def high(self) -> float:
        """Above it the true drop lies with the error rate of excluding one of the margin."""
        return min(self.mean + self.rule.pass_z * self.error, 1.0)

    def improved(self, least: float) -> bool:
        """Whether the gain is real and at least `least`."""
        return -self.mean >= least and -self.mean - self.rule.loss_z * self.error > 0

    def __str__(self) -> str:
        texts = (f"{points(-one)} points" for one in (self.mean, self.high, self.low))
        return with_interval(*texts)


def judge_paired(
    metric: str,
    baseline: Sequence[Answers],
    new: Sequence[Answers],
    *,
    margin: float,
    max_runs: int = MOST_EVALUATIONS,
) -> Judgement:
    """Judge evaluations of a new build against the baseline's answers to the same questions.

    With r_b evaluations of the baseline and r of the new build, of n questions each: D, of each
    question, is the share of the baseline's evaluations that got it right less that of the new
    build's; d = mean(D), SE = sqrt(sum D² - n d² + 1/min(r, r_b)) / n. After each evaluation, in
    this order: d + 1.645 SE < margin is PASS; r >= 2, d - 2.88 SE > 0 and two evaluations that each
    lose more than half the margin are REGRESSION; else another is needed, three at most
    (statistics §7). IMPROVEMENT instead of PASS when the first two evaluations, each alone, gain at
    least half the margin, beyond 2.88 SE. Evaluations after the one that decides are not used. A
    build whose answers never vary is judged in the same way: its repeats merely agree.

    Args:
        metric: canonical name of an accuracy metric.
        baseline: question key → answered correctly, of each evaluation of the baseline, any order.
        new: the same of each evaluation of the new build, in order.
        margin: the drop that counts, absolute.
        max_runs: evaluations of the new build, at most; more than three count as three.

    Returns:
        the judgement; NOT_COMPARABLE if the questions are not the same.

    Raises:
        InputError: no accuracy metric, no answers, or a margin that is no fraction.
    """
    check(metric, margin)
    if not baseline or not new or not all(baseline):
        raise InputError(f"no answers of {metric}", expected="those of both builds")
    score = fmean(score_share(one) for one in baseline)
    if different := _different_questions(baseline, new):
        return unjudged(metric, Verdict.NOT_COMPARABLE, different, band=margin, baseline=score)
    from perfgate.judging.rules.sequential import differences_of

    most, keys = min(max_runs, MOST_EVALUATIONS), list(baseline[0])
    before, after = (
        [[bool(one[key]) for key in keys] for one in side] for side in (baseline, new[:most])
    )
    found, moved = differences_of(before, after)
    verdict, runs = decide(found, margin).first()
    drop = _drop(found, runs)
    notes = ["small drop within the band"] if verdict == Verdict.PASS and drop.low > 0 else []
    if verdict == Verdict.PASS and runs == 1 and drop.improved(margin / 2):
        if len(after) == 1:
            notes = ["improved; a second evaluation would have to agree"]
        elif _drop(differences_of(before, after[1:2])[0], 1).improved(margin / 2):
            verdict, runs, notes = Verdict.IMPROVEMENT, 2, []
            drop = _drop(found, runs)
        else:
            notes = ["improved, but not in each of the first two evaluations"]
    on_average = " on average" if runs * len(before) > 1 else ""
    lost, gained = moved[runs - 1]
    return judgement_of(
        metric,
        verdict,
        score,
        drop,
        margin,
        runs,
        most - runs,
        f"of {len(keys)} questions {lost:.3g} answers lost and {gained:.3g} gained{on_average}; "
        f"{counted(runs, 'evaluation')} against {len(before)} of the baseline",
        notes,
        equal=2 * drop.mean - drop.high > -margin,
        gain=f"{50 * margin:+.1f} points that count as a gain; each of the first two "
        "evaluations agrees",
        proof="two evaluations or more agree",
    )


def decide(found: "Differences", margin: float) -> "Verdicts":
    """The rule for many cases at once."""
    from perfgate.judging.rules.sequential import stipulated

    agreed = found.lose_more_than(margin / 2) >= _MUST_AGREE
    return stipulated(found.drops, found.errors, margin, RULE, agreed=agreed)


def _drop(found: "Differences", runs: int) -> Drop:
    """That of the first evaluations of a single case."""
    return Drop(float(found.drops[0, runs - 1]), float(found.errors[0, runs - 1]), RULE)


def judgement_of(
    metric: str,
    verdict: Verdict,
    score: float,
    drop: Drop,
    margin: float,
    runs: int,
    left: int,
    evidence: str,
    notes: Sequence[str],
    separator: str = ", ",
    **words: Any,
) -> Judgement:
    """The judgement of an accuracy.

    Args:
        metric: canonical name.
        verdict: what was decided.
        score: of the baseline.
        drop: of the evaluations used.
        margin: the drop that counts.
        runs: evaluations used.
        left: how many more are allowed.
        evidence: what it rests on, in words.
        notes: for a person.
        separator: before how many more may decide.
        words: as of `reason_of`.
    """
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=score,
        measured=score - drop.mean,
        change=-drop.mean,
        interval=(-drop.high, -drop.low),
        band=margin,
        runs_used=runs,
        needs_more_runs=verdict == Verdict.INCONCLUSIVE and left > 0,
        reason=reason_of(
            verdict,
            str(drop),
            f"{points(-margin)} points",
            evidence,
            beyond=drop.mean >= margin,
            likely=drop.low > 0,
            ahead=f"{separator}{may_decide(left)}",
            **words,
        ),
        notes=tuple(notes),
    )


def score_share(answers: Answers) -> float:
    """The share of one evaluation's answers that are right; of at least one."""
    return sum(map(bool, answers.values())) / len(answers)


def changed_share(evaluations: Sequence[Answers]) -> float | None:
    """The share of answers that differ between two evaluations of one build: the mean over pairs.

    None: fewer than two evaluations of the same questions, of which it could be told.
    """
    if len(evaluations) < 2 or any(one.keys() != evaluations[0].keys() for one in evaluations):
        return None
    number, pairs = len(evaluations), len(evaluations) * (len(evaluations) - 1) / 2
    right = [sum(bool(one[key]) for one in evaluations) for key in evaluations[0]]
    return sum(count * (number - count) for count in right) / pairs / len(right)


def _different_questions(baseline: Sequence[Answers], runs: Sequence[Answers]) -> str:
    """How the questions of the first evaluation with others differ; empty if all are the same."""
    base = baseline[0]
    for other in (*baseline[1:], *runs):
        if base.keys() == other.keys():
            continue
        missing, extra = len(base.keys() - other.keys()), len(other.keys() - base.keys())
        if any(other is one for one in baseline):
            return (
                f"the baseline's evaluations did not ask the same questions: {missing} of "
                f"{len(base)} are missing from one, which has {extra} others"
            )
        return (
            f"not the same questions: {missing} of the baseline's {len(base)} were not asked "
            f"now, {extra} of {len(other)} asked now are not in the baseline"
        )
    return ""


def check(metric: str, margin: float) -> None:
    """Refuse a metric that is no accuracy, and a margin that is no fraction.

    Raises:
        InputError: either of them.
    """
    if not is_accuracy(metric):
        raise InputError(
            "not an accuracy metric", found=metric, expected="accuracy:<task>:<metric>:<filter>"
        )
    checked_points(metric, margin)
