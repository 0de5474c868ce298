"""Many metrics at once: Holm's procedure on verdicts, and the false discovery rate."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from perfgate.core.errors import InputError
from perfgate.gate.multiplicity import false_discoveries, holm
from perfgate.gate.verdict import Judgement, Verdict


class Judge:
    """REGRESSION where the metric's p-value is below the error rate; writes down what it is asked.

    The textbook's Holm works on p-values; so does this stand-in.
    """

    def __init__(self, p_values: dict[str, float], otherwise: Verdict = Verdict.PASS) -> None:
        self.p_values = p_values
        self.otherwise = otherwise
        self.asked: list[tuple[str, float]] = []

    def __call__(self, metric: str, alpha: float) -> Judgement:
        self.asked.append((metric, round(alpha, 6)))
        verdict = Verdict.REGRESSION if self.p_values[metric] < alpha else self.otherwise
        return Judgement(metric, verdict, 1.0, 1.0, 0.0, (0.0, 0.0), 0.02, 1, False, "why", ("n",))


def regressions(p_values: dict[str, float], alpha: float = 0.05) -> set[str]:
    found = holm(list(p_values), Judge(p_values), alpha)
    return {name for name, one in found.items() if one.verdict == Verdict.REGRESSION}


@pytest.mark.parametrize(
    ("p_values", "found"),
    [
        pytest.param({"a": 0.04}, "a", id="one metric has the whole rate"),
        pytest.param({"a": 0.04, "b": 0.04}, "", id="two share it"),
        pytest.param({"a": 0.02, "b": 0.5}, "a", id="below a half"),
        pytest.param({"a": 0.02, "b": 0.04}, "ab", id="after the first, the second has it all"),
        pytest.param({"a": 0.012, "b": 0.02, "c": 0.04}, "abc", id="one step after another"),
        pytest.param({"a": 0.012, "b": 0.03, "c": 0.04}, "a", id="stops where a step finds none"),
        pytest.param({"a": 0.03, "b": 0.012, "c": 0.02}, "abc", id="whatever the order"),
        pytest.param({"a": 0.001, "b": 0.001, "c": 0.04}, "abc", id="two in one step"),
        pytest.param({"a": 0.0, "b": 0.0, "c": 0.0}, "abc", id="all in one step"),
        pytest.param({}, "", id="none"),
    ],
)
def test_holm_by_hand(p_values: dict[str, float], found: str) -> None:
    assert regressions(p_values) == set(found)


def test_each_step_shares_the_rate_among_those_left() -> None:
    judge = Judge({"a": 0.001, "b": 0.02, "c": 0.5})
    found = holm(["c", "a", "b"], judge, 0.06)
    assert judge.asked == [
        ("c", 0.02), ("a", 0.02), ("b", 0.02), ("c", 0.03), ("b", 0.03), ("c", 0.06)
    ]  # fmt: skip
    assert list(found) == ["c", "a", "b"]


def test_the_error_rate_is_told_where_it_had_a_part() -> None:
    found = holm(["a", "b"], Judge({"a": 0.001, "b": 0.5}), 0.05)
    assert found["a"].notes == ("n", "at an error rate of 0.025: 2 metrics share 0.05 (Holm)")
    assert found["b"].notes == ("n",)
    open_ones = holm(["a", "b"], Judge({"a": 1, "b": 1}, Verdict.INCONCLUSIVE), 0.05)
    assert open_ones["b"].notes == found["a"].notes
    assert holm(["a"], Judge({"a": 0.001}), 0.05)["a"].notes == ("n",)


def test_a_metric_named_twice_counts_once() -> None:
    judge = Judge({"a": 0.04})
    assert holm(["a", "a"], judge, 0.05)["a"].verdict == Verdict.REGRESSION
    assert judge.asked == [("a", 0.05)]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, -0.1, math.nan, True, "0.05"])
def test_rates_that_are_none(alpha: float) -> None:
    with pytest.raises(InputError, match="error rate"):
        holm(["a"], Judge({"a": 0.5}), alpha)


probabilities = st.lists(
    st.one_of(st.floats(0, 1), st.floats(0, 0.06), st.sampled_from([0.0, 0.01, 0.05, 1.0])),
    max_size=8,
)


def textbook_holm(p_values: list[float], alpha: float) -> list[bool]:
    """Holm (1979): in ascending order, reject until the first p that is not below its share."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    rejected = [False] * len(p_values)
    for step, index in enumerate(order):
        if not p_values[index] < alpha / (len(p_values) - step):
            break
        rejected[index] = True
    return rejected


@settings(deadline=None)
@given(probabilities, st.floats(0.001, 0.4))
def test_holm_is_that_of_the_textbook(p_values: list[float], alpha: float) -> None:
    named = {str(number): p for number, p in enumerate(p_values)}
    expected = {str(number) for number, out in enumerate(textbook_holm(p_values, alpha)) if out}
    assert regressions(named, alpha) == expected


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


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "0.5", True, None])
def test_p_values_that_are_none(bad: float) -> None:
    with pytest.raises(InputError, match="p-value"):
        false_discoveries([0.5, bad])
    with pytest.raises(InputError, match="share of false"):
        false_discoveries([0.5], bad if bad else 0.0)
