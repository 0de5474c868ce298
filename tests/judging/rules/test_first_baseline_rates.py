"""What a small first baseline costs, as statistics §4 has it, reproduced by simulation."""

import numpy as np
import pytest
from plain_values import judge_performance
from sizes import sized

from perfgate.core.verdict import Verdict
from perfgate.judging.forecast.noise_scenarios import starts

# Under coverage these take four times as long; other tests reach every line that they do.
pytestmark = [pytest.mark.slow, pytest.mark.no_cover, pytest.mark.nightly]

TRIALS = sized(300, 2000)
SIGMA = 0.005
DELTA = 4.04 * SIGMA

# starts and sessions of the baseline, then in percent: an unchanged build passes, one that lost
# a band is found
TABLE = [
    (1, 1, 99.3, 74.5),
    (2, 2, 98.9, 86.0),
    (3, 1, 99.9, 90.0),
    (3, 3, 99.8, 92.4),
    (10, 10, 99.9, 94.4),
]


@pytest.mark.parametrize(("number", "sessions", "passes", "found"), TABLE)
def test_rates_of_a_first_baseline(number: int, sessions: int, passes: float, found: float) -> None:
    random = np.random.default_rng([4, number, sessions])
    base = starts(random, "real", TRIALS, 1, [number // sessions] * sessions)[:, 0] * SIGMA
    session = starts(random, "real", TRIALS, 1, [7])[:, 0] * SIGMA
    for loss, verdict, percent in ((0.0, Verdict.PASS, passes), (DELTA, Verdict.REGRESSION, found)):
        seen = 0
        for before, now in zip(base, session, strict=True):
            judged = judge_performance(
                "tpot_median_ms",
                np.exp(before),  # type: ignore[arg-type]
                np.exp(now[[0, 1, 4, 5]] + loss),
                sessions=sessions,
                controls=np.exp(now[[2, 3, 6]]),
                band=float(np.expm1(DELTA)),
            )
            improved = judged.verdict == Verdict.IMPROVEMENT
            seen += (Verdict.PASS if improved else judged.verdict) == verdict
        share = percent / 100
        bound = 400 * float(np.sqrt(max(share * (1 - share), 1 / TRIALS) / TRIALS)) + 0.3
        assert 100 * seen / TRIALS == pytest.approx(percent, abs=bound)
