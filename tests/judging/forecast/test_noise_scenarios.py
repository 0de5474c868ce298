"""Simulated starts are as noisy as their scenario says."""

import math

import numpy as np
import pytest

from perfgate.judging.forecast.noise_scenarios import SCENARIOS, Values, starts

TRIALS = 40_000


def drawn(scenario: str, metrics: int, counts: list[int], trials: int = TRIALS) -> Values:
    return starts(np.random.default_rng([7, metrics]), scenario, trials, metrics, counts)


@pytest.mark.parametrize("scenario", ["gauss", "session", "session50"])
def test_without_events_a_start_has_the_spread_of_the_prior(scenario: str) -> None:
    values = drawn(scenario, 3, [2, 2])
    assert values.shape == (TRIALS, 3, 4)
    assert values.mean(axis=(0, 2)) == pytest.approx([0, 0, 0], abs=0.02)
    assert values.std(axis=(0, 2)) == pytest.approx([1, 1, 1], abs=0.02)


@pytest.mark.parametrize(("scenario", "between"), [("gauss", 0), ("session", 0.3), ("real", 0.3)])
def test_starts_of_a_session_share_a_part_of_their_luck(scenario: str, between: float) -> None:
    calm = np.clip(drawn(scenario, 1, [2, 1])[:, 0], -2, 2)
    assert np.corrcoef(calm[:, 0], calm[:, 1])[0, 1] == pytest.approx(between, abs=0.05)
    assert np.corrcoef(calm[:, 0], calm[:, 2])[0, 1] == pytest.approx(0, abs=0.02)


def test_the_middle_of_three_nights_reverts_as_often_as_in_published_nightlies() -> None:
    """Of 408 triples of nights whose outer two agree, the middle one was worse by more than 4 sigma
    in 4.4 to 5.1 %, by more than 6 in 2.2 to 2.6 %, and better by more than 4 in 1.6 to 2.2 %."""
    nights = drawn("real", 1, [1, 1, 1], trials=200_000)[:, 0]
    agree = np.abs(nights[:, 0] - nights[:, 2]) < 2
    gap = (nights[:, 1] - nights[:, [0, 2]].mean(axis=1))[agree]
    assert 0.03 < (gap > 4).mean() < 0.055
    assert 0.013 < (gap > 6).mean() < 0.03
    assert 0.012 < (gap < -4).mean() < 0.025


def test_every_scenario_draws_whole_numbers_of_starts() -> None:
    for name in SCENARIOS:
        values = drawn(name, 2, [3, 1], trials=50)
        assert values.shape == (50, 2, 4)
        assert math.isfinite(values.sum())


def test_a_number_of_metrics_that_is_not_modelled() -> None:
    with pytest.raises(ValueError, match="8 metrics"):
        drawn("real", 8, [1], trials=1)
