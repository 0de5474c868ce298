"""What `plan --ab` promises: simulated with the rule itself."""

from dataclasses import replace

import pytest

from perfgate.judging.forecast.simulation import EFFECTS, AbEffort, expected_ab
from perfgate.judging.rules.paired import AB_RULE, OWN_NOISE_RULE


def efforts(sigma: float, band: float) -> tuple[AbEffort, ...]:
    return expected_ab(replace(AB_RULE, sigma=sigma), band)


def test_chances_and_starts_at_each_effect() -> None:
    """Statistics §10, a band of 4 sigma: 4.1 starts if nothing changed, one band found in 94 %."""
    none, half, one, two = efforts(0.005, 0.02)
    assert [found.bands for found in (none, half, one, two)] == list(EFFECTS)
    assert none.worse < 0.02
    assert none.no_worse > 0.97
    assert 4 <= none.starts < 4.5
    assert one.worse > 0.88
    assert two.worse > 0.96
    assert half.worse + half.no_worse + half.undecided == pytest.approx(1)


def test_the_ratio_of_band_and_noise_decides() -> None:
    assert efforts(0.02, 0.08) == efforts(0.005, 0.02)
    assert efforts(0.02, 0.02) != efforts(0.005, 0.02)


def test_a_machine_that_measures_its_own_noise_takes_four_pairs_at_least() -> None:
    none, *_ = expected_ab(OWN_NOISE_RULE, 0.05)
    assert none.starts >= 8
    assert none.worse < 0.03
