"""Input that no verdict can be given on: refused with a sentence that says why, never judged."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_values import describe_change, judge_performance
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.documented import DocumentedTest
from perfgate.judging.rules.scale import UNIT_FACTOR

SPEED = "output_throughput"
BASE = [1000.0, 1002.0, 998.0, 1001.0, 999.0]

Judge = Callable[..., object]
JUDGES = pytest.mark.parametrize("judge", [judge_performance, describe_change])


@JUDGES
@pytest.mark.parametrize(
    "bad",
    [math.nan, math.inf, -math.inf, 0, 0.0, -1, -0.5, True, False, np.True_, "1000", None, [1000],
     1 + 0j, 10**400],
    ids=repr,
)  # fmt: skip
def test_values_that_are_no_positive_number(judge: Judge, bad: object) -> None:
    with pytest.raises(InputError, match="baseline value 2 of output_throughput cannot be judged"):
        judge(SPEED, [1000.0, bad], [1000.0])
    with pytest.raises(InputError, match="new value 3 of output_throughput cannot be judged"):
        judge(SPEED, BASE, [1000.0, 1000.0, bad])


@JUDGES
@pytest.mark.parametrize("bad", ["1000", b"1000", 1000.0, None, np.array(1000.0)], ids=repr)
def test_no_list_of_values(judge: Judge, bad: object) -> None:
    with pytest.raises(InputError, match="a list of numbers, one per fresh start"):
        judge(SPEED, BASE, bad)
    with pytest.raises(InputError, match="a list of numbers, one per fresh start"):
        judge(SPEED, bad, [1000.0])


@JUDGES
@pytest.mark.parametrize("empty", [[], (), np.array([])], ids=repr)
def test_no_values(judge: Judge, empty: list[float]) -> None:
    with pytest.raises(InputError, match="no baseline values of output_throughput"):
        judge(SPEED, empty, [1000.0])
    with pytest.raises(InputError, match="no new values of output_throughput"):
        judge(SPEED, BASE, empty)


@JUDGES
@pytest.mark.parametrize("value", [1000.0, 990.0, 0.1, 1e-30])
def test_identical_values_measure_no_noise(judge: Judge, value: float) -> None:
    """Also of 990, whose logarithm is not the rounded mean of three of it."""
    with pytest.raises(InputError, match="all runs gave the same value"):
        judge(SPEED, [value] * 3, [value], rule=Rule(prior_dof=0))


@each("unit", [1000, 1 / 1000, UNIT_FACTOR * 1.02, 1e-6, 1e9])
@each("metric", ["output_throughput", "ttft_median_ms"])
@each("runs", [1, 3])
def test_values_in_another_unit(metric: str, unit: float, runs: int) -> None:
    new = [value * unit for value in BASE[:runs]]
    judged: list[Judge] = [
        lambda: judge_performance(metric, BASE, new),
        lambda: judge_performance(metric, BASE, new, band=0.5, widen=True),
        lambda: describe_change(metric, BASE, new),
        lambda: DocumentedTest(metric, 0.1, 1000.0, new).judge(Rule()),
    ]
    for judge in judged:
        with pytest.raises(InputError, match=f"hardly all in {METRICS[metric].unit}") as caught:
            judge()
        message = str(caught.value)
        assert "by a factor of" in message
        assert "baseline 99" in message or "baseline 1000" in message
        assert f"less than a factor of {UNIT_FACTOR} apart" in message
        assert "ms against s" in message


@each("metric", sorted(METRICS))
@each("factor", [2, 10, 100])
def test_real_changes_are_not_refused(metric: str, factor: int) -> None:
    """Also of TTFT, which grows a hundredfold once requests have to queue."""
    for base, new in ((0.9, 0.9 / factor), (0.9 / factor, 0.9)):
        verdict = judge_performance(metric, [base] * 5, [new] * 2, band=0.2).verdict
        better = (new > base) == (METRICS[metric].direction == "higher")
        assert verdict == (Verdict.IMPROVEMENT if better else Verdict.REGRESSION)


def test_a_baseline_in_two_units() -> None:
    with pytest.raises(InputError, match="baseline values differ among themselves, by a factor"):
        judge_performance(SPEED, [1000, 1001, 999, 1000, 1.0], [1000])


def test_a_share_is_no_percentage() -> None:
    for values in ([70.0], [0.7, 1.01]):
        with pytest.raises(InputError, match="a share above 0 and up to 1") as caught:
            judge_performance("draft_acceptance_rate", [0.7], values)
        assert "not a percentage" in str(caught.value)
    judge_performance("draft_acceptance_rate", [1.0], [1.0])


@each("sigma", [0.0, -0.01, 1.0, 5.0, math.nan, math.inf, True, "0.005"])
@each("prior_dof", [0, 10])
def test_noise_that_is_none(sigma: float, prior_dof: float) -> None:
    for judge in (judge_performance, describe_change):
        with pytest.raises(InputError, match="the prior noise of one run cannot be used"):
            judge(SPEED, BASE, [1000], sigma=sigma, rule=Rule(prior_dof=prior_dof))


@settings(deadline=None)
@given(
    st.sampled_from([SPEED, "tpot_median_ms"]),
    st.lists(st.floats(allow_nan=False, min_value=5e-324), min_size=1, max_size=6),
    st.lists(st.floats(allow_nan=False, min_value=5e-324), min_size=1, max_size=6),
)
def test_whatever_is_not_refused_gives_finite_numbers(
    metric: str, baseline: list[float], new: list[float]
) -> None:
    try:
        judged = judge_performance(metric, baseline, new)
        change = describe_change(metric, baseline, new)
    except InputError:
        return
    assert judged.change is not None
    assert judged.interval is not None
    numbers = (judged.baseline, judged.measured, judged.change, *judged.interval, change.p_value)
    assert all(number is not None and math.isfinite(number) for number in numbers)


def test_one_start_that_went_wrong_is_no_matter_of_units() -> None:
    judged = judge_performance(SPEED, BASE, [1.0, 1000, 1000, 1000, 1000])
    assert judged.verdict == Verdict.INCONCLUSIVE
    assert any(note.startswith("fresh start 1 lies -99.9 %") for note in judged.notes)
