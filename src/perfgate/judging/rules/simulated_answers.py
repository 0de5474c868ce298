"""Simulated answers: how often paired answers end in which verdict, before anything is measured.

The rule of `rules.accuracy.judge_paired`, for many trials at once. Pure, and the same each
time. It loads numpy, so only what plans imports it; the verdict itself does not.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from perfgate.core.errors import InputError
from perfgate.judging.rules.accuracy import LOSS_Z, MOST_EVALUATIONS, PASS_Z
from perfgate.judging.rules.scale import as_number

TRIALS = 12_000
# A margin can be used where a drop of just the margin is found at least so often, and a build that
# lost nothing passes so often.
LEAST_FOUND = 0.93
LEAST_PASSED = 0.95

# A question whose answer varies is answered right in 30 or in 70 % of evaluations: two evaluations
# then differ in 42 % of such questions.
_CHANCES = (0.3, 0.7)
_DIFFER = 0.42
_MOST_BASE = 10  # more evaluations of the baseline count as so many
_SEED = 71

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class AnswerDraws:
    """What varying answers gave, in each trial, of a build that lost nothing.

    Attributes:
        questions: asked in each evaluation.
        base_runs: evaluations of the baseline.
        sums: of D, one row per number of evaluations used, one column per trial.
        squares: of D², likewise.
        alone: the sum of D of each single evaluation, one row each.
    """

    questions: int
    base_runs: int
    sums: Floats
    squares: Floats
    alone: Floats


@dataclass(frozen=True)
class AnswerOutcomes:
    """What became of each trial.

    Attributes:
        at: evaluations used.
        lost: whether it ended in REGRESSION.
        passed: whether it ended in PASS.
    """

    at: Ints
    lost: Flags
    passed: Flags

    @property
    def found_share(self) -> float:
        """The share that ended in REGRESSION."""
        return float(self.lost.mean())

    @property
    def passed_share(self) -> float:
        """The share that ended in PASS."""
        return float(self.passed.mean())

    @property
    def evaluations(self) -> float:
        """Mean evaluations used."""
        return float(self.at.mean())


def smallest_margin(
    questions: int, changed_share: float, baseline_evaluations: int
) -> float | None:
    """The smallest margin that the rule can hold, as a fraction; None: none can (statistics §7).

    With it, a drop of just the margin is found in 93 % of runs and a build that lost nothing passes
    in 95 %. In steps of a quarter of a point, of half a point up to 500 questions.

    Args:
        questions: how many are asked.
        changed_share: share of answers that differ between two evaluations of one build, 0…0.42.
        baseline_evaluations: of the baseline; more than ten count as ten.

    Raises:
        InputError: no questions, no evaluation, or a share outside of that.
    """
    _check(questions, changed_share, baseline_evaluations)
    return _smallest(questions, changed_share, min(baseline_evaluations, _MOST_BASE))


def found_share(
    questions: int,
    changed_share: float,
    baseline_evaluations: int,
    *,
    margin: float,
    drop: float | None = None,
) -> float:
    """The share of runs in which a true drop ends in REGRESSION.

    Args:
        questions, changed_share, baseline_evaluations: as in `smallest_margin`.
        margin: the drop that counts.
        drop: the true one; None: just the margin.

    Raises:
        InputError: as `smallest_margin`.
    """
    true = margin if drop is None else drop
    return outcomes(questions, changed_share, baseline_evaluations, margin, true).found_share


def outcomes(
    questions: int,
    changed_share: float,
    baseline_evaluations: int,
    margin: float,
    drop: float,
    most: int = MOST_EVALUATIONS,
) -> AnswerOutcomes:
    """What becomes of runs whose true drop is `drop`; arguments as of `found_share`.

    Args:
        most: evaluations of the new build, at most.
    """
    _check(questions, changed_share, baseline_evaluations)
    base = min(baseline_evaluations, _MOST_BASE)
    return decide_answers(_drawn(questions, changed_share, base), margin, drop, most)


def draw_answers(
    questions: int, changed_share: float, base_runs: int, draw: Generator, trials: int
) -> AnswerDraws:
    """Draw the answers that vary; those that never do cancel out.

    A trial is a count of questions for every combination of a chance of being right, right answers
    of the baseline, and right or wrong in each of the three evaluations of the new build.
    """
    varying = min(questions, round(changed_share / _DIFFER * questions))
    patterns = np.array([[i >> j & 1 for j in range(3)] for i in range(8)])
    cells, chances = [], []
    for chance in _CHANCES:
        for right in range(base_runs + 1):
            of_base = math.comb(base_runs, right) * chance**right
            of_base *= (1 - chance) ** (base_runs - right)
            for pattern in patterns:
                hits = int(pattern.sum())
                of_new = chance**hits * (1 - chance) ** (MOST_EVALUATIONS - hits)
                cells.append((right / base_runs, *pattern))
                chances.append(of_base * of_new / len(_CHANCES))
    counts = draw.multinomial(varying, np.array(chances) / sum(chances), size=trials)
    table = np.array(cells)
    before, after = table[:, :1], table[:, 1:]
    used = np.arange(1, MOST_EVALUATIONS + 1)
    differences = before - np.cumsum(after, axis=1) / used
    return AnswerDraws(
        questions,
        base_runs,
        (counts @ differences).T,
        (counts @ differences**2).T,
        (counts @ (before - after)).T,
    )


def decide_answers(
    draws: AnswerDraws, margin: float, drop: float, most: int = MOST_EVALUATIONS
) -> AnswerOutcomes:
    """The rule, for all trials at once.

    Args:
        draws: what varied.
        margin: the drop that counts.
        drop: the true drop: so many questions are answered right before and wrong now, always.
        most: evaluations of the new build, at most.
    """
    asked, trials = draws.questions, draws.sums.shape[1]
    always = round(drop * asked)
    agree = np.cumsum((draws.alone + always) / asked > margin / 2, axis=0)
    at = np.full(trials, most, dtype=np.int64)
    lost, passed = np.zeros(trials, dtype=np.bool_), np.zeros(trials, dtype=np.bool_)
    for runs in range(1, min(most, MOST_EVALUATIONS) + 1):
        seen = (draws.sums[runs - 1] + always) / asked
        spread = np.maximum(draws.squares[runs - 1] + always - asked * seen**2, 0)
        error = np.sqrt(spread + 1 / min(runs, draws.base_runs)) / asked
        open_ = ~lost & ~passed
        now_passed = open_ & (seen + PASS_Z * error < margin)
        now_lost = open_ & ~now_passed & (runs >= 2) & (seen - LOSS_Z * error > 0)
        now_lost &= agree[runs - 1] >= 2
        at[now_passed | now_lost] = runs
        passed |= now_passed
        lost |= now_lost
    return AnswerOutcomes(at, lost, passed)


@lru_cache(maxsize=64)
def _drawn(questions: int, changed_share: float, base_runs: int) -> AnswerDraws:
    draw = np.random.default_rng([_SEED, questions, round(1e6 * changed_share), base_runs])
    return draw_answers(questions, changed_share, base_runs, draw, TRIALS)


@lru_cache(maxsize=256)
def _smallest(questions: int, changed_share: float, base_runs: int) -> float | None:
    draws = _drawn(questions, changed_share, base_runs)
    steps = 400 if questions > 500 else 200
    for step in range(1, steps):
        margin = step / steps
        if (
            decide_answers(draws, margin, margin).found_share >= LEAST_FOUND
            and decide_answers(draws, margin, 0.0).passed_share >= LEAST_PASSED
        ):
            return margin
    return None


def _check(questions: int, changed_share: float, base_runs: int) -> None:
    if not (questions >= 1 and base_runs >= 1 and 0 <= as_number(changed_share) <= _DIFFER):
        raise InputError(
            "answers that cannot be simulated",
            found=f"{questions} questions, {changed_share:g} of the answers changed, "
            f"{base_runs} evaluations of the baseline",
            expected=f"one question and one evaluation or more, a share of 0 to {_DIFFER:g}",
        )
