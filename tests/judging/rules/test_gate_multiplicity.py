"""Many metrics at once: the false discovery rate of those that do not gate."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from tables import each

from perfgate.core.errors import InputError
from perfgate.judging.rules.diagnostics import false_discoveries

probabilities = st.lists(
    st.one_of(st.floats(0, 1), st.floats(0, 0.06), st.sampled_from([0.0, 0.01, 0.05, 1.0])),
    max_size=8,
)


@pytest.mark.parametrize(
    ("p_values", "found"),
    [
        # Benjamini and Hochberg (1995), the example of section 3.2, at q = 0.05: the first four
        (
            [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
             0.4262, 0.5719, 0.6528, 0.7590, 1.0],
            4,
        ),
        ([0.04, 0.05], 2),
        ([0.06], 0),
        ([], 0),
    ],
)  # fmt: skip
def test_false_discoveries_by_hand(p_values: list[float], found: int) -> None:
    assert false_discoveries(p_values, 0.05) == tuple(n < found for n in range(len(p_values)))


def test_a_later_rank_carries_the_earlier_ones() -> None:
    # 0.06 alone is above 0.10·1/3, but the largest of the three is below 0.10
    assert false_discoveries([0.09, 0.06, 0.08]) == (True, True, True)


@settings(deadline=None)
@given(probabilities.filter(bool), st.floats(0.01, 0.5))
def test_false_discoveries_are_those_of_scipy(p_values: list[float], q: float) -> None:
    expected = false_discovery_control(np.array(p_values)) <= q
    assert false_discoveries(p_values, q) == tuple(expected.tolist())


@each("bad", [-0.1, 1.1, math.nan, "0.5", True, None])
def test_p_values_that_are_none(bad: float) -> None:
    with pytest.raises(InputError, match="p-value"):
        false_discoveries([0.5, bad])
    with pytest.raises(InputError, match="share of false"):
        false_discoveries([0.5], bad if bad else 0.0)
