"""Noise scenarios: simulated starts as noisy as engines are, for power, detection study and tests.

Loads numpy, which nothing on the way to a verdict needs. Model and figures: statistics §1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Values = NDArray[np.float32]

# An event is 4 sigma large, and by an exponential of mean 2 larger.
EVENT_LEAST = 4.0
EVENT_MEAN_BEYOND = 2.0

# Metrics of one probe: throughput, time per output token, time to first token; then a second
# throughput, two more times between tokens, a second time to first token. The figures of the first
# three are from statistics §1. That two metrics of one kind have no more in common than a
# throughput and a time per output token is ours: the less they have, the more false alarms.
_OF_FIRST_TOKEN = np.array([False, False, True, False, False, False, True])
CORRELATION = np.where(_OF_FIRST_TOKEN[:, np.newaxis] == _OF_FIRST_TOKEN, 0.8, 0.4)
np.fill_diagonal(CORRELATION, 1.0)


# How often something makes a start, or a whole session, slower and faster than usual.
Events = tuple[float, float]
_NONE, _OF_STARTS, _OF_SESSIONS = (0.0, 0.0), (0.025, 0.010), (0.020, 0.010)


@dataclass(frozen=True)
class NoiseScenario:
    """One kind of noise.

    Attributes:
        core: standard deviation of a start without events, in prior sigmas.
        between: the share of its variance that all starts of a session have in common.
        of_starts: events of single starts.
        of_sessions: events of whole sessions.
        event_size: size of every event, in prior sigmas; None: 4 + Exp(2).
    """

    core: float
    between: float
    of_starts: Events = _NONE
    of_sessions: Events = _NONE
    event_size: float | None = None


SCENARIOS = {
    "gauss": NoiseScenario(1.0, 0.0),
    "session": NoiseScenario(1.0, 0.3),
    "session50": NoiseScenario(1.0, 0.5),
    "real": NoiseScenario(0.75, 0.3, _OF_STARTS, _OF_SESSIONS),
    "real-start": NoiseScenario(0.75, 0.3, of_starts=(0.045, 0.020)),
    "real-sess": NoiseScenario(0.75, 0.3, of_sessions=(0.045, 0.020)),
    "heavy": NoiseScenario(1.0, 0.3, _OF_STARTS, _OF_SESSIONS),
    "heavy50": NoiseScenario(1.0, 0.5, _OF_STARTS, _OF_SESSIONS),
    "old4x6": NoiseScenario(1.0, 0.0, of_starts=(0.04, 0.0), event_size=6.0),
}


# Starts of a new build's session: N1 N2 C1 C2 N3 N4 C3, and one more.
IN_SESSION = 8


def session_counts(n_base: int, sessions: int) -> list[int]:
    """How many of a baseline's starts are of each session, as even as can be."""
    return [n_base // sessions + (place < n_base % sessions) for place in range(sessions)]


def starts(
    rng: Generator,
    scenario: str | NoiseScenario,
    trials: int,
    metrics: int,
    counts: Sequence[int],
) -> Values:
    """Losses of unchanged starts against their true level, in prior sigmas: positive is worse.

    Args:
        rng: source of the random numbers.
        scenario: a name in `SCENARIOS`, or one of its own.
        trials: how many probes are drawn, independently of each other.
        metrics: of each probe, 1 to 7, in the order of `CORRELATION`.
        counts: starts of each session, in order.

    Returns:
        shape (trials, metrics, sum of counts): the starts of the first session come first.

    Raises:
        KeyError: no scenario has that name.
        ValueError: not 1 to 7 metrics.
    """
    if not 1 <= metrics <= len(CORRELATION):
        raise ValueError(f"{metrics} metrics: 1 to {len(CORRELATION)} are modelled")
    kind = SCENARIOS[scenario] if isinstance(scenario, str) else scenario
    number = sum(counts)
    own = kind.core * (1 - kind.between) ** 0.5
    shared = kind.core * kind.between**0.5
    found = np.asarray(own * _normal(rng, trials, metrics, number), np.float32)
    found += _events(rng, kind.of_starts, kind.event_size, (trials, metrics, number))
    if kind.between or any(kind.of_sessions):
        of_session = shared * _normal(rng, trials, metrics, len(counts))
        shape = (trials, metrics, len(counts))
        of_session += _events(rng, kind.of_sessions, kind.event_size, shape)
        found += of_session[:, :, np.repeat(np.arange(len(counts)), counts)]
    return found


def _normal(rng: Generator, trials: int, metrics: int, number: int) -> Values:
    """Standard normal values, correlated between the metrics as `CORRELATION` says."""
    mixing = np.linalg.cholesky(CORRELATION[:metrics, :metrics]).astype(np.float32)
    drawn = rng.standard_normal((trials, metrics, number), dtype=np.float32)
    found: Values = np.einsum("ij,tjk->tik", mixing, drawn)
    return found


def _events(
    rng: Generator, events: Events, size: float | None, shape: tuple[int, int, int]
) -> Values:
    """The events of each metric, 0 where there is none: times to first token have their own."""
    (slow, fast), (trials, metrics, number) = events, shape
    found = np.zeros(shape, np.float32)
    if not any(events):
        return found
    for alike in (~_OF_FIRST_TOKEN[:metrics], _OF_FIRST_TOKEN[:metrics]):
        if alike.any():
            luck = rng.random((trials, number), dtype=np.float32)
            sizes = np.full_like(luck, size or EVENT_LEAST)
            if size is None:
                sizes += EVENT_MEAN_BEYOND * rng.standard_exponential(luck.shape, np.float32)
            signs = np.where(luck < slow, 1, np.where(luck > 1 - fast, -1, 0))
            found[:, alike] = (signs * sizes)[:, np.newaxis]
    return found
