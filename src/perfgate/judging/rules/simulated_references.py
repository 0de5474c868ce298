"""Simulated references: how often a documented speed or score ends in which verdict, and when.

The rules of `rules.documented` and `rules.scores`, for many trials at once. Pure,
and the same each time. It loads numpy, so only what plans imports it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfgate.judging.rules.accuracy import MOST_EVALUATIONS, PASS_Z
from perfgate.judging.rules.documented import BELOW_Z, MOST_STARTS, standard_error
from perfgate.judging.rules.documented import PASS_Z as DOCUMENT_PASS_Z
from perfgate.judging.rules.scores import LOSS_Z, Score, least_margin
from perfgate.judging.rules.scores import standard_error as score_error

TRIALS = 20_000
_SEED = 72

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class ReferenceOdds:
    """How a comparison with a document ends.

    Attributes:
        below: share of REGRESSION.
        passed: share of PASS.
        starts: shares that take 1, 2, 3 starts (of scores: evaluations).
    """

    below: float
    passed: float
    starts: tuple[float, ...]


def documented_speed_odds(
    margin: float,
    sigma: float,
    loss: float,
    *,
    machines: float = 0.0,
    most: int = MOST_STARTS,
    trials: int = TRIALS,
) -> ReferenceOdds:
    """A speed against a document, on the log scale; noise is Gaussian.

    Args:
        margin: the tolerance.
        sigma: noise of one start, in the document and here.
        loss: the true one.
        machines: standard deviation of what the two machines differ by.
        most: fresh starts, at most.
        trials: how many are simulated.
    """
    draw = np.random.default_rng(_SEED)
    document = loss + machines * draw.standard_normal(trials)
    document -= sigma * draw.standard_normal(trials)
    losses = sigma * draw.standard_normal((MOST_STARTS, trials)) + document
    return decide_documented(losses[:most], margin, sigma)


def decide_documented(losses: Floats, margin: float, sigma: float) -> ReferenceOdds:
    """The rule for speeds; one row per start, one column per trial."""
    looks = []
    for runs in range(1, len(losses) + 1):
        used = losses[:runs]
        seen = np.median(used, axis=0) if runs == MOST_STARTS else used.mean(axis=0)
        error = standard_error(sigma, runs)
        looks.append(
            (
                seen + DOCUMENT_PASS_Z * error < margin,
                (seen - BELOW_Z * error > margin) & (runs >= 2),
            )
        )
    return _odds(looks)


def documented_score_odds(
    reference: Score,
    questions: int,
    margin: float,
    drop: float,
    *,
    most: int = MOST_EVALUATIONS,
    trials: int = TRIALS,
) -> ReferenceOdds:
    """A score against a document; the document errs by its standard error, evaluations binomially.

    Args:
        reference: from `documented_score`.
        questions: asked in each evaluation.
        margin: the declared one; raised as the rule does.
        drop: the true one.
        most: evaluations, at most.
        trials: how many are simulated.
    """
    draw = np.random.default_rng([_SEED, questions])
    margin = max(margin, least_margin(reference, questions))
    true = reference.value - drop - reference.variance() ** 0.5 * draw.standard_normal(trials)
    right = draw.binomial(questions, np.clip(true, 0, 1), (most, trials)) / questions
    looks = []
    for runs in range(1, most + 1):
        seen, error = (
            reference.value - right[:runs].mean(axis=0),
            score_error(reference, questions, runs),
        )
        looks.append((seen + PASS_Z * error < margin, (seen - LOSS_Z * error > 0) & (runs >= 2)))
    return _odds(looks)


def _odds(looks: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]) -> ReferenceOdds:
    """What is decided, look by look; of each: what passes, and what is a loss if it does not."""
    trials = len(looks[0][0])
    at, passed, below = np.full(trials, len(looks)), np.zeros(trials, bool), np.zeros(trials, bool)
    for runs, (passes, loses) in enumerate(looks, start=1):
        open_ = ~passed & ~below
        at[open_ & (passes | loses)] = runs
        below |= open_ & loses & ~passes
        passed |= open_ & passes
    shares = np.bincount(at, minlength=len(looks) + 1)[1:] / trials
    return ReferenceOdds(float(below.mean()), float(passed.mean()), tuple(map(float, shares)))
