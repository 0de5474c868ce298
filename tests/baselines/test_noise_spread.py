"""Calibration: a simulated A/A with known noise is recovered; outlying starts are told."""

import math
from statistics import fmean, stdev, variance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.baselines.noise_spread import Spread, outlying, spread
from perfgate.core.errors import InputError

METRIC = "output_throughput"


def an_a_a(
    random: np.random.Generator, between: float, within: float, starts: int, repeats: int
) -> list[list[float]]:
    """Throughputs of one unchanged build."""
    luck = between * random.standard_normal(starts)
    return [
        [1000 * math.exp(one + within * random.standard_normal()) for _ in range(repeats)]
        for one in luck
    ]


# between, within, starts, repeats
A_A = [
    (0.005, 0.005, 10, 2),
    (0.02, 0.005, 10, 2),
    (0.005, 0.02, 10, 3),
    (0.01, 0.01, 5, 2),
    (0.01, 0.0, 10, 2),
    (0.01, 0.02, 20, 1),
]


@pytest.mark.parametrize(("between", "within", "starts", "repeats"), A_A)
def test_a_simulated_a_a_with_known_noise_is_recovered(
    between: float, within: float, starts: int, repeats: int
) -> None:
    random = np.random.default_rng(20)
    found = [spread(METRIC, an_a_a(random, between, within, starts, repeats)) for _ in range(1000)]
    truth = between**2 + within**2
    squares = [one.sigma**2 for one in found]
    # Unbiased but for the cut at zero, which errs upwards.
    error = 4 * stdev(squares) / math.sqrt(len(squares))
    assert fmean(squares) > truth - error
    assert fmean(squares) < 1.15 * truth + error
    if repeats > 1:
        assert fmean(one.within**2 for one in found if one.within is not None) == pytest.approx(
            within**2, rel=0.05, abs=1e-12
        )
    else:
        assert {one.within for one in found} == {None}
        assert {one.dof for one in found} == {starts - 1}
    # s² of nu degrees of freedom has the variance 2 sigma⁴ / nu: Satterthwaite's promise, kept to
    # the safe side (never more degrees of freedom than there really are, by more than a tenth).
    really = 2 * fmean(squares) ** 2 / variance(squares)
    assert fmean(one.dof for one in found) < 1.35 * really


# Worked by hand on the log scale; M: variance of the means, W: mean of the variances of repeats.
TABLE = [
    # all between: M = 0.025, W = 0, and N - 1 degrees of freedom
    ([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4], [0.5, 0.5]], 0.025, 0.0, 0.025, 4.0),
    # all within: M = 0, W = 0.02, between cut at zero, N (R - 1) degrees of freedom
    ([[0.0, 0.2]] * 5, 0.0, 0.02, 0.02, 5.0),
    # both: M = 0.025, W = 0.005; between² = 0.0225; (0.0275)² / (0.025²/4 + 0.0025²/5)
    (
        [[x - 0.05, x + 0.05] for x in (0.1, 0.2, 0.3, 0.4, 0.5)],
        0.0225,
        0.005,
        0.0275,
        0.0275**2 / (0.025**2 / 4 + 0.0025**2 / 5),
    ),
    # nothing repeated: the plain variance
    ([[0.1], [0.2], [0.3], [0.4], [0.5]], 0.025, None, 0.025, 4.0),
    # one repeat was disturbed: h is the mean of 1/R, W pools what is left
    (
        [[0.05, 0.15], [0.2], [0.25, 0.35], [0.35, 0.45], [0.45, 0.55]],
        0.025 - 0.6 * 0.005,
        0.005,
        0.025 + 0.4 * 0.005,
        (0.025 + 0.4 * 0.005) ** 2 / (0.025**2 / 4 + (0.4 * 0.005) ** 2 / 4),
    ),
]


@pytest.mark.parametrize(("logs", "between", "within", "total", "dof"), TABLE)
def test_the_moments(
    logs: list[list[float]], between: float, within: float | None, total: float, dof: float
) -> None:
    found = spread(METRIC, [[math.exp(x) for x in start] for start in logs])
    assert found.between**2 == pytest.approx(between, abs=1e-12)
    if within is None:
        assert found.within is None
    else:
        assert found.within is not None
        assert found.within**2 == pytest.approx(within, abs=1e-12)
    assert found.sigma**2 == pytest.approx(total)
    assert found.dof == pytest.approx(dof)


@given(
    st.lists(
        st.lists(st.floats(1.0, 2.0), min_size=2, max_size=2), min_size=5, max_size=8, unique_by=sum
    ),
    st.floats(0.01, 100.0),
)
def test_units_and_direction_do_not_matter(values: list[list[float]], factor: float) -> None:
    def close(one: Spread, other: Spread) -> bool:
        return (one.sigma, one.dof, one.between) == pytest.approx(
            (other.sigma, other.dof, other.between), rel=1e-3, abs=1e-7
        )

    found = spread(METRIC, values)
    if found.sigma < 1e-4:
        return  # differences that the logarithm rounds away
    assert close(found, spread(METRIC, [[factor * x for x in start] for start in values]))
    assert close(found, spread(METRIC, [[1 / x for x in start] for start in values]))


def test_the_values_are_kept_so_that_it_can_be_computed_again() -> None:
    values = [[100.0, 101.0], [102.0, 103.0], [99.0, 98.0], [97.0, 99.5], [100.5, 101.0]]
    found = spread(METRIC, values)
    assert found.values == tuple(map(tuple, values))
    assert spread(METRIC, found.values) == found


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([[1.0, 2.0]] * 4, "too few fresh starts to know the noise of output_throughput"),
        ([], "too few fresh starts"),
        ([[1.0], [2.0], [0.0], [1.0], [1.0]], "a value of output_throughput on fresh start 3"),
        ([[1.0], [2.0], [-1.0], [1.0], [1.0]], "on fresh start 3 cannot be used"),
        ([[1.0], [2.0], [math.nan], [1.0], [1.0]], "on fresh start 3 cannot be used"),
        ([[1.0], [2.0], [math.inf], [1.0], [1.0]], "on fresh start 3 cannot be used"),
        ([[1.0], [2.0], [], [1.0], [1.0]], "fresh start 3 has no value"),
        ([[5.0, 5.0]] * 6, "gave the same value, so it shows no noise"),
    ],
)
def test_what_shows_no_noise_is_refused(values: list[list[float]], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        spread(METRIC, values)


def test_an_outlying_start_is_told_and_still_used() -> None:
    usual = [[100.0, 100.2], [100.5, 100.1], [99.8, 100.0], [100.3, 99.9], [100.1, 100.2]]
    assert outlying(METRIC, usual) == ()
    slow = [*usual, [80.0, 80.5]]
    assert outlying(METRIC, slow) == (6,)
    assert spread(METRIC, slow).sigma > 20 * spread(METRIC, usual).sigma


@pytest.mark.parametrize("starts", [5, 10])
def test_unremarkable_starts_are_hardly_ever_told(starts: int) -> None:
    random = np.random.default_rng(20)
    told = [outlying(METRIC, an_a_a(random, 0.01, 0.01, starts, 2)) for _ in range(1000)]
    assert sum(map(bool, told)) / 1000 == pytest.approx(0.01, abs=0.013)
