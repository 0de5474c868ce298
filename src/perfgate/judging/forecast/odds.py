"""Odds: how often documented speeds, scores and paired answers end in which verdict, by simulation.

Before anything is measured, by the rules of `rules.documented`, `rules.accuracy` and
`rules.accuracy` on many drawn cases. Pure, and the same each time. It loads numpy, so only what
plans imports it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.random import Generator

from perfgate.core.errors import InputError
from perfgate.judging.rules import accuracy, documented
from perfgate.judging.rules.accuracy import MOST_EVALUATIONS, Answers, Score, least_margin
from perfgate.judging.rules.documented import MOST_STARTS
from perfgate.judging.rules.scale import as_number
from perfgate.judging.rules.sequential import PASS, REGRESSION, Differences, Verdicts

ANSWER_TRIALS = 12_000
REFERENCE_TRIALS = 20_000
# A margin can be used where a drop of just the margin is found at least so often, and a build that
# lost nothing passes so often.
LEAST_FOUND = 0.93
LEAST_PASSED = 0.95

# A question whose answer varies is answered right in 30 or in 70 % of evaluations: two evaluations
# then differ in 42 % of such questions.
_CHANCES = (0.3, 0.7)
_DIFFER = 0.42
_MOST_BASE = 10  # more evaluations of the baseline count as so many
_ANSWER_SEED, _REFERENCE_SEED = 71, 72


def documented_speed(
    margin: float,
    sigma: float,
    loss: float,
    *,
    machines: float = 0.0,
    most: int = MOST_STARTS,
    trials: int = REFERENCE_TRIALS,
) -> Verdicts:
    """A speed against a document, on the log scale; noise is Gaussian.

    Args:
        margin: the tolerance.
        sigma: noise of one start, in the document and here.
        loss: the true one.
        machines: standard deviation of what the two machines differ by.
        most: fresh starts, at most.
        trials: how many are simulated.
    """
    draw = np.random.default_rng(_REFERENCE_SEED)
    document = loss + machines * draw.standard_normal(trials)
    document -= sigma * draw.standard_normal(trials)
    losses = sigma * draw.standard_normal((MOST_STARTS, trials)) + document
    return documented.decide(losses[:most].T, margin, sigma)


def documented_score(
    reference: Score,
    questions: int,
    margin: float,
    drop: float,
    *,
    most: int = MOST_EVALUATIONS,
    trials: int = REFERENCE_TRIALS,
) -> Verdicts:
    """A score against a document; the document errs by its standard error, evaluations binomially.

    Args:
        reference: from `documented_score`.
        questions: asked in each evaluation.
        margin: the declared one; raised as the rule does.
        drop: the true one.
        most: evaluations, at most.
        trials: how many are simulated.
    """
    draw = np.random.default_rng([_REFERENCE_SEED, questions])
    margin = max(margin, least_margin(reference, questions))
    true = reference.value - drop - reference.variance() ** 0.5 * draw.standard_normal(trials)
    right = draw.binomial(questions, np.clip(true, 0, 1), (most, trials)) / questions
    return accuracy.decide_scores(right.T, reference, questions, margin)


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


def paired_answers(
    questions: int,
    changed_share: float,
    baseline_evaluations: int,
    margin: float,
    drop: float,
    most: int = MOST_EVALUATIONS,
) -> Verdicts:
    """Answers that are compared question by question, of a build with a true drop.

    Args:
        questions, changed_share, baseline_evaluations: as in `smallest_margin`.
        margin: the drop that counts.
        drop: the true one.
        most: evaluations of the new build, at most.

    Raises:
        InputError: as `smallest_margin`.
    """
    _check(questions, changed_share, baseline_evaluations)
    base = min(baseline_evaluations, _MOST_BASE)
    return _decided(_drawn(questions, changed_share, base), margin, drop, most)


def changed_share(evaluations: Sequence[Answers]) -> float | None:
    """The share of answers that differ between two evaluations of one build: the mean over pairs.

    None: fewer than two evaluations of the same questions, of which it could be told.
    """
    if len(evaluations) < 2 or any(one.keys() != evaluations[0].keys() for one in evaluations):
        return None
    number, pairs = len(evaluations), len(evaluations) * (len(evaluations) - 1) / 2
    right = [sum(bool(one[key]) for one in evaluations) for key in evaluations[0]]
    return sum(count * (number - count) for count in right) / pairs / len(right)


def _decided(drawn: Differences, margin: float, drop: float, most: int) -> Verdicts:
    """As many questions as `drop` says are answered right before and wrong now, always."""
    always = round(drop * drawn.questions)
    sums, squares, alone = (
        one[:, :most] + always for one in (drawn.sums, drawn.squares, drawn.alone)
    )
    return accuracy.decide_paired(replace(drawn, sums=sums, squares=squares, alone=alone), margin)


def draw_answers(
    questions: int, changed_share: float, base_runs: int, draw: Generator, trials: int
) -> Differences:
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
    return Differences(
        questions,
        base_runs,
        counts @ differences,
        counts @ differences**2,
        counts @ (before - after),
    )


@lru_cache(maxsize=64)
def _drawn(questions: int, changed_share: float, base_runs: int) -> Differences:
    draw = np.random.default_rng([_ANSWER_SEED, questions, round(1e6 * changed_share), base_runs])
    return draw_answers(questions, changed_share, base_runs, draw, ANSWER_TRIALS)


@lru_cache(maxsize=256)
def _smallest(questions: int, changed_share: float, base_runs: int) -> float | None:
    draws = _drawn(questions, changed_share, base_runs)
    steps = 400 if questions > 500 else 200
    for step in range(1, steps):
        margin = step / steps
        found, passed = (
            _decided(draws, margin, drop, MOST_EVALUATIONS).share(code)
            for drop, code in ((margin, REGRESSION), (0.0, PASS))
        )
        if found >= LEAST_FOUND and passed >= LEAST_PASSED:
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
