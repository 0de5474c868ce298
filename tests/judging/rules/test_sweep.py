"""The whole curve of a sweep: one value a fresh start, the median over its points."""

import math

import numpy as np
import pytest
from plain_values import judge_sweep
from refusals import refused
from rule_cases import GAIN, LOST, OPEN, PASS, SPEED
from tables import each

from perfgate.core.verdict import Rule, Verdict
from perfgate.judging.rules.performance import correlation_of_points

# Four points; five equal starts as in the tables of one point, with everything narrower by
# sqrt(0.5 + 0.5/4) = 0.790569: margin 0.0159716, U of one start 0.0078491 above its loss, of two
# 0.0066061, L of two 0.0091689 below, of one 0.0108941.
POINTS = [100.0, 1000.0, 10000.0, 50000.0]
BASE = [POINTS] * 5


def start(*factors: float) -> list[float]:
    """A start of these factors at the points, or of one at all."""
    each_point = factors if len(factors) == 4 else factors * 4
    return [value * factor for value, factor in zip(POINTS, each_point, strict=True)]


@each(
    "new, settings, verdict, used",
    [
        ([start(0.98, 1.02, 1, 1)], {}, PASS, 1),  # points that go both ways
        ([start(0.5, 1, 1, 1)] * 2, {}, PASS, 1),  # one point is the point's
        ([start(0.988)] * 2, {}, LOST, 2),
        ([start(0.9, 0.98, 0.98, 1)] * 2, {}, LOST, 2),  # most lost
        ([start(1.02)] * 2, {}, GAIN, 2),
        ([start(0.9)], {}, OPEN, 1),  # one start proves none
        # Band, sigma, rule and controls reach the rule.
        ([start(0.985)] * 2, {"band": 0.05}, PASS, 1),
        ([start(0.99)], {"sigma": 0.001}, PASS, 1),
        ([start(0.985)] * 2, {"rule": Rule(max_runs=1)}, OPEN, 1),
        ([start(0.97)] * 3, {"controls": []}, OPEN, 2),
        ([start(0.97)] * 3, {"controls": [start(0.97)] * 2}, PASS, 2),
        ([start(0.97)] * 3, {"controls": [start(1)] * 2}, LOST, 3),
    ],
)
def test_the_median_over_the_points_is_judged(new, settings, verdict, used) -> None:
    judged = judge_sweep(SPEED, BASE, new, **settings)
    assert (judged.verdict, judged.runs_used) == (verdict, used)


def test_values_and_reason_by_hand() -> None:
    judged = judge_sweep(SPEED, BASE, [start(0.97, 0.98, 0.98, 1)] * 2)
    assert judged.baseline == pytest.approx(math.prod(POINTS) ** 0.25)
    assert judged.change == pytest.approx(-0.02)
    assert judged.band == pytest.approx(1 - math.exp(-0.0159716), abs=1e-6)
    assert judged.reason == (
        "median over 4 points: -2.0 % (interval -2.6…-1.1 %), beyond the -1.6 % band; confirmed by "
        "the later starts alone; 2 fresh starts against 5 baseline runs"
    )
    assert judged.notes[-1] == "point 1 of 4 lost most: -3.0 %"
    # Which point is the median of a start does not matter: each has its own level.
    uneven = [start(0.99, 1, 1.01, 1), start(1.01, 1, 0.99, 1), start(1, 1.01, 1, 0.99)]
    assert judge_sweep(SPEED, uneven, [start(1)]).change == pytest.approx(0, abs=2e-3)


def test_the_correlation_of_the_points_is_that_of_the_draws() -> None:
    """0.5 where there are too few starts to know it; from ten on as they show it."""
    for shared in (0.0, 0.3, 0.9):
        random = np.random.default_rng(30)
        own = math.sqrt(1 - shared) * random.standard_normal((40, 8))
        starts = own + math.sqrt(shared) * random.standard_normal((40, 1))
        assert correlation_of_points(starts) == pytest.approx(shared, abs=0.12)
        assert correlation_of_points(starts[:9]) == 0.5


def test_correlated_points_need_no_curve_and_independent_ones_have_the_narrowest_band() -> None:
    together = [start(1 + 0.005 * (number % 5)) for number in range(10)]
    judged = judge_sweep(SPEED, together, [start(1)])
    assert judged.verdict == Verdict.NO_BASELINE
    assert "correlation 1.00" in judged.reason
    random = np.random.default_rng(31)
    apart = [start(*np.exp(0.005 * random.standard_normal(4)).tolist()) for _ in range(12)]
    assert 0.0100 <= judge_sweep(SPEED, apart, [start(1)]).band < 0.0130


@each(
    "baseline, new, says",
    [
        (BASE, [POINTS, [1.0, math.nan, 1.0, 1.0]], "new start 2, value 2 of output_throughput"),
        ([[1.0, 0.0, 1.0]], [POINTS], "baseline start 1, value 2"),
        (BASE, [start(1, 1, 1, 300)], "hardly all in tokens/s"),
        (BASE, [start(1, 1e-3, 1, 1)], "hardly all in tokens/s"),
    ],
)
def test_bad_input(baseline, new, says) -> None:
    refused(judge_sweep, SPEED, baseline, new, match=says)
