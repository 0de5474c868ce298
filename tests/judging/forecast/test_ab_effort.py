"""What `plan --ab` promises: simulated with the rule itself."""

import pytest

from perfgate.judging.forecast.ab_effort import EFFECTS, expected_ab
from perfgate.judging.rules.ab import AbNoise


def test_chances_and_starts_at_each_effect() -> None:
    """Statistics §10, a band of 4 sigma: 4.1 starts if nothing changed, one band found in 94 %."""
    none, half, one, two = expected_ab(AbNoise(0.005), 0.02, trials=400)
    assert [found.bands for found in (none, half, one, two)] == list(EFFECTS)
    assert none.worse < 0.02
    assert none.no_worse > 0.97
    assert 4 <= none.starts < 4.5
    assert one.worse > 0.88
    assert two.worse > 0.96
    assert half.worse + half.no_worse + half.undecided == pytest.approx(1)


def test_the_ratio_of_band_and_noise_decides() -> None:
    wide = expected_ab(AbNoise(0.005), 0.02, trials=100)
    assert expected_ab(AbNoise(0.02), 0.08, trials=100) == wide
    assert expected_ab(AbNoise(0.02), 0.02, trials=100) != wide


def test_a_machine_that_measures_its_own_noise_takes_four_pairs_at_least() -> None:
    noise = AbNoise.own()
    (none,) = expected_ab(noise, 0.05, effects=[0.0], trials=200, rule=noise.rule)
    assert none.starts >= 8
    assert none.worse < 0.03
