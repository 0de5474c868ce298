"""Documented power: how often the gate says what of a speed that a document reports, by simulation.

Pure, and the same each time. The rule is `perfgate.gate.documented.decide`, for many trials at
once; the document's machine and this one differ by 3 % (statistics §7).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from perfgate.gate.documented import BELOW_Z, MOST_STARTS, PASS_Z, standard_error
from perfgate.gate.noise_scenarios import starts
from perfgate.gate.simulated_verdicts import INCONCLUSIVE, PASS, REGRESSION, Verdicts
from perfgate.verdicts.power import FOUND, SCENARIO, Odds

BETWEEN_MACHINES = 0.03

_TRIALS = 20_000
_SEED = 7
_BISECTIONS = 10
_WIDEST = 4.0  # tolerances
_ROUNDED = 4  # digits of margin and noise: 0.01 %


def documented_verdicts(margin: float, sigma: float, most: int, loss: float) -> Verdicts:
    """What becomes of every trial.

    Args:
        margin: the tolerance on the log scale.
        sigma: noise of one start on that scale.
        most: fresh starts, at most; more than three count as three.
        loss: true loss against the document, in tolerances.
    """
    key = round(margin, _ROUNDED), round(sigma, _ROUNDED), min(most, MOST_STARTS)
    return _verdicts(*key, loss)


def documented_odds(margin: float, sigma: float, most: int, loss: float) -> Odds:
    """How often each verdict; arguments as in `documented_verdicts`."""
    found = documented_verdicts(margin, sigma, most, loss)
    regression, passed, inconclusive = (
        found.share(code) for code in (REGRESSION, PASS, INCONCLUSIVE)
    )
    return Odds(loss, regression, passed, inconclusive, 0.0, float(found.new.mean()), 0.0)


def documented_smallest(margin: float, sigma: float, most: int) -> float | None:
    """The smallest loss, in tolerances, that is found in 19 of 20 runs; None: not even four are."""

    def share(loss: float) -> float:
        return documented_verdicts(margin, sigma, most, loss).share(REGRESSION)

    low, high = 0.0, _WIDEST
    if share(high) < FOUND:
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < FOUND else (low, middle)
    return high


@lru_cache(maxsize=512)
def _verdicts(margin: float, sigma: float, most: int, loss: float) -> Verdicts:
    return decided(_losses(sigma) + loss * margin, margin, sigma, most)


def decided(losses: NDArray[np.float64], margin: float, sigma: float, most: int) -> Verdicts:
    """`perfgate.gate.documented.decide` for each row of losses, of `most` starts at least."""
    codes, at = np.zeros(len(losses), np.int8), np.full(len(losses), most - 1, np.int8)
    open_ = np.ones(len(losses), dtype=np.bool_)
    for runs in range(1, most + 1):
        made = losses[:, :runs]
        loss = np.median(made, axis=1) if runs >= MOST_STARTS else made.mean(axis=1)
        error = standard_error(sigma, runs)
        passed = open_ & (loss + PASS_Z * error < margin)
        below = open_ & ~passed & (loss - BELOW_Z * error > margin) & (runs >= 2)
        codes[passed], codes[below] = PASS, REGRESSION
        at[passed | below] = runs - 1
        open_ &= ~(passed | below)
    return Verdicts(codes, at, tuple((runs, 0) for runs in range(1, most + 1)))


@lru_cache(maxsize=32)
def _losses(sigma: float) -> NDArray[np.float64]:
    draw = np.random.default_rng(_SEED)
    noise = starts(draw, SCENARIO, _TRIALS, 1, [MOST_STARTS])[:, 0].astype(np.float64)
    machines = BETWEEN_MACHINES * draw.standard_normal((_TRIALS, 1))
    return sigma * noise + machines
