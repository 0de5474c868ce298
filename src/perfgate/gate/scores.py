"""Scores: accuracies known only as numbers, compared by their binomial intervals.

Where the answers of both builds are known, `perfgate.gate.accuracy` finds smaller drops.
"""

import math
from dataclasses import dataclass

from perfgate.core.errors import InputError
from perfgate.gate.accuracy import Answers, check
from perfgate.gate.distributions import normal_quantile
from perfgate.gate.scale import as_number
from perfgate.gate.verdict import Judgement, Verdict, points, with_interval


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

    def interval(self, low_z: float, high_z: float) -> tuple[float, float]:
        """Score interval of Wilson (1927) with its own normal quantile on each side."""
        if self.questions is None:
            return self.value, self.value
        return self._wilson(-low_z), self._wilson(high_z)

    def _wilson(self, z: float) -> float:
        p, n = self.value, self.questions or math.inf
        spread = math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
        return (p + z * z / (2 * n) + z * spread) / (1 + z * z / n)


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


def judge_unpaired(
    metric: str,
    reference: Score,
    new: Score,
    *,
    margin: float,
    alpha: float = 0.01,
    beta: float = 0.05,
) -> Judgement:
    """Judge a score against another, or against a documented one.

    With drop = p_ref - p_new, the bounds are those of Newcombe (1998, method 10), which combines
    the two Wilson intervals: L = drop - sqrt((p_ref - l_ref)² + (u_new - p_new)²), U likewise. For
    an exact reference they are Wilson's own. PASS if U < margin; REGRESSION if L > 0; else
    INCONCLUSIVE, and final: asking the same questions again does not narrow a binomial interval.

    Args:
        metric: canonical name of an accuracy metric.
        reference: from `counted_score` or `documented_score`.
        new: from `counted_score`.
        margin: the drop that counts, absolute.
        alpha: error rate of calling a drop real.
        beta: error rate of excluding a drop of `margin`.

    Raises:
        InputError: no accuracy metric, a margin that is no fraction, or a new score without its
            number of questions.
    """
    check(metric, margin)
    if new.questions is None:
        raise InputError(f"the new score of {metric} lacks its number of questions")
    drop = reference.value - new.value
    low, high = _bounds(reference, new, alpha, beta)
    band = f"the {points(-margin)} points band"
    verdict, why = Verdict.INCONCLUSIVE, f": no loss is proved, and {band} is not excluded"
    if high < margin:
        verdict, why = Verdict.PASS, f", within {band}"
    elif low > 0:
        size = "beyond" if drop >= margin else "a real loss that may reach"
        verdict, why = Verdict.REGRESSION, f", {size} {band}"
    notes = []
    if reference.questions is None:
        notes.append("against a documented number without a standard error, taken as exact")
    if verdict == Verdict.PASS and low > 0:
        notes.append("small drop within the band")
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=reference.value,
        measured=new.value,
        change=-drop,
        interval=(-high, -low),
        band=margin,
        runs_used=1,
        needs_more_runs=False,
        reason=f"{_seen(drop, low, high)}{why}; {new.questions:g} questions whose answers cannot "
        "be paired",
        notes=tuple(notes),
    )


def _seen(drop: float, low: float, high: float) -> str:
    change, worst, best = (f"{points(-one)} points" for one in (drop, high, low))
    return with_interval(change, worst, best)


def _bounds(reference: Score, new: Score, alpha: float, beta: float) -> tuple[float, float]:
    """Bounds of the true drop: the lower fails with alpha, the upper with beta."""
    alpha_z, beta_z = normal_quantile(1 - alpha), normal_quantile(1 - beta)
    drop = reference.value - new.value
    low = drop - math.hypot(
        reference.value - reference.interval(alpha_z, beta_z)[0],
        new.interval(beta_z, alpha_z)[1] - new.value,
    )
    high = drop + math.hypot(
        reference.interval(alpha_z, beta_z)[1] - reference.value,
        new.value - new.interval(beta_z, alpha_z)[0],
    )
    return low, high
