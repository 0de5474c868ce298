"""Noise learnt from a few nights makes the gate alarm far less than the prior does (statistics §1).

A hardware whose noise is not the prior's: three points of a sweep, each with a baseline of five
nights, one start a night, whose numbers go up and down together. An alarm is any of them.
"""

import math
from typing import Literal

import numpy as np
import pytest
from plain_values import judge_performance
from sizes import sized

from perfgate.core.metrics import THROUGHPUT
from perfgate.core.verdict import Verdict
from perfgate.judging.forecast.noise_scenarios import Values, starts
from perfgate.judging.rules.noise import NoiseComponents, noise_components

pytestmark = pytest.mark.nightly

POINTS, NIGHTS = 3, 5
TRIALS = sized(500, 1500)

Knowledge = Literal["prior", "nights"]


def learnt(base: Values, knowledge: Knowledge) -> NoiseComponents:
    histories = [[[x] for x in point] for point in base.tolist()] if knowledge != "prior" else []
    return noise_components(histories, THROUGHPUT.sigma)


def speeds(losses: Values) -> list[float]:
    return [1000 * math.exp(-x) for x in losses.tolist()]


def judged(
    scenario: str, factor: float, knowledge: Knowledge, *, controls: bool
) -> tuple[float, float]:
    """False alarms per 1,000 builds, and the share of builds of which every point passes."""
    rng = np.random.default_rng([15, int(100 * factor)])
    sigma = factor * THROUGHPUT.sigma
    base = sigma * starts(rng, scenario, TRIALS, POINTS, [1] * NIGHTS)
    session = sigma * starts(rng, scenario, TRIALS, POINTS, [8])
    alarms = passed = 0
    for trial in range(TRIALS):
        noise = learnt(base[trial], knowledge)
        verdicts = {
            judge_performance(
                "output_throughput",
                speeds(base[trial, point]),
                speeds(session[trial, point, :5]),
                sigma=noise.sigma,
                between=noise.between,
                sessions=NIGHTS,
                controls=speeds(session[trial, point, 5:]) if controls else None,
                policy="auto" if controls else "none",
            ).verdict
            for point in range(POINTS)
        }
        alarms += Verdict.REGRESSION in verdicts
        passed += verdicts <= {Verdict.PASS, Verdict.IMPROVEMENT}
    return 1000 * alarms / TRIALS, passed / TRIALS


def test_a_louder_hardware_alarms_far_less_after_five_nights() -> None:
    prior, _ = judged("session", 2.5, "prior", controls=False)
    nights, _ = judged("session", 2.5, "nights", controls=False)
    assert prior > 100
    assert nights < 0.5 * prior


def test_with_controls_it_alarms_hardly_at_all() -> None:
    prior, _ = judged("session", 2.5, "prior", controls=True)
    nights, _ = judged("session", 2.5, "nights", controls=True)
    assert prior > 10
    assert nights < 15
    assert judged("real", 2.5, "nights", controls=True)[0] < 20


@pytest.mark.parametrize("knowledge", ["prior", "nights"])
def test_a_hardware_like_the_priors_is_judged_as_before(knowledge: Knowledge) -> None:
    alarms, passed = judged("real", 1, knowledge, controls=True)
    assert alarms < 3
    assert passed > (0.98 if knowledge == "prior" else 0.9)
