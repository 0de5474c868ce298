"""Scores: accuracies known only as numbers: documented ones, and those without answers.

Where the answers of both builds are known, `rules.accuracy` finds smaller drops. The rule
and its error rates: statistics §7.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from perfgate.core.errors import InputError
from perfgate.core.rule import NormalRule
from perfgate.core.verdict import Judgement, Verdict, counted
from perfgate.judging.rules.accuracy import MOST_EVALUATIONS, Answers, Drop, check, judgement_of
from perfgate.judging.rules.scale import as_number

if TYPE_CHECKING:
    from perfgate.judging.rules.sequential import Floats, Verdicts

# Error rates of 0.5 % of calling a drop real, 5 % of excluding one of the margin (statistics §7).
RULE = NormalRule(pass_z=1.645, loss_z=2.576)
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
        if not 0 <= as_number(self.value) <= 1 or not (
            self.questions is None or as_number(self.questions) > 0
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
    return Score(fmean(one.value for one in scores), sum(asked))


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

    check(metric, margin)
    if not new:
        raise InputError(f"no score of {metric}", expected="one of each evaluation")
    asked = [one.questions for one in new if one.questions is not None]
    if len(asked) < len(new):
        raise InputError(f"the new score of {metric} lacks its number of questions")
    questions, most = min(asked), min(max_runs, MOST_EVALUATIONS)
    wide = least_margin(reference, questions)
    notes = _notes(reference, margin, wide)
    margin = max(margin, wide)
    shares = as_cases([[one.value for one in new[:most]]])
    verdict, runs = decide(shares, reference, questions, margin).first()
    mean = reference.value - float(running_means(shares)[0, runs - 1])
    drop = Drop(mean, standard_error(reference, questions, runs), RULE)
    if verdict == Verdict.PASS and drop.low > 0:
        notes.append("small drop within the band")
    return judgement_of(
        metric,
        verdict,
        reference.value,
        drop,
        margin,
        runs,
        most - runs,
        f"{questions:g} questions whose answers cannot be paired, in {counted(runs, 'evaluation')}",
        notes,
        separator="; ",
        than=than,
    )


def decide(shares: "Floats", reference: Score, questions: float, margin: float) -> "Verdicts":
    """The rule for many cases at once.

    Args:
        shares: the score of each evaluation, in order; shape (cases, 1 to 3 evaluations).
        reference: what is compared with.
        questions: asked in each evaluation.
        margin: the drop that counts, at least `least_margin`.
    """
    from perfgate.judging.rules.sequential import running_means, stipulated

    evaluations = range(1, shares.shape[1] + 1)
    errors = [standard_error(reference, questions, runs) for runs in evaluations]
    return stipulated(reference.value - running_means(shares), errors, margin, RULE)


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


def _notes(reference: Score, margin: float, wide: float) -> list[str]:
    notes = []
    if reference.questions is None:
        notes.append("against a documented number without a standard error, taken as exact")
    if wide > margin:
        notes.append(
            f"margin raised from {100 * margin:.1f} to {100 * wide:.1f} points, 3.5 standard "
            "errors of one evaluation: a smaller drop would not be found"
        )
    return notes
