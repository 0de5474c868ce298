"""A/B: what the rule says of pairs by hand, and how often it errs."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.paired import (
    AB_RULE,
    OWN_NOISE_RULE,
    Effect,
    PairedRule,
    judge_ab,
    paired_test,
)

SPEED = "output_throughput"
Values = NDArray[np.float64]


def values(
    a: Sequence[float], b: Sequence[float], at: float = 1000.0
) -> tuple[list[float], list[float]]:
    """Throughputs from losses in per cent."""
    return [at * math.exp(-x / 100) for x in a], [at * math.exp(-x / 100) for x in b]


@each(
    ("a", "b", "verdict", "used", "more"),
    [
        pytest.param([0], [0], Verdict.INCONCLUSIVE, 1, True, id="one pair decides nothing"),
        pytest.param([0, 0.1], [0, 0.1], Verdict.PASS, 2, False, id="two equal pairs"),
        pytest.param([0, 0], [5, 5], Verdict.INCONCLUSIVE, 2, True, id="a loss wants a third"),
        pytest.param([0] * 3, [5] * 3, Verdict.REGRESSION, 3, False, id="three of three"),
        pytest.param([0] * 4, [5, 0, 0, 0], Verdict.PASS, 3, False, id="an outlier of three"),
        pytest.param([0, 0], [-5, -5], Verdict.PASS, 2, True, id="a gain wants a third"),
        pytest.param([0] * 3, [-5] * 3, Verdict.IMPROVEMENT, 3, False, id="a proved gain"),
        pytest.param([0] * 3, [0] * 2, Verdict.PASS, 2, False, id="a start without partner"),
    ],
)
def test_by_hand(
    a: Sequence[float], b: Sequence[float], verdict: Verdict, used: int, more: bool
) -> None:
    judged = judge_ab(SPEED, *values(a, b))
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)
    assert judged.against == "ab"


def test_the_sign_is_told_when_a_and_b_are_swapped() -> None:
    slow = judge_ab(SPEED, *values([0] * 3, [8] * 3))
    assert slow.reason.startswith("B is 7.7 % slower than A (B/A 0.923, 0.9")
    assert slow.change == pytest.approx(math.exp(-0.08) - 1)
    fast = judge_ab(SPEED, *reversed(values([0] * 3, [8] * 3)))
    assert (slow.verdict, fast.verdict) == (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    assert fast.reason.startswith("B is 8.3 % faster than A (B/A 1.083")
    cost = judge_ab("server_cpu_s_per_1k_tokens", [1.0] * 3, [1.2] * 3)
    assert cost.reason.startswith("B is 20.0 % worse than A (B/A 1.200")


def test_the_bounds_by_hand() -> None:
    judged = judge_ab(SPEED, *values([0, 0, 0], [4, 5, 6]), between=0.3)
    s = math.sqrt(10 * 0.005**2 * 0.7 / 12)
    error = s * math.sqrt(2 / 3)
    # B is clipped to its median ± 2 sigma: 4, 5, 6 % stay as they are.
    low, high = 0.05 - stdtrit(12, 0.995) * error, 0.05 + stdtrit(12, 0.975) * error
    assert judged.interval == pytest.approx((math.expm1(-high), math.expm1(-low)))


@each("metric", sorted(METRICS))
def test_every_metric_twice_as_good_and_twice_as_bad(metric: str) -> None:
    good, bad = (0.8, 0.4) if METRICS[metric].direction == "higher" else (0.4, 0.8)
    assert judge_ab(metric, [good] * 3, [bad] * 3, band=0.1).verdict == Verdict.REGRESSION
    assert judge_ab(metric, [bad] * 3, [good] * 3, band=0.1).verdict == Verdict.IMPROVEMENT
    assert judge_ab(metric, [good] * 3, [good] * 3, band=0.1).verdict == Verdict.PASS


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_values_that_cannot_be_judged(bad: float) -> None:
    with pytest.raises(InputError, match=f"B value 1 of {SPEED} cannot be judged"):
        judge_ab(SPEED, [1.0], [bad])
    with pytest.raises(InputError, match=f"A value 2 of {SPEED} cannot be judged"):
        judge_ab(SPEED, [1.0, bad], [1.0, 1.0])
    with pytest.raises(InputError, match="no B values"):
        judge_ab(SPEED, [1.0], [])


# A machine that measures its own noise. ------------------------------------------------------


def own(a: Sequence[float], b: Sequence[float], metric: str = SPEED) -> Verdict:
    return judge_ab(metric, *values(a, b), measured_noise=True).verdict


def test_a_machine_that_measures_its_own_noise() -> None:
    calm = [0.0, 2, -1, 3, 0, 1]
    assert own(calm[:3], calm[:3]) == Verdict.INCONCLUSIVE  # four pairs at least
    assert own(calm, list(reversed(calm))) == Verdict.PASS
    assert own(calm, [x + 60 for x in calm]) == Verdict.REGRESSION
    assert own(calm, [x - 60 for x in calm]) == Verdict.IMPROVEMENT


def test_a_machine_too_noisy_proves_no_pass_but_a_regression() -> None:
    wild = [0.0, 40, -30, 25, -45, 10]
    judged = judge_ab(SPEED, *values(wild, wild), measured_noise=True)
    assert judged.verdict == Verdict.INCONCLUSIVE
    assert "machine too noisy" in judged.reason
    assert any(note.startswith("band widened from 2.0 % to") for note in judged.notes)
    assert own(wild, [x + 250 for x in wild]) == Verdict.REGRESSION


def rates(rule: PairedRule, band: float, a: Values, b: Values) -> tuple[float, float, float]:
    """Shares of "worse" and "no worse", and mean starts of both builds."""
    found = paired_test(a, b, Effect.below_band(band), rule)
    return found.fails.mean(), found.holds.mean(), 2 * found.starts.mean()


def test_error_rates_on_noise_as_it_is() -> None:
    """Statistics §10, a band of 4 sigma: equal builds 0.2 % worse, one band found in 93.9 %."""
    rng = np.random.default_rng(1510)
    a, equal = rng.normal(0, 0.84, (2, 20_000, 6))
    for side in (a, equal):
        side += np.where(rng.random(side.shape) < 0.035, 4 + rng.exponential(2, side.shape), 0)
    worse, fine, starts = rates(AB_RULE, 4.0, a, equal)
    assert worse < 0.01
    assert fine > 0.97
    assert starts < 4.6
    assert rates(AB_RULE, 4.0, a, equal + 4)[0] > 0.9


def test_error_rates_of_a_machine_that_measures_its_own_noise() -> None:
    rng = np.random.default_rng(1511)
    for sigma in (0.03, 0.06, 0.13):
        a, b = rng.normal(0, sigma, (2, 5000, 6))
        assert rates(OWN_NOISE_RULE, 0.05, a, b)[0] < 0.01, sigma
        assert rates(OWN_NOISE_RULE, 0.05, a, b + 12 * sigma)[0] > 0.9, sigma


def test_values_in_other_units_are_refused() -> None:
    with pytest.raises(InputError, match="hardly all in ms"):
        judge_ab("ttft_mean_ms", [100.0] * 3, [0.1] * 3)
    with pytest.raises(InputError, match="has no default band"):
        judge_ab("ttft_p99_ms", [100.0] * 3, [100.0] * 3)


def test_a_zero_cannot_be_compared() -> None:
    judged = judge_ab("itl_median_ms", [0.0, 1.0], [1.0, 1.0], band=0.1)
    assert (judged.verdict, judged.against) == (Verdict.NOT_COMPARABLE, "ab")
