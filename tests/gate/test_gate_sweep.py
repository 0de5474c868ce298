"""The whole curve of a sweep: one value a fresh start, the geometric mean over its points."""

import math

import numpy as np
import pytest

from perfgate.core.errors import InputError
from perfgate.gate.rule import Rule, judge_performance
from perfgate.gate.sweep import judge_sweep
from perfgate.gate.verdict import Verdict

# Three points, of 100, 1,000 and 10,000 tokens/s; five equal starts as in the tables of one point:
# sigma = 0.0042258, one start reaches ± 0.0099284, two ± 0.0075832, the margin is 0.0202027.
POINTS = [100.0, 1000.0, 10000.0]
BASE = [POINTS] * 5


def start(*factors: float) -> list[float]:
    return [value * factor for value, factor in zip(POINTS, factors, strict=True)]


@pytest.mark.parametrize(
    ("new", "verdict", "used"),
    [
        pytest.param([start(1, 1, 1)], Verdict.PASS, 1, id="unchanged"),
        pytest.param([start(0.98, 1.02, 1)], Verdict.PASS, 1, id="points that go both ways"),
        pytest.param([start(0.96, 1, 1)], Verdict.INCONCLUSIVE, 1, id="one point lost 4 %"),
        pytest.param([start(0.985, 0.985, 0.985)] * 2, Verdict.REGRESSION, 2, id="all lost 1.5 %"),
        pytest.param([start(0.96, 0.98, 1)] * 2, Verdict.REGRESSION, 2, id="2 % on the mean"),
        pytest.param([start(1, 1, 0.97)] * 2, Verdict.PASS, 1, id="1 % on the mean passes"),
        pytest.param([start(1.02, 1.02, 1.02)] * 2, Verdict.IMPROVEMENT, 2, id="all gained"),
        pytest.param([start(0.9, 0.9, 0.9)], Verdict.INCONCLUSIVE, 1, id="one start proves none"),
    ],
)
def test_the_mean_over_the_points_is_judged(
    new: list[list[float]], verdict: Verdict, used: int
) -> None:
    judged = judge_sweep("output_throughput", BASE, new)
    assert (judged.verdict, judged.runs_used) == (verdict, used)


def test_the_points_are_not_counted_as_independent() -> None:
    """Ten points that go up and down together say no more than one of them."""
    random = np.random.default_rng(30)
    starts = 1000 * np.exp(0.005 * random.standard_normal(9))
    curves = [[float(value * weight) for weight in range(1, 11)] for value in starts]
    curve = judge_sweep("output_throughput", curves[:7], curves[7:])
    point = judge_performance("output_throughput", starts[:7].tolist(), starts[7:].tolist())
    assert curve.verdict == point.verdict
    assert curve.interval == pytest.approx(point.interval)
    assert curve.change == pytest.approx(point.change)
    assert curve.band == point.band


def test_values_and_reason_by_hand() -> None:
    judged = judge_sweep("output_throughput", BASE, [start(0.96, 0.98, 1)] * 2)
    loss = -(math.log(0.96) + math.log(0.98)) / 3
    assert judged.baseline == pytest.approx(1000)
    assert judged.measured == pytest.approx(1000 * math.exp(-loss))
    assert judged.change == pytest.approx(math.expm1(-loss))
    assert judged.reason == (
        "mean over 3 points: -2.0 % (interval -2.8…-1.3 %), beyond the -2.0 % band; confirmed by "
        "the later starts alone; 2 fresh starts against 5 baseline runs"
    )
    assert judged.notes == ("point 1 of 3 lost most: -4.0 %",)


def test_the_point_that_lost_most_is_that_of_the_starts_used() -> None:
    after_the_decision = start(1, 1, 0.01)
    judged = judge_sweep("output_throughput", BASE, [start(0.9, 1, 1)] * 2 + [after_the_decision])
    assert (judged.verdict, judged.runs_used) == (Verdict.REGRESSION, 2)
    assert judged.notes == ("point 1 of 3 lost most: -10.0 %",)


def test_lower_is_better_too() -> None:
    judged = judge_sweep("tpot_median_ms", BASE, [start(1, 1, 1.09)] * 2)
    assert judged.verdict == Verdict.REGRESSION
    assert judged.change == pytest.approx(1.09 ** (1 / 3) - 1)
    assert judged.notes == ("point 3 of 3 lost most: +9.0 %",)


def test_a_sweep_of_one_point_is_that_point() -> None:
    base, new = [1000.0, 1003.0, 998.0], [985.0, 986.0]
    curve = judge_sweep("output_throughput", [[v] for v in base], [[v] for v in new])
    point = judge_performance("output_throughput", base, new)
    assert curve.reason == f"mean over 1 point: {point.reason}"
    assert (curve.verdict, curve.interval, curve.notes) == (
        point.verdict,
        point.interval,
        point.notes,
    )


def test_band_sigma_rule_and_measured_noise_reach_the_rule() -> None:
    new = [start(0.985, 0.985, 0.985)] * 2
    assert judge_sweep("output_throughput", BASE, new, band=0.05).verdict == Verdict.PASS
    assert judge_sweep("output_throughput", BASE, new[:1], sigma=0.001).verdict == Verdict.PASS
    tight = judge_sweep("output_throughput", BASE, new, rule=Rule(max_runs=1))
    assert (tight.verdict, tight.needs_more_runs) == (Verdict.INCONCLUSIVE, False)
    measured = judge_sweep("output_throughput", BASE, new, measured_noise=True)
    assert measured.band is not None
    assert measured.band > 0.15


def test_arrays_are_as_good_as_lists() -> None:
    new = [start(0.985, 0.985, 0.985)] * 2
    assert judge_sweep("output_throughput", np.array(BASE), np.array(new)) == judge_sweep(  # type: ignore[arg-type]
        "output_throughput", BASE, new
    )


@pytest.mark.parametrize(
    ("baseline", "new", "says"),
    [
        ([], [POINTS], "no baseline starts"),
        (BASE, [], "no new starts"),
        (BASE, [[]], "no new start 1, values"),
        (BASE, [POINTS[:2]], "different numbers of points"),
        ([POINTS, POINTS[:2]], [POINTS], "different numbers of points"),
        (BASE, [POINTS, [1.0, math.nan, 1.0]], "new start 2, value 2 of output_throughput"),
        ([[1.0, 0.0, 1.0]], [POINTS], "baseline start 1, value 2"),
        (BASE, POINTS, "new start 1, values of output_throughput cannot be judged"),
        (1.0, [POINTS], "a list of fresh starts"),
        (BASE, "100", "new start 1, values"),
        (BASE, [start(1, 1, 300)], "hardly all in tokens/s"),
        (BASE, [start(1, 1e-3, 1)], "hardly all in tokens/s"),
    ],
)
def test_bad_input(baseline: list[list[float]], new: list[list[float]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        judge_sweep("output_throughput", baseline, new)


def test_an_accuracy_has_no_curve() -> None:
    with pytest.raises(InputError, match="accuracy"):
        judge_sweep("accuracy:gsm8k:exact_match:strict-match", [[0.9]], [[0.9]])
