"""Noise of one run: pooling, winsorising, what can be detected, what a noisy machine may claim."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tables import each

from perfgate.core.errors import InputError
from perfgate.gate.noise import (
    Noise,
    pooled,
    smallest_detectable,
    standard_error,
    t_quantile,
    winsorise,
)

log_values = st.floats(-0.5, 0.5)


def test_pooled_by_hand() -> None:
    # nu = 10 + 2 + 1; s² = (10·0.0001 + 2·0.0004 + 1·0.0002) / 13
    noise = pooled(0.01, 10, [[0.0, 0.02, 0.04], [0.0, 0.02]])
    assert noise.dof == 13
    assert noise.sigma == pytest.approx(math.sqrt(0.002 / 13))
    assert noise.source == "prior 1.00% with 10 degrees of freedom and spread of 5 runs"


def test_a_single_run_leaves_the_prior() -> None:
    noise = pooled(0.005, 10, [[6.9]])
    assert (noise.sigma, noise.dof) == (pytest.approx(0.005), 10)
    assert noise.source == "prior 0.50% with 10 degrees of freedom"


def test_without_a_prior_the_spread_decides() -> None:
    noise = pooled(0.5, 0, [[1.0, 2.0, 3.0]])
    assert (noise.sigma, noise.dof, noise.source) == (1.0, 2, "spread of 3 runs")


@each(
    ("sigma", "dof", "groups", "says"),
    [
        (0.01, 0, [[1.0, 2.0]], "at most 2 runs"),
        (0.01, 0, [], "at most 0 runs"),
        (0.01, 0, [[1.0, 1.0, 1.0]], "same value"),
        (0.01, -1, [[1.0, 2.0, 3.0]], "-1 degrees of freedom"),
        (0.0, 10, [[1.0, 2.0]], "prior noise"),
        (-0.1, 10, [[1.0, 2.0]], "prior noise"),
        (math.nan, 10, [[1.0, 2.0]], "prior noise"),
        (math.inf, 10, [[1.0, 2.0]], "prior noise"),
    ],
)
def test_noise_that_cannot_be_known(
    sigma: float, dof: float, groups: list[list[float]], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        pooled(sigma, dof, groups)


@settings(deadline=None)
@given(
    st.lists(st.lists(log_values, min_size=1, max_size=6), min_size=1, max_size=4),
    st.floats(0.001, 0.2),
    st.floats(0.5, 20),
)
def test_pooled_sigma_lies_between_prior_and_the_widest_group(
    groups: list[list[float]], sigma: float, dof: float
) -> None:
    spreads = [float(np.std(group, ddof=1)) for group in groups if len(group) > 1]
    found = pooled(sigma, dof, groups).sigma
    assert min([sigma, *spreads]) * (1 - 1e-9) - 1e-12 <= found
    assert found <= max([sigma, *spreads]) * (1 + 1e-9) + 1e-12


def test_winsorise_by_hand() -> None:
    # median 0.02, MAD 0.01: reach 2·1.4826·0.01 = 0.029652
    kept, pulled = winsorise([0.0, 0.01, 0.02, 0.03, 0.9], 0.01)
    assert kept == pytest.approx((0.0, 0.01, 0.02, 0.03, 0.049652))
    assert pulled == 1


def test_equal_values_do_not_make_an_ordinary_one_an_outlier() -> None:
    values = [1.0, 1.0, 1.0, 1.0, 1.01]
    assert winsorise(values, 0.01) == (tuple(values), 0)  # reach 2·0.01
    assert winsorise(values, 0.001) == ((1.0, 1.0, 1.0, 1.0, 1.002), 1)


def test_of_three_values_one_is_an_outlier_and_of_two_none() -> None:
    assert winsorise([0.0, 0.0, 9.0], 0.01) == ((0.0, 0.0, 0.02), 1)
    assert winsorise([0.0, 9.0], 0.01) == ((0.0, 9.0), 0)


@settings(deadline=None)
@given(st.lists(log_values, min_size=1, max_size=30), st.floats(0.001, 0.1))
def test_winsorising_drops_nothing_and_narrows(values: list[float], sigma: float) -> None:
    kept, pulled = winsorise(values, sigma)
    assert len(kept) == len(values)
    assert pulled == sum(x != y for x, y in zip(kept, values, strict=True))
    assert len(values) > 2 or pulled == 0
    assert min(values) <= min(kept)
    assert max(kept) <= max(values)


@each("dof", [1, 2.5, 10, 39])
@each("probability", [0.9, 0.975, 0.995, 0.999])
def test_t_quantile_is_that_of_scipy_stats(probability: float, dof: float) -> None:
    assert t_quantile(probability, dof) == pytest.approx(stats.t.ppf(probability, dof))


def test_infinite_degrees_of_freedom_are_the_normal_distribution() -> None:
    assert t_quantile(0.975, math.inf) == pytest.approx(1.959964)


def test_standard_error_by_hand() -> None:
    noise = Noise(0.03, 10, "")
    assert standard_error(noise, 4, 2) == pytest.approx(0.03 * math.sqrt(0.75))


# Smallest detectable loss in sigma at alpha 0.025, beta 0.05.
MDE = {
    1: {1: 5.71, 2: 4.95, 3: 4.67, 5: 4.43},
    3: {1: 4.57, 2: 3.62, 3: 3.23, 5: 2.89},
    5: {1: 4.28, 2: 3.27, 3: 2.85, 5: 2.47},
    10: {1: 4.01, 2: 2.96, 3: 2.52, 5: 2.09},
    30: {1: 3.77, 2: 2.71, 3: 2.25, 5: 1.79},
}


@each(
    ("n_base", "n_new", "sigmas"),
    [(n_base, n_new, mde) for n_base, row in MDE.items() for n_new, mde in row.items()],
)
def test_smallest_detectable_table(n_base: int, n_new: int, sigmas: float) -> None:
    noise = Noise(1.0, 10 + n_base - 1, "")
    assert smallest_detectable(noise, n_base, n_new, alpha=0.025) == pytest.approx(
        sigmas, abs=0.006
    )
