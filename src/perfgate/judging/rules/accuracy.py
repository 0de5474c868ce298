"""Accuracy: right and wrong answers to a fixed set of questions, never a made-up sigma.

Where the answers of both builds are known, questions are paired, and only those that changed sides
count (`judge_paired`); else scores are compared, which finds larger drops alone (`judge_unpaired`).
Scores and margins are fractions: 0.02 is two points. Formulas and error rates: statistics §7.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from perfgate.core.errors import InputError
from perfgate.core.measurement import ChangedQuestions
from perfgate.core.metrics import ACCURACY, Metric, is_accuracy, lookup
from perfgate.core.verdict import Against, Judgement, Rule, Verdict, counted
from perfgate.judging.rules import scale
from perfgate.judging.rules.constants import NormalRule
from perfgate.judging.rules.diagnostics import faults_of
from perfgate.judging.rules.performance import no_improvement
from perfgate.judging.rules.reasons import may_decide, reason_of, unjudged

if TYPE_CHECKING:
    from perfgate.judging.rules.sequential import Differences, Floats, Verdicts

Answers = Mapping[str, bool]

# Error rates of calling a drop real: 0.2 % by answers, 0.5 % by scores; of excluding a drop of the
# margin: 5 %. The same for every task, whatever else is judged (statistics §7).
PAIRED_RULE = NormalRule(pass_z=1.645, loss_z=2.88)
SCORE_RULE = NormalRule(pass_z=1.645, loss_z=2.576)
MOST_EVALUATIONS = PAIRED_RULE.most
MOST_NAMED = 200  # changed questions of each kind; a broken build changes nearly all
_HALF = 0.5
# Evaluations that, each alone, must lose more than half the margin before a loss is called.
_MUST_AGREE = 2
# A margin of less than so many standard errors of one evaluation could not be found.
LEAST_MARGIN_ERRORS = 3.5


@dataclass(frozen=True)
class Score:
    """A share of right answers.

    Attributes:
        value: the share, 0…1.
        questions: how many questions are behind it; a documented standard error may stand for a
            broken number of them; None: the value is taken as exact.
    """

    value: float
    questions: float | None

    def __post_init__(self) -> None:
        if not 0 <= scale.as_number(self.value) <= 1 or not (
            self.questions is None or scale.as_number(self.questions) > 0
        ):
            raise InputError(
                "not a score", found=self, expected="a value of 0…1 of one question or more"
            )

    def variance(self) -> float:
        """p (1 - p) / n, squared standard error of the score; 0 of an exact one."""
        return 0.0 if self.questions is None else self.value * (1 - self.value) / self.questions


def counted_score(right: int, questions: int) -> Score:
    """The score of `right` answers out of `questions`.

    Raises:
        InputError: no questions, or counts that do not fit.
    """
    if not 0 <= right <= questions or questions == 0:
        raise InputError(
            "not a count of right answers",
            found=f"{right} of {questions}",
            expected="between none and all, of one question or more",
        )
    return Score(right / questions, questions)


def score_of(answers: Answers) -> Score:
    """The score of one evaluation's answers.

    Raises:
        InputError: no answers.
    """
    return counted_score(sum(map(bool, answers.values())), len(answers))


def documented_score(value: float, stderr: float | None = None) -> Score:
    """A documented score; its standard error gives the questions it is worth, p (1 - p) / SE².

    Raises:
        InputError: a value that is no fraction, or a standard error that no such score can have.
    """
    if stderr is None:
        return Score(value, None)
    if not (math.isfinite(stderr) and stderr > 0 and 0 < value < 1):
        raise InputError(
            "not a standard error of a score",
            found=f"{value} ± {stderr}",
            expected="a score between 0 and 1 and a standard error above 0",
            hint="leave the standard error out if none is documented",
        )
    return Score(value, value * (1 - value) / stderr**2)


def pooled_score(scores: Sequence[Score]) -> Score:
    """The mean of a baseline's evaluations, with all questions that were asked; of at least one.

    Both builds answer the same questions, so that only what differs between evaluations is noise:
    at most the binomial spread, and independent between evaluations.

    Raises:
        InputError: a score without its number of questions.
    """
    asked = [one.questions for one in scores if one.questions is not None]
    if len(asked) < len(scores) or not asked:
        raise InputError("a score of the baseline lacks its number of questions")
    return Score(fmean(score.value for score in scores), sum(asked))


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
    known = check(metric, margin)
    if not baseline or not new or not all(baseline):
        raise InputError(f"no answers of {metric}", expected="those of both builds")
    score = fmean(score_of(one).value for one in baseline)
    if different := _different_questions(baseline, new):
        return unjudged(metric, Verdict.NOT_COMPARABLE, different, band=margin, baseline=score)
    from perfgate.judging.rules.sequential import differences_of

    most, keys = min(max_runs, MOST_EVALUATIONS), list(baseline[0])
    before, after = (
        [[bool(one[key]) for key in keys] for one in side] for side in (baseline, new[:most])
    )
    found, moved = differences_of(before, after)
    verdict, runs = decide_paired(found, margin).first()
    notes = []
    if verdict == Verdict.PASS and runs == 1 and _improves(found, margin):
        why = no_improvement(
            "evaluation",
            len(after),
            lambda: _improves(differences_of(before, after[1:2])[0], margin),
        )
        notes += [why] if why else []
        if not why:
            verdict, runs = Verdict.IMPROVEMENT, 2
    drop = _bounded(float(found.drops[0, runs - 1]), float(found.errors[0, runs - 1]), PAIRED_RULE)
    on_average = " on average" if runs * len(before) > 1 else ""
    lost, gained = moved[runs - 1]
    return _judgement(
        (known, margin, score),
        verdict,
        drop,
        (runs, most),
        f"of {len(keys)} questions {lost:.3g} answers lost and {gained:.3g} gained{on_average}; "
        f"{counted(runs, 'evaluation')} against {len(before)} of the baseline",
        notes,
        equal=2 * drop.loss - drop.high > -margin,
        gain=f"{50 * margin:+.1f} points that count as a gain; each of the first two "
        "evaluations agrees",
        proof="two evaluations or more agree",
    )


def decide_paired(found: "Differences", margin: float) -> "Verdicts":
    """The rule by answers for many cases at once."""
    from perfgate.judging.rules.sequential import stipulated

    agreed = found.lose_more_than(margin / 2) >= _MUST_AGREE
    return stipulated(found.drops, found.errors, margin, PAIRED_RULE, agreed=agreed)


def _improves(found: "Differences", margin: float) -> bool:
    """Whether the gain of a single evaluation is real and at least half of the margin."""
    gain, error = -float(found.drops[0, 0]), float(found.errors[0, 0])
    return gain >= margin / 2 and gain - PAIRED_RULE.loss_z * error > 0


def judge_unpaired(
    metric: str,
    reference: Score,
    new: Sequence[Score],
    *,
    margin: float,
    max_runs: int = MOST_EVALUATIONS,
    than: str = "the baseline",
) -> Judgement:
    """Judge a score against another, or against a documented one.

    With p_ref and its standard error s_ref, and r evaluations of n questions each:
    d = p_ref - mean(p_new), SE = sqrt(s_ref² + p_ref (1 - p_ref) / (n r)). After each, in this
    order: d + 1.645 SE < m is PASS; r >= 2 and d - 2.576 SE > 0 is REGRESSION; else another is
    needed, three at most. m is `margin`, raised to 3.5 SE of one evaluation where it is less
    (statistics §7). The reference's share stands in the error of the new scores too, so that a
    worse score never narrows it; of a share near 0 or 1 that of one question counts.

    Args:
        metric: canonical name of an accuracy metric.
        reference: from `documented_score` or `pooled_score`.
        new: of each evaluation, in order, from `counted_score`.
        margin: the drop that counts, absolute.
        max_runs: evaluations of the new build, at most; more than three count as three.
        than: what the reference is, for the reason.

    Raises:
        InputError: no accuracy metric, a margin that is no fraction, or no new score or one without
            its number of questions.
    """
    from perfgate.judging.rules.sequential import as_cases, running_means

    known = check(metric, margin)
    if not new:
        raise InputError(f"no score of {metric}", expected="one of each evaluation")
    asked = [one.questions for one in new if one.questions is not None]
    if len(asked) < len(new):
        raise InputError(f"the new score of {metric} lacks its number of questions")
    questions, most, notes = min(asked), min(max_runs, MOST_EVALUATIONS), []
    wide = least_margin(reference, questions)
    if reference.questions is None:
        notes.append("against a documented number without a standard error, taken as exact")
    if wide > margin:
        notes.append(
            f"margin raised from {100 * margin:.1f} to {100 * wide:.1f} points, 3.5 standard "
            "errors of one evaluation: a smaller drop would not be found"
        )
        margin = wide
    shares = as_cases([[one.value for one in new[:most]]])
    verdict, runs = decide_scores(shares, reference, questions, margin).first()
    mean = reference.value - float(running_means(shares)[0, runs - 1])
    drop = _bounded(mean, standard_error(reference, questions, runs), SCORE_RULE)
    return _judgement(
        (known, margin, reference.value),
        verdict,
        drop,
        (runs, most),
        f"{questions:g} questions whose answers cannot be paired, in {counted(runs, 'evaluation')}",
        notes,
        separator="; ",
        than=than,
    )


def decide_scores(
    shares: "Floats", reference: Score, questions: float, margin: float
) -> "Verdicts":
    """The rule by scores for many cases at once.

    Args:
        shares: the score of each evaluation, in order; shape (cases, 1 to 3 evaluations).
        reference: what is compared with.
        questions: asked in each evaluation.
        margin: the drop that counts, at least `least_margin`.
    """
    from perfgate.judging.rules.sequential import running_means, stipulated

    evaluations = range(1, shares.shape[1] + 1)
    errors = [standard_error(reference, questions, runs) for runs in evaluations]
    return stipulated(reference.value - running_means(shares), errors, margin, SCORE_RULE)


def standard_error(reference: Score, questions: float, runs: int) -> float:
    """SE of the mean drop of so many evaluations of so many questions each, as judged."""
    share = reference.value
    if questions > 1:  # a share of 0 or 1 would have no spread at all
        share = min(max(share, 1 / questions), 1 - 1 / questions)
    return math.sqrt(reference.variance() + share * (1 - share) / (questions * runs))


def least_margin(reference: Score, questions: float) -> float:
    """The smallest margin that counts against that score: 3.5 SE of one evaluation.

    Args:
        reference: what is compared with.
        questions: those that are asked of the new build.
    """
    return min(LEAST_MARGIN_ERRORS * standard_error(reference, questions, 1), 0.999)


def _bounded(mean: float, error: float, rule: NormalRule) -> scale.Estimate:
    """A mean drop; below L the true one lies with the error rate of calling a drop real, above U
    with that of excluding one of the margin.
    """
    low, high = mean - rule.loss_z * error, mean + rule.pass_z * error
    return scale.Estimate(mean, max(low, -1.0), min(high, 1.0))


def _judgement(
    against: tuple[Metric, float, float],
    verdict: Verdict,
    drop: scale.Estimate,
    evaluations: tuple[int, int],
    evidence: str,
    notes: Sequence[str],
    separator: str = ", ",
    **words: Any,
) -> Judgement:
    """The judgement against a metric's margin and baseline score, of so many evaluations and at
    most; `words` as of `reason_of`.
    """
    (metric, margin, score), (runs, most) = against, evaluations
    left, small = most - runs, verdict == Verdict.PASS and drop.low > 0
    words |= {"beyond": drop.loss >= margin, "likely": drop.low > 0}
    ahead, band = f"{separator}{may_decide(left)}", scale.describe(metric, margin)
    effect = drop.describe(metric)
    return scale.judgement(
        metric,
        verdict,
        drop,
        margin,
        (score, score - drop.loss),
        reason_of(verdict, effect, band, evidence, ahead=ahead, **words),
        runs_used=runs,
        needs_more_runs=verdict == Verdict.INCONCLUSIVE and left > 0,
        notes=(*notes, "small drop within the band") if small else tuple(notes),
    )


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


def check(metric: str, margin: float) -> Metric:
    """The accuracy of that name.

    Raises:
        InputError: the metric is none, or the margin is no fraction.
    """
    if not is_accuracy(metric):
        raise InputError(
            "not an accuracy metric", found=metric, expected="accuracy:<task>:<metric>:<filter>"
        )
    known = lookup(metric)
    scale.margin(known, margin)
    return known


@dataclass(frozen=True)
class AccuracyTest:
    """An accuracy: answer by answer, or where they are not known on both sides, by two scores.

    Attributes:
        metric: canonical name.
        band: the drop that counts, absolute; None: the default.
        answers: those of each evaluation of the baseline, and of the new build.
        scores: of the baseline, and of each evaluation of the new build; None: the answers decide.
        measured: all scores of the baseline and of the new build, by metric; they tell a broken
            output or format from a small loss.
        against: what the baseline is.
    """

    metric: str
    band: float | None
    answers: tuple[Sequence[Answers], Sequence[Answers]]
    scores: tuple[Score, Sequence[Score]] | None
    measured: tuple[Mapping[str, float], Mapping[str, float]]
    against: Against = "baseline"

    def judge(self, rule: Rule) -> Judgement:
        """The verdict; errors as of `judge_paired` and `judge_unpaired`.

        Of the rule only the most fresh starts count: the error rates are an accuracy's own.
        """
        margin, most = self.band or ACCURACY.band or 0.0, rule.max_runs
        if self.scores is None:
            found = judge_paired(self.metric, *self.answers, margin=margin, max_runs=most)
        else:
            than = "the documented score" if self.against == "documented" else "the baseline"
            found = judge_unpaired(
                self.metric, *self.scores, margin=margin, max_runs=most, than=than
            )
        reason = found.reason
        if self.against == "documented" and found.verdict == Verdict.REGRESSION:
            reason = f"worse than the documented score: {reason}"
        elif self.against == "ab" and found.change is not None:
            ahead = "lower" if found.change < 0 else "higher"
            reason = f"B is {abs(100 * found.change):.1f} points {ahead} than A: {reason}"
        notes = (*found.notes, *faults_of(self.metric, *self.measured))
        return replace(found, reason=reason, notes=notes, against=self.against)

    def changed(self, used: int, against: Against) -> ChangedQuestions | None:
        """Which questions are answered otherwise; None: the answers are not known on both sides, an
        evaluation was asked other questions, or there is no baseline, as of an A/B.

        Args:
            used: how many evaluations of the new build the verdict rests on.
            against: what the baseline is.
        """
        baseline, new = self.answers[0], self.answers[1][:used]
        if self.scores is not None or against == "ab" or not (baseline and new and baseline[0]):
            return None
        if any(one.keys() != baseline[0].keys() for one in (*baseline, *new)):
            return None
        moved = {
            key: fmean(bool(one[key]) for one in new) - fmean(bool(one[key]) for one in baseline)
            for key in sorted(baseline[0])
        }
        lost = tuple(key for key, change in moved.items() if change <= -_HALF)
        gained = tuple(key for key, change in moved.items() if change >= _HALF)
        few = lost[:MOST_NAMED], gained[:MOST_NAMED]
        return ChangedQuestions(self.metric, against, len(moved), len(lost), len(gained), *few)
