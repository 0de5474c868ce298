"""Noise of one run: when it cannot be known, and the smallest loss that it lets detect."""

import math

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.judging.rules.noise import Noise, pooled, smallest_detectable


@each(
    ("sigma", "dof", "groups", "says"),
    [
        (0.01, 0, [[1.0, 2.0]], "at most 2 runs"),
        (0.01, 0, [[1.0, 1.0, 1.0]], "same value"),
        (0.01, -1, [[1.0, 2.0, 3.0]], "-1 degrees of freedom"),
        (math.inf, 10, [[1.0, 2.0]], "prior noise"),
    ],
)
def test_noise_that_cannot_be_known(
    sigma: float, dof: float, groups: list[list[float]], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        pooled(sigma, dof, groups)


# Smallest detectable loss in sigma at alpha 0.025, beta 0.05.
MDE = {
    1: {1: 5.71, 2: 4.95, 3: 4.67, 5: 4.43},
    3: {1: 4.57, 2: 3.62, 3: 3.23, 5: 2.89},
    10: {1: 4.01, 2: 2.96, 3: 2.52, 5: 2.09},
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
