"""The error rates of docs/explanation/detection.md, reproduced by simulation with fixed seeds."""

import numpy as np
import pytest
from numpy.typing import NDArray
from plain_values import judge_sweep
from sizes import sized
from tables import each

from benchmarks.detection.draws import SCENARIOS
from perfgate.core.verdict import Rule, Verdict
from perfgate.judging.forecast.simulation import REAL
from perfgate.judging.forecast.simulation import starts as noisy_starts
from perfgate.judging.rules import sequential
from perfgate.judging.rules.constants import ControlRule

# Under coverage these take four times as long; other tests reach every line that they do.
pytestmark = [pytest.mark.slow, pytest.mark.no_cover, pytest.mark.nightly]

TRIALS = sized(500, 2000)
SIGMA = 0.005


def deviation(percent: float, trials: int = TRIALS) -> float:
    """Four standard errors of a simulated percentage, and half a point for rounding."""
    share = percent / 100
    return 400 * float(np.sqrt(max(share * (1 - share), 1 / trials) / trials)) + 0.1


# noise, starts and sessions of the baseline, with controls, loss in bands → REGRESSION %, PASS %,
# starts of both builds; a band of 4.04 sigma
TABLE = [
    ("real", 10, 10, True, 0.0, 0.0, 99.9, 1.11),
    ("real", 10, 10, True, 1.0, 94.5, 4.9, 5.04),
    ("real", 10, 10, True, 1.5, 97.5, 2.4, 5.03),
    ("real", 3, 3, True, 0.0, 0.01, 99.8, 1.20),
    ("real", 3, 3, True, 1.0, 92.5, 5.3, 5.08),
    ("real", 3, 1, True, 1.0, 90.0, None, None),
    ("real", 2, 2, True, 0.0, None, 98.9, None),
    ("real", 2, 2, True, 1.0, 86.0, None, None),
    ("real", 1, 1, True, 0.0, None, 99.3, None),
    ("real", 1, 1, True, 1.0, 74.7, 7.9, 5.25),
    ("heavy", 10, 10, True, 1.0, 89.9, 7.5, 5.17),
    ("gauss", 10, 10, True, 0.0, 0.0, 100.0, 1.05),
    ("gauss", 10, 10, True, 1.0, 93.8, 4.5, 5.30),
    ("real", 10, 10, False, 0.0, 2.1, 97.8, 1.08),
    ("real", 10, 10, False, 1.0, 95.5, 3.7, 2.11),
    ("real", 1, 1, False, 0.0, 3.7, 90.8, 1.49),
    ("gauss", 10, 10, False, 0.0, 0.005, 100.0, 1.04),
    ("gauss", 10, 10, False, 1.0, 97.0, 3.0, 2.15),
]


@each(("noise", "n_base", "sessions", "controls", "loss", "fails", "passes", "starts"), TABLE)
def test_error_rates(noise, n_base, sessions, controls, loss, fails, passes, starts) -> None:
    random, trials = np.random.default_rng([77, n_base, sessions]), sized(10_000, 40_000)
    base = noisy_starts(random, SCENARIOS[noise], trials, 1, [n_base // sessions] * sessions)[:, 0]
    session = noisy_starts(random, SCENARIOS[noise], trials, 1, [8])[:, 0].astype(np.float64)
    against = sequential.levels(base.astype(np.float64), 1.0, sessions=sessions)
    if controls:
        new = session[:, [0, 1, 4, 5]] + loss * 4.04
        found = sequential.controlled(against, new, session[:, [2, 3, 6]], 4.04, ControlRule())
    else:
        found = sequential.alone(against, session[:, :5] + loss * 4.04, 4.04, Rule())
    for expected, share in (
        (fails, found.share(sequential.REGRESSION)),
        (passes, found.share(sequential.PASS, sequential.HOST_SHIFT)),
    ):
        if expected is not None:
            bound = deviation(expected, trials) + 0.2
            assert 100 * share == pytest.approx(expected, abs=bound)
    if starts is not None:
        assert (found.new + found.controls).mean() == pytest.approx(starts, abs=0.05)


# correlation of the points, loss in bands at all of 8 points → REGRESSION % of the curve
CURVES = [(0.0, 0.0, 0.0), (0.0, 0.4, 81.0), (0.0, 0.6, 100.0), (0.3, 0.6, 96.0)]


@pytest.mark.parametrize(("correlation", "loss", "fails"), CURVES)
def test_a_curve_finds_what_no_point_does(correlation: float, loss: float, fails: float) -> None:
    """With the correlation estimated from the ten baseline starts, as the gate does."""
    trials, random, delta = TRIALS // 4, np.random.default_rng([5, int(10 * loss)]), 4.04 * SIGMA

    def points(counts: list[int]) -> NDArray[np.float64]:
        own = [noisy_starts(random, REAL, trials, 1, counts)[:, 0] for _ in range(8)]
        together = noisy_starts(random, SCENARIOS["session"], trials, 1, counts)[:, 0]
        apart = np.sqrt(1 - correlation) * np.stack(own, axis=-1)
        return SIGMA * (apart + 0.75 * np.sqrt(correlation) * together[..., np.newaxis])

    base, session, band = points([1] * 10), points([7]), np.expm1(delta)
    found = 0
    for before, now in zip(base, session, strict=True):
        sides, controls = (np.exp(before), np.exp(now[:4] + loss * delta)), np.exp(now[4:])
        judged = judge_sweep("tpot_median_ms", *sides, controls=controls, band=float(band))
        found += judged.verdict == Verdict.REGRESSION
    assert 100 * found / trials == pytest.approx(fails, abs=6 + deviation(fails, trials))
