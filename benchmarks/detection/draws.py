"""Draws: the seeded noise that every rule is given alike.

One value is one fresh start, on the log scale on which a positive number is a loss, in sigma. The
noise of a draw depends on its key alone, so that rules, bands, priors and losses meet the very same
numbers.
"""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from perfgate.judging.forecast.simulation import (
    HEAVY,
    IN_SESSION,
    REAL,
    NoiseScenario,
    session_counts,
    starts,
)

SEED = 20_261_122

# Noise as it is first, Gaussian noise second.
SCENARIOS = {
    "real": REAL,
    "real-start": NoiseScenario(0.75, 0.3, of_starts=(0.045, 0.020)),
    "real-sess": NoiseScenario(0.75, 0.3, of_sessions=(0.045, 0.020)),
    "heavy": HEAVY,
    "heavy50": replace(HEAVY, between=0.5),
    "old4x6": NoiseScenario(1.0, 0.0, of_starts=(0.04, 0.0), event_size=6.0),
    "gauss": NoiseScenario(1.0, 0.0),
    "session": NoiseScenario(1.0, 0.3),
    "session50": NoiseScenario(1.0, 0.5),
}
NOISES = tuple(SCENARIOS)

Values = NDArray[Any]


def source(key: str, part: int = 0) -> Generator:
    """The random numbers of that name."""
    return np.random.default_rng([SEED, zlib.crc32(key.encode()), part])


def noise(key: str, kind: str, trials: int, counts: Sequence[int]) -> Values:
    """Noise of one metric in sigma, shape (trials, sum of counts).

    Args:
        key: names the draw; equal keys give equal numbers.
        kind: one of `NOISES`.
        trials: rows.
        counts: fresh starts of each session.

    Raises:
        ValueError: unknown noise.
    """
    if kind not in SCENARIOS:
        raise ValueError(f"unknown noise {kind!r}")
    return starts(source(key), SCENARIOS[kind], trials, 1, counts)[:, 0].astype(np.float64)


@lru_cache(maxsize=2)
def probes(
    kind: str, n_base: int, sessions: int, metrics: int, trials: int, part: int = 0
) -> tuple[Values, Values]:
    """Baselines and sessions of a new build, in sigma: shape (trials, metrics, starts) each."""
    rng = source(f"probes {kind} {n_base} {sessions} {metrics}", part)
    base = starts(rng, SCENARIOS[kind], trials, metrics, session_counts(n_base, sessions))
    return base, starts(rng, SCENARIOS[kind], trials, metrics, [IN_SESSION])


def throughputs(losses: Values, level: float = 1000.0) -> Values:
    """Values of a metric of which more is better, from losses on the log scale."""
    return level * np.exp(-losses)


def latencies(losses: Values, level: float = 1000.0) -> Values:
    """Values of a metric of which less is better, from losses on the log scale."""
    return level * np.exp(losses)
