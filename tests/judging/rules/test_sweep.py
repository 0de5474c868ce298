"""The whole curve of a sweep: one value a fresh start, the median over its points."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from plain_values import judge_sweep
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.performance import correlation_of_points

# Four points; five equal starts as in the tables of one point, with everything narrower by
# sqrt(0.5 + 0.5/4) = 0.790569: margin 0.0159716, U of one start 0.0078491 above its loss, of two
# 0.0066061, L of two 0.0091689 below, of one 0.0108941.
POINTS = [100.0, 1000.0, 10000.0, 50000.0]
BASE = [POINTS] * 5


def start(*factors: float) -> list[float]:
    return [value * factor for value, factor in zip(POINTS, factors, strict=True)]


def all_points(factor: float) -> list[float]:
    return start(*[factor] * 4)


@each(
    ("new", "verdict", "used"),
    [
        pytest.param([start(0.98, 1.02, 1, 1)], Verdict.PASS, 1, id="points that go both ways"),
        pytest.param([start(0.5, 1, 1, 1)] * 2, Verdict.PASS, 1, id="one point is the point's"),
        pytest.param([all_points(0.988)] * 2, Verdict.REGRESSION, 2, id="all lost 1.2 %"),
        pytest.param([start(0.9, 0.98, 0.98, 1)] * 2, Verdict.REGRESSION, 2, id="most lost"),
        pytest.param([all_points(1.02)] * 2, Verdict.IMPROVEMENT, 2, id="all gained"),
        pytest.param([all_points(0.9)], Verdict.INCONCLUSIVE, 1, id="one start proves none"),
    ],
)
def test_the_median_over_the_points_is_judged(
    new: list[list[float]], verdict: Verdict, used: int
) -> None:
    judged = judge_sweep("output_throughput", BASE, new)
    assert (judged.verdict, judged.runs_used) == (verdict, used)


def test_values_and_reason_by_hand() -> None:
    judged = judge_sweep("output_throughput", BASE, [start(0.97, 0.98, 0.98, 1)] * 2)
    assert judged.baseline == pytest.approx(math.prod(POINTS) ** 0.25)
    assert judged.change == pytest.approx(-0.02)
    assert judged.band == pytest.approx(1 - math.exp(-0.0159716), abs=1e-6)
    assert judged.reason == (
        "median over 4 points: -2.0 % (interval -2.6…-1.1 %), beyond the -1.6 % band; confirmed by "
        "the later starts alone; 2 fresh starts against 5 baseline runs"
    )
    assert judged.notes[-1] == "point 1 of 4 lost most: -3.0 %"


def test_controls_are_curves_too() -> None:
    slow = [all_points(0.97)] * 3
    alone = judge_sweep("output_throughput", BASE, slow, controls=[])
    assert (alone.verdict, alone.needs_control) == (Verdict.INCONCLUSIVE, True)
    host = judge_sweep("output_throughput", BASE, slow, controls=slow[:2])
    assert (host.verdict, host.mark) == (Verdict.PASS, "HOST_SHIFT")
    build = judge_sweep("output_throughput", BASE, slow, controls=[all_points(1)] * 2)
    assert (build.verdict, build.controls_used) == (Verdict.REGRESSION, 2)


class TestCorrelation:
    """0.5 where there are too few starts to know it; from ten on as they show it."""

    def starts(self, shared: float) -> NDArray[np.float64]:
        random = np.random.default_rng(30)
        own = math.sqrt(1 - shared) * random.standard_normal((40, 8))
        return own + math.sqrt(shared) * random.standard_normal((40, 1))

    @pytest.mark.parametrize("shared", [0.0, 0.3, 0.9])
    def test_is_that_of_the_draws(self, shared: float) -> None:
        found = correlation_of_points(self.starts(shared))
        assert found == pytest.approx(shared, abs=0.12)

    def test_of_few_starts_is_unknown(self) -> None:
        assert correlation_of_points(self.starts(0.0)[:9]) == 0.5

    def test_points_that_go_up_and_down_together_need_no_curve(self) -> None:
        together = [all_points(1 + 0.005 * (number % 5)) for number in range(10)]
        judged = judge_sweep("output_throughput", together, [all_points(1)])
        assert judged.verdict == Verdict.NO_BASELINE
        assert "correlation 1.00" in judged.reason

    def test_independent_points_have_the_narrowest_band(self) -> None:
        random = np.random.default_rng(31)
        apart = [start(*np.exp(0.005 * random.standard_normal(4)).tolist()) for _ in range(12)]
        judged = judge_sweep("output_throughput", apart, [all_points(1)])
        assert judged.band is not None
        assert 0.0100 <= judged.band < 0.0130


@each(
    ("baseline", "new", "says"),
    [
        (BASE, [POINTS, [1.0, math.nan, 1.0, 1.0]], "new start 2, value 2 of output_throughput"),
        ([[1.0, 0.0, 1.0]], [POINTS], "baseline start 1, value 2"),
        (BASE, [start(1, 1, 1, 300)], "hardly all in tokens/s"),
        (BASE, [start(1, 1e-3, 1, 1)], "hardly all in tokens/s"),
    ],
)
def test_bad_input(baseline: list[list[float]], new: list[list[float]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        judge_sweep("output_throughput", baseline, new)


def test_band_sigma_and_rule_reach_the_rule() -> None:
    new = [all_points(0.985)] * 2
    assert judge_sweep("output_throughput", BASE, new, band=0.05).verdict == Verdict.PASS
    assert judge_sweep("output_throughput", BASE, [all_points(0.99)], sigma=0.001).verdict == (
        Verdict.PASS
    )
    tight = judge_sweep("output_throughput", BASE, new, rule=Rule(max_runs=1))
    assert (tight.verdict, tight.needs_more_runs) == (Verdict.INCONCLUSIVE, False)


def test_each_point_is_held_against_its_own_level() -> None:
    """Which point is the median of a start does not matter: each has its own level."""
    uneven = [start(0.99, 1, 1.01, 1), start(1.01, 1, 0.99, 1), start(1, 1.01, 1, 0.99)]
    judged = judge_sweep("output_throughput", uneven, [all_points(1)])
    assert judged.change == pytest.approx(0, abs=2e-3)
