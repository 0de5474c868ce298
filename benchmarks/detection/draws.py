"""Draws: the seeded noise that every rule is given alike.

One value is one fresh start, on the log scale on which a positive number is a loss. The noise of a
draw depends on its key alone, so that rules, bands, priors and losses meet the very same numbers.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

SEED = 20_261_121
OUTLIER_SHARE = 0.04
OUTLIER_SIGMAS = 6.0

Values = NDArray[np.float64]


def noise(key: str, kind: str, trials: int, runs: int) -> Values:
    """Noise in units of sigma, shape (trials, runs).

    Args:
        key: names the draw; equal keys give equal numbers.
        kind: "gauss", or "outliers": 4 % of the starts are slower by 6 sigma besides.
        trials: rows.
        runs: fresh starts in a row.
    """
    random = np.random.default_rng([SEED, zlib.crc32(key.encode())])
    values = random.standard_normal((trials, runs))
    if kind == "outliers":
        values += OUTLIER_SIGMAS * (random.random((trials, runs)) < OUTLIER_SHARE)
    elif kind != "gauss":
        raise ValueError(f"unknown noise {kind!r}")
    return values


def throughputs(losses: Values, level: float = 1000.0) -> Values:
    """Values of a metric of which more is better, from losses on the log scale."""
    return level * np.exp(-losses)


def latencies(losses: Values, level: float = 1000.0) -> Values:
    """Values of a metric of which less is better, from losses on the log scale."""
    return level * np.exp(losses)
