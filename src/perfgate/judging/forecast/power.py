"""Power: how often the gate will give which verdict, by simulating its own rule (statistics §6).

Pure, and the same each time: one seed a baseline size, and the same draws for every band and loss.
The starts are as noisy as published nightlies (`forecast.noise_scenarios`, "real").
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from perfgate.core.rule import ControlRule, Rule
from perfgate.judging.forecast.noise_scenarios import starts
from perfgate.judging.rules.noise import BETWEEN
from perfgate.judging.rules.sequential import (
    HOST_SHIFT,
    INCONCLUSIVE,
    PASS,
    REGRESSION,
    Levels,
    Verdicts,
    alone,
    controlled,
    levels,
)

TRIALS = 20_000
SCENARIO = "real"

# A loss is found if the gate calls it in 19 of 20 runs.
FOUND = 0.95
_BISECTIONS = 10
_WIDEST = 4.0  # bands; a loss that is not found there is not looked for

# A gate that finds less than this of a loss of 1.5 bands is refused.
LEAST_FOUND = 0.80
REFUSED_AT = 1.5

# Below, an unchanged build costs many starts, and a loss of one band is often missed.
FEW_SIGMAS = 4.0
FEW_SESSIONS = 3

# The starts of one session in their order: N1 N2 C1 C2 N3 N4 C3.
_OF_NEW, _OF_CONTROLS = (0, 1, 4, 5), (2, 3, 6)
_IN_SESSION = 8
_SEED = 1
_RULE = Rule()
# Bands are rounded down to so many sigma, so that like metrics share their simulation.
_STEP = 0.02

# controlled: the baseline's build is started beside the new one; alone: it is not; unproved: it is
# not, and `gate.control: required` lets no loss count without it.
Control = Literal["controlled", "alone", "unproved"]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Design:
    """One test of one metric, in units of the noise of one start.

    Attributes:
        n_base: fresh starts of the baseline.
        sessions: sessions that they come from.
        band: the loss that counts, in sigma, on the log scale.
        control: whether the other build can be started beside the new one.
        most: fresh starts of the new build, at most.
        between: the share of the variance that a session has in common, as the gate believes.
        rule: error rates where there is no control; its `max_runs` is not read.
    """

    n_base: int
    sessions: int
    band: float
    control: Control = "controlled"
    most: int = 5
    between: float = BETWEEN
    rule: Rule = _RULE

    def rounded(self) -> "Design":
        """The design that stands for this one and its like."""
        sigmas = max(_STEP, math.floor(self.band / _STEP + 1e-9) * _STEP)
        return replace(
            self,
            sessions=max(1, min(self.sessions, self.n_base)),
            band=round(sigmas, 6),
            between=round(self.between, 2),
        )


@dataclass(frozen=True)
class Odds:
    """How often each verdict, and how many starts, at one true loss.

    Attributes:
        loss: in bands.
        regression, passed, inconclusive: shares of 1.
        host_shift: the share that passes only because the other build is as slow.
        new: mean fresh starts of the new build.
        controls: mean controls.
    """

    loss: float
    regression: float
    passed: float
    inconclusive: float
    host_shift: float
    new: float
    controls: float


def odds(design: Design, loss: float) -> Odds:
    """How often each verdict at a true loss of so many bands."""
    return odds_of(verdicts(design, loss), loss)


def odds_of(found: Verdicts, loss: float) -> Odds:
    """The shares of each verdict; `loss` is told, in bands."""
    return Odds(
        loss,
        found.share(REGRESSION),
        found.share(PASS, HOST_SHIFT),
        found.share(INCONCLUSIVE),
        found.share(HOST_SHIFT),
        float(found.new.mean()),
        float(found.controls.mean()),
    )


def smallest_found(design: Design, share: float = FOUND) -> float | None:
    """The smallest loss, in bands, that is a REGRESSION in that share of runs.

    Ten bisections between 0 and four bands.

    Returns:
        None: not even four bands are.
    """
    return _smallest(design.rounded(), share)


def verdicts(design: Design, loss: float, column: int = 0) -> Verdicts:
    """What becomes of every trial.

    Args:
        design: the test.
        loss: true loss, in bands.
        column: which of the correlated metrics of one probe (`noise_scenarios.CORRELATION`).
    """
    return _verdicts(design.rounded(), loss, column)


@lru_cache(maxsize=256)
def _smallest(design: Design, share: float) -> float | None:
    return bisected(lambda loss: _verdicts(design, loss, 0).share(REGRESSION), share)


def bisected(found: Callable[[float], float], share: float = FOUND) -> float | None:
    """The smallest loss in (0, 4) bands that is found in that share of runs; None: none is.

    Args:
        found: loss, in bands → share of runs that end in REGRESSION.
        share: the share that is asked for.
    """
    low, high = 0.0, _WIDEST
    if found(high) < share:
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if found(middle) < share else (low, middle)
    return high


@lru_cache(maxsize=512)
def _verdicts(design: Design, loss: float, column: int) -> Verdicts:
    n_base, sessions = design.n_base, design.sessions
    against = _levels(n_base, sessions, design.between, design.rule.prior_dof, column)
    return simulated(design, loss, against, _draws(n_base, sessions)[1][:, column])


def simulated(design: Design, loss: float, against: Levels, session: Floats) -> Verdicts:
    """The rule on given noise.

    Args:
        design: the test.
        loss: true loss, in bands.
        against: the baselines, in sigma.
        session: the starts of the new build's session, shape (trials, 8), in sigma: N1 N2 C1 C2 N3
            N4 C3 where there are controls, else all of the new build.
    """
    now, moved = session.astype(np.float64), loss * design.band
    if design.control == "controlled":
        rule = ControlRule().with_at_most(design.most)
        new, beside = now[:, _OF_NEW] + moved, now[:, _OF_CONTROLS]
        return controlled(against, new, beside, design.band, rule)
    rule_alone = replace(design.rule, max_runs=design.most)
    new, required = now[:, : design.most] + moved, design.control == "unproved"
    return alone(against, new, design.band, rule_alone, required=required)


@lru_cache(maxsize=32)
def _levels(n_base: int, sessions: int, between: float, prior_dof: float, column: int) -> Levels:
    base = _draws(n_base, sessions)[0][:, column].astype(np.float64)
    return levels(base, 1.0, sessions=sessions, between=between, prior_dof=prior_dof)


@lru_cache(maxsize=8)
def _draws(n_base: int, sessions: int) -> tuple[Floats, Floats]:
    """Baseline and the new build's session, in sigma: once for each size of a baseline."""
    rng = np.random.default_rng([_SEED, n_base, sessions])
    counts = [n_base // sessions + (one < n_base % sessions) for one in range(sessions)]
    base = starts(rng, SCENARIO, TRIALS, 3, counts)
    return base, starts(rng, SCENARIO, TRIALS, 3, [_IN_SESSION])
