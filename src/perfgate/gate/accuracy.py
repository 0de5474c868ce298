"""Accuracy: right and wrong answers to a fixed set of questions, never a made-up sigma.

Paired answers, where both builds answered the same questions, are judged by the questions that
changed sides; scores without answers by binomial intervals. Scores and margins are fractions: 0.02
is two points. Formulas and error rates: docs/reference/verdicts.md, "Accuracy".
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy
from perfgate.gate.distributions import beta_share, normal_quantile
from perfgate.gate.scale import as_number
from perfgate.gate.verdict import (
    Judgement,
    Verdict,
    counted,
    points,
    unjudged,
    with_interval,
)

Answers = Mapping[str, bool]


def judge_paired(
    metric: str,
    base_answers: Answers,
    new_answers: Sequence[Answers],
    *,
    margin: float,
    alpha: float = 0.01,
    beta: float = 0.05,
    max_runs: int = 2,
) -> Judgement:
    """Judge evaluations of a new build against the baseline's answers to the same questions.

    With b questions lost, c gained and n asked: drop = (b - c)/n, SE = sqrt(b + c + 1 - (b - c)²/n)
    / n. PASS if drop + z(1-beta) SE < margin; REGRESSION if the exact sign test of b against c
    (McNemar 1947) has p < alpha; else the evaluation is repeated once. The repeated evaluation
    answers the same questions and is compared with the same baseline answers, so its table is not
    independent of the first: counts are pooled by question and divided by their design effect (Rao
    and Scott 1992), which makes a repeat that only repeats itself no evidence at all. IMPROVEMENT
    instead of PASS when the first two evaluations, each alone, gain at least margin / 2 with
    p < alpha. Evaluations after the one that decides are not used.

    Args:
        metric: canonical name of an accuracy metric.
        base_answers: question key → answered correctly.
        new_answers: the same of each evaluation of the new build, in order.
        margin: the drop that counts, absolute.
        alpha: error rate, per look, of calling a drop real.
        beta: error rate, per look, of excluding a drop of `margin`.
        max_runs: evaluations of the new build, at most.

    Returns:
        the judgement; NOT_COMPARABLE if the questions are not the same.

    Raises:
        InputError: no accuracy metric, no answers, or a margin that is no fraction.
    """
    check(metric, margin)
    if not base_answers or not new_answers:
        raise InputError(f"no answers of {metric}", expected="those of both builds")
    runs = list(new_answers[:max_runs])
    baseline = sum(map(bool, base_answers.values())) / len(base_answers)
    if different := _different_questions(base_answers, runs):
        return unjudged(metric, Verdict.NOT_COMPARABLE, different, band=margin, baseline=baseline)
    verdict, table, notes = _decide(base_answers, runs, margin, alpha, beta)
    low, high = table.bounds(alpha, beta)
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=baseline,
        measured=baseline - table.drop,
        change=-table.drop,
        interval=(-high, -low),
        band=margin,
        runs_used=table.runs,
        needs_more_runs=verdict == Verdict.INCONCLUSIVE and table.runs < max_runs,
        reason=_reason(verdict, table, (low, high), margin, alpha, max_runs),
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Table:
    """Answers that changed sides, over all evaluations of the new build.

    Attributes:
        questions: questions asked in each evaluation.
        runs: evaluations.
        lost: answers right in the baseline and wrong in the new build.
        gained: the reverse.
        squares: sum over questions of (lost - gained)²; lost + gained if no question occurs twice.
    """

    questions: int
    runs: int
    lost: int
    gained: int
    squares: int

    @property
    def drop(self) -> float:
        return (self.lost - self.gained) / (self.questions * self.runs)

    def p_value(self) -> float:
        """P(at least `lost` of the changed answers are losses) if both sides are as likely.

        The binomial tail as incomplete beta function, which also takes counts divided by the
        design effect.
        """
        if self.lost == 0:
            return 1.0
        effect = self.squares / (self.lost + self.gained)
        return beta_share(self.lost / effect, self.gained / effect + 1, 0.5)

    def bounds(self, alpha: float, beta: float) -> tuple[float, float]:
        """Bounds of the true drop: the lower fails with alpha, the upper with beta."""
        net = self.lost - self.gained
        error = math.sqrt(self.squares + self.runs**2 - net**2 / self.questions) / (
            self.questions * self.runs
        )
        low = self.drop - normal_quantile(1 - alpha) * error
        high = self.drop + normal_quantile(1 - beta) * error
        return max(low, -1.0), min(high, 1.0)

    def gain(self) -> "_Table":
        """The table seen from the other side."""
        return _Table(self.questions, self.runs, self.gained, self.lost, self.squares)

    def shows(self, least: float, alpha: float) -> bool:
        return self.drop >= least and self.p_value() < alpha


def _table(base: Answers, runs: Sequence[Answers]) -> _Table:
    lost = gained = squares = 0
    for key, was_right in base.items():
        wrong = sum(not answers[key] for answers in runs)
        changed = wrong if was_right else len(runs) - wrong
        squares += changed**2
        if was_right:
            lost += changed
        else:
            gained += changed
    return _Table(len(base), len(runs), lost, gained, squares)


def _decide(
    base: Answers, runs: Sequence[Answers], margin: float, alpha: float, beta: float
) -> tuple[Verdict, _Table, list[str]]:
    table = _table(base, runs[:1])
    for number in range(1, len(runs) + 1):
        table = _table(base, runs[:number])
        if table.bounds(alpha, beta)[1] < margin:
            return _passed(base, runs, table, margin / 2, alpha)
        if table.p_value() < alpha:
            return Verdict.REGRESSION, table, []
    return Verdict.INCONCLUSIVE, table, []


def _passed(
    base: Answers, runs: Sequence[Answers], table: _Table, least: float, alpha: float
) -> tuple[Verdict, _Table, list[str]]:
    """IMPROVEMENT instead of PASS where each of the first two evaluations gains `least`."""
    notes = []
    if table.gain().shows(least, alpha):
        if len(runs) < 2:
            notes.append("improved; a second evaluation would have to agree")
        elif table.runs == 1 and _table(base, runs[1:2]).gain().shows(least, alpha):
            return Verdict.IMPROVEMENT, _table(base, runs), []
        else:
            notes.append("improved, but not in each of the first two evaluations")
    if table.p_value() < alpha:
        notes.append("small drop within the band")
    return Verdict.PASS, table, notes


def _reason(
    verdict: Verdict,
    table: _Table,
    bounds: tuple[float, float],
    margin: float,
    alpha: float,
    max_runs: int,
) -> str:
    low, high = bounds
    seen = with_interval(
        f"{points(-table.drop)} points", f"{points(-high)} points", f"{points(-low)} points"
    )
    band = f"the {points(-margin)} points band"
    counts = (
        f"of {table.questions} questions {table.lost} answers lost and {table.gained} gained "
        f"(p = {table.p_value():.2g}) in {counted(table.runs, 'evaluation')}"
    )
    if verdict == Verdict.PASS:
        return f"{seen}, within {band}; {counts}"
    if verdict == Verdict.IMPROVEMENT:
        gain = f"beyond the {50 * margin:+.1f} points that count as a gain"
        return f"{seen}, {gain}; each of the first two evaluations agrees; {counts}"
    if verdict == Verdict.REGRESSION:
        size = "beyond" if table.drop >= margin else "a real loss that may reach"
        return f"{seen}, {size} {band}; a loss is real at p < {alpha:g}; {counts}"
    left = max_runs - table.runs
    ahead = f"up to {left} more may decide" if left > 0 else "no more are allowed"
    return (
        f"{seen}: no loss is proved at p < {alpha:g}, and {band} is not excluded; {counts}, {ahead}"
    )


def _different_questions(base: Answers, runs: Sequence[Answers]) -> str:
    """How the questions of the first run with others differ; empty if all are the same."""
    for new in runs:
        missing, extra = len(base.keys() - new.keys()), len(new.keys() - base.keys())
        if missing or extra:
            return (
                f"not the same questions: {missing} of the baseline's {len(base)} were not asked "
                f"now, {extra} of {len(new)} asked now are not in the baseline"
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
