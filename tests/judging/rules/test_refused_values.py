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
@each(
    ("baseline", "new", "settings", "says"),
    [
        *(
            row
            for bad in (math.nan, math.inf, -math.inf, 0, 0.0, -1, True, np.True_, "1000", None,
                        [1000], 1 + 0j, 10**400)
            for row in (
                ([1000.0, bad], [1000.0], {}, "baseline value 2 of output_throughput cannot be"),
                (BASE, [1e3, 1e3, bad], {}, "new value 3 of output_throughput cannot be judged"),
            )
        ),
        ([], [1000.0], {}, "no baseline values of output_throughput"),
        (BASE, np.array([]), {}, "no new values of output_throughput"),
        ([1000, 1001, 999, 1000, 1.0], [1000], {},
         "baseline values differ among themselves, by a factor"),
        *((BASE, [1e3], {"sigma": x}, "the prior noise of one run cannot be used")
          for x in (0.0, -0.01, 1.0, 5.0, math.nan, math.inf, True, "0.005")),
    ],
)  # fmt: skip
def test_values_that_cannot_be_judged(
    judge: Judge, baseline: list[float], new: list[float], settings: dict[str, float], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        judge(SPEED, baseline, new, **settings)


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


def test_a_share_is_no_percentage() -> None:
    for values in ([70.0], [0.7, 1.01]):
        with pytest.raises(InputError, match="a share above 0 and up to 1") as caught:
            judge_performance("draft_acceptance_rate", [0.7], values)
        assert "not a percentage" in str(caught.value)
    judge_performance("draft_acceptance_rate", [1.0], [1.0])


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
