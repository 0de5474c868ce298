"""Learnt noise: what the history of a hardware gives a verdict, and a comparison, of its noise."""

import pytest

from perfgate.baselines import hardware_noise
from perfgate.baselines.hardware_noise import HardwareNoise, Observed, ProbeHistory
from perfgate.core.metrics import lookup
from perfgate.judging.assembly import learnt_noise
from perfgate.judging.assembly.learnt_noise import noises_on

SPEED, SCORE = "output_throughput", "accuracy:gsm8k:exact_match:strict-match"


def history(spread: float) -> HardwareNoise:
    """Ten sessions of two starts, that far apart each."""
    sessions = tuple(
        Observed(f"run-{number}", {SPEED: [100.0, 100.0 * (1 + spread)]}) for number in range(10)
    )
    return HardwareNoise((ProbeHistory("a scenario, c1", sessions),))


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, HardwareNoise]:
    found: dict[str, HardwareNoise] = {}

    def known(hardware: str, *, own: bool) -> HardwareNoise:
        assert not own
        return found.get(hardware, HardwareNoise())

    monkeypatch.setattr(learnt_noise, "known_noise", known)
    return found


def test_of_a_hardware_is_that_of_its_history(stored: dict[str, HardwareNoise]) -> None:
    stored["8xB200"] = history(0.03)
    noise = noises_on("8xB200", [SPEED, SCORE])
    assert set(noise) == {SPEED}
    assert noise[SPEED].sigma is not None
    assert noise[SPEED].sigma > 2 * lookup(SPEED).family.sigma
    assert noise[SPEED].note == ""


def test_without_history_is_the_family_s_and_says_so(stored: dict[str, HardwareNoise]) -> None:
    assert stored == {}
    noise = noises_on("8xB200", [SPEED])[SPEED]
    assert (noise.sigma, noise.note) == (pytest.approx(0.005), hardware_noise.NO_HISTORY)


def test_several_nodes_have_their_own_prior(stored: dict[str, HardwareNoise]) -> None:
    assert stored == {}
    assert noises_on("2x4xGB200", [SPEED])[SPEED].sigma == pytest.approx(0.016)


def test_metrics_of_a_family_share_its_first_ones_history(stored: dict[str, HardwareNoise]) -> None:
    stored["8xB200"] = history(0.03)
    noise = noises_on("8xB200", [SPEED, "request_throughput"])
    assert noise[SPEED] == noise["request_throughput"]
