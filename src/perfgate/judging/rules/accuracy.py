"""Accuracy: right and wrong answers to a fixed set of questions, never a made-up sigma.

Both builds answered the same questions, so that questions are paired and only those that changed
sides count; scores without answers are the business of `rules.scores`. Scores and margins
are fractions: 0.02 is two points. Formulas and error rates: statistics §7.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import (
    Judgement,
    Verdict,
    counted,
    no_worse,
    points,
    unjudged,
    with_interval,
)
from perfgate.judging.rules.scale import as_number

Answers = Mapping[str, bool]

# Normal quantiles of the error rates: 0.2 % of calling a drop real, 5 % of excluding a drop of the
# margin. The same for every task, whatever else is judged (statistics §7).
LOSS_Z = 2.88
PASS_Z = 1.645
MOST_EVALUATIONS = 3
# Evaluations that, each alone, must lose more than half the margin before a loss is called.
_MUST_AGREE = 2


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
    most = min(max_runs, MOST_EVALUATIONS)
    verdict, table, notes = _decide(baseline, list(new[:most]), margin)
    low, high = table.bounds()
    left = most - table.runs
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=score,
        measured=score - table.drop,
        change=-table.drop,
        interval=(-high, -low),
        band=margin,
        runs_used=table.runs,
        needs_more_runs=verdict == Verdict.INCONCLUSIVE and left > 0,
        reason=_reason(verdict, table, margin, left),
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


@dataclass(frozen=True)
class _Table:
    """What so many evaluations of the new build lost and gained, question by question.

    Attributes:
        questions: n, those asked in each evaluation.
        runs: r, evaluations of the new build.
        base_runs: r_b, those of the baseline.
        lost: the sum of the D above 0: answers lost, per evaluation.
        gained: the sum of those below 0, as a positive number.
        squares: the sum of all D².
    """

    questions: int
    runs: int
    base_runs: int
    lost: float
    gained: float
    squares: float

    @property
    def drop(self) -> float:
        return (self.lost - self.gained) / self.questions

    @property
    def error(self) -> float:
        """SE: that of the mean of D, with one changed answer more than were seen."""
        spread = max(self.squares - self.questions * self.drop**2, 0.0)
        return math.sqrt(spread + 1 / min(self.runs, self.base_runs)) / self.questions

    def bounds(self) -> tuple[float, float]:
        """Bounds of the true drop; one of them fails in 0.2 %, the other in 5 %."""
        low, high = self.drop - LOSS_Z * self.error, self.drop + PASS_Z * self.error
        return max(low, -1.0), min(high, 1.0)

    def improved(self, least: float) -> bool:
        """Whether the gain is real and at least `least`."""
        return -self.drop >= least and -self.drop - LOSS_Z * self.error > 0


def _table(right: Mapping[str, int], base_runs: int, runs: Sequence[Answers]) -> _Table:
    """Args: question → how many of the baseline's `base_runs` evaluations got it right."""
    lost = gained = squares = 0
    for key, was in right.items():
        # In whole numbers: D times both numbers of evaluations.
        change = was * len(runs) - base_runs * sum(bool(one[key]) for one in runs)
        if change > 0:
            lost += change
        else:
            gained -= change
        squares += change * change
    scale = base_runs * len(runs)
    return _Table(
        len(right), len(runs), base_runs, lost / scale, gained / scale, squares / scale**2
    )


def _decide(
    baseline: Sequence[Answers], runs: Sequence[Answers], margin: float
) -> tuple[Verdict, _Table, list[str]]:
    right = {key: sum(bool(one[key]) for one in baseline) for key in baseline[0]}
    alone = [_table(right, len(baseline), [one]) for one in runs]
    table = alone[0]
    for number in range(1, len(runs) + 1):
        table = _table(right, len(baseline), runs[:number])
        low, high = table.bounds()
        if high < margin:
            second = alone[1] if len(alone) > 1 else None
            notes = ["small drop within the band"] if low > 0 else []
            if table.runs > 1 or not table.improved(margin / 2):
                return Verdict.PASS, table, notes
            if second is None:
                return Verdict.PASS, table, ["improved; a second evaluation would have to agree"]
            if second.improved(margin / 2):
                return Verdict.IMPROVEMENT, _table(right, len(baseline), runs[:2]), []
            return (
                Verdict.PASS,
                table,
                ["improved, but not in each of the first two evaluations"],
            )
        if (
            number >= 2
            and low > 0
            and sum(one.drop > margin / 2 for one in alone[:number]) >= _MUST_AGREE
        ):
            return Verdict.REGRESSION, table, []
    return Verdict.INCONCLUSIVE, table, []


def _reason(verdict: Verdict, table: _Table, margin: float, left: int) -> str:
    low, high = table.bounds()
    seen = with_interval(
        f"{points(-table.drop)} points", f"{points(-high)} points", f"{points(-low)} points"
    )
    band = f"the {points(-margin)} points band"
    each = " on average" if table.runs * table.base_runs > 1 else ""
    counts = (
        f"of {table.questions} questions {table.lost:.3g} answers lost and {table.gained:.3g} "
        f"gained{each}; {counted(table.runs, 'evaluation')} against "
        f"{table.base_runs} of the baseline"
    )
    if verdict == Verdict.PASS:
        equal = 2 * table.drop - high > -margin
        return f"{seen}, {no_worse(f'{points(-margin)} points', equal=equal)}; {counts}"
    if verdict == Verdict.IMPROVEMENT:
        gain = f"beyond the {50 * margin:+.1f} points that count as a gain"
        return f"{seen}, {gain}; each of the first two evaluations agrees; {counts}"
    if verdict == Verdict.REGRESSION:
        size = "beyond" if table.drop >= margin else "a real loss that may reach"
        return f"{seen}, {size} {band}; two evaluations or more agree; {counts}"
    proof = "a loss is likely but not confirmed" if low > 0 else "no loss is proved"
    ahead = f"up to {left} more may decide" if left > 0 else "no more are allowed"
    return f"{seen}: {proof}, and {band} is not excluded; {counts}, {ahead}"


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
    if not 0 < as_number(margin) < 1:
        raise InputError(
            f"the band of {metric} cannot be used",
            found=margin,
            expected="an absolute fraction between 0 and 1, e.g. 0.02 for two points",
        )
