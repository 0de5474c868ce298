"""Documented speeds: new starts against a number without any spread."""

import math

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.rules.documented import DocumentedTest, documented_margin
from perfgate.judging.rules.scale import performance_metric

SPEED = "output_throughput"


def judge(value: float, new: list[float], tolerance: float = 0.1) -> Judgement:
    return DocumentedTest(SPEED, tolerance, value, new, 0.005).judge(Rule())


# Documented 100 with sigma 0.5 %: SE = 0.00707 of one start, 0.00612 of two, 0.00577 of three; the
# margin of 10 % is 0.10536 on the log scale. So one start passes from 91.25 on; two are below the
# document by more than 10 % under 88.59, three under 88.67.
@each(
    ("new", "verdict", "used", "more"),
    [
        pytest.param([91.3], Verdict.PASS, 1, False, id="just within"),
        pytest.param([91.2], Verdict.INCONCLUSIVE, 1, True, id="too far for one start"),
        pytest.param([91.2, 91.3], Verdict.PASS, 2, False, id="second start clears"),
        pytest.param([80], Verdict.INCONCLUSIVE, 1, True, id="one start proves no loss"),
        pytest.param([88.5, 88.5], Verdict.REGRESSION, 2, False, id="below by more than 10 %"),
        pytest.param([88.7, 88.7, 88.6], Verdict.INCONCLUSIVE, 3, False, id="nor by three"),
        pytest.param([50, 120, 95], Verdict.REGRESSION, 2, False, id="one far start of two"),
        pytest.param([75, 107, 95], Verdict.PASS, 3, False, id="the median of three"),
        pytest.param([90, 90, 90, 50], Verdict.INCONCLUSIVE, 3, False, id="three are enough"),
        pytest.param([200, 200], Verdict.PASS, 1, False, id="better is no improvement"),
    ],
)
def test_against_a_documented_value(
    new: list[float], verdict: Verdict, used: int, more: bool
) -> None:
    judged = judge(100, new)
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)
    assert judged.notes == ("against a documented number, perhaps of another machine",)
    assert "the documented value of 100 tokens/s" in judged.reason
    assert judged.against == "documented"
    assert not judged.needs_control
    missed = judged.reason.startswith("misses the document by more than 10.0 %: ")
    assert missed == (verdict == Verdict.REGRESSION)


def test_a_tolerance_below_ten_per_cent_is_raised_and_told() -> None:
    judged = judge(100, [100], 0.05)
    assert judged.band == pytest.approx(0.10)
    assert any("raised from 5.0 % to 10 %" in note for note in judged.notes)
    assert judge(100, [100], 0.2).band == pytest.approx(0.2)
    metric = performance_metric(SPEED)
    assert documented_margin(metric, 0.05) == documented_margin(metric, 0.10)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_values_that_cannot_be_judged(bad: float) -> None:
    with pytest.raises(InputError, match="documented value 1"):
        judge(bad, [1000])
    with pytest.raises(InputError, match="new value 1"):
        judge(1000, [bad])
