"""Noise of one run: pooling, winsorising, what can be detected, what a noisy machine may claim."""

import math

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.gate.noise import (
    Noise,
    pooled,
    smallest_detectable,
    winsorise,
)


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


def test_winsorise_by_hand() -> None:
    # median 0.02, MAD 0.01: reach 2·1.4826·0.01 = 0.029652
    kept, pulled = winsorise([0.0, 0.01, 0.02, 0.03, 0.9], 0.01)
    assert kept == pytest.approx((0.0, 0.01, 0.02, 0.03, 0.049652))
    assert pulled == 1


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
