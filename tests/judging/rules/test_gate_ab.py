"""A/B: the rule against a second, slower writing of it, and what it says of pairs by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit
from sizes import sized
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.ab import AbNoise, AbRule, decide, judge_ab

CASES = sized(6_000, 50_000)
SPEED = "output_throughput"
Values = NDArray[np.float64]


def pairs(rng: np.random.Generator, trials: int) -> tuple[Values, Values, Values]:
    """Starts of A and B in prior sigmas, with outlying starts, and the effect of each case."""
    effect = rng.choice([0.0, 0.5, 1, 2, 3, 4, 6, -2], size=(trials, 1))
    found = []
    for shift in (0.0, effect):
        values = rng.normal(0, 0.84, (trials, 6)) + shift
        luck = rng.random((trials, 6))
        size = 4 + 2 * rng.exponential(size=(trials, 6))
        values += np.where(luck < 0.04, size, np.where(luck > 0.98, -size, 0))
        found.append(values)
    return found[0], found[1], effect


def slowly(a: list[float], b: list[float], band: float, within: float) -> tuple[str, int]:
    """The rule as statistics §10 words it, one line a sentence; sigma is 1."""
    for r in (2, 3, 4, 5, 6):
        now_a, now_b = a[:r], b[:r]
        if r >= 3:
            mid_a, mid_b = float(np.median(now_a)), float(np.median(now_b))
            now_a = [min(max(x, mid_a - 2), mid_a + 2) for x in now_a]
            now_b = [min(max(x, mid_b - 2), mid_b + 2) for x in now_b]
        mean = sum(now_a) / r
        d = sum(now_b) / r - mean
        dof = 10 + r - 1
        s = math.sqrt((10 * within**2 + sum((x - mean) ** 2 for x in now_a)) / dof)
        error = s * math.sqrt(2 / r)
        if d + stdtrit(dof, 0.975) * error < band:
            return "no worse", r
        above = [x for x in now_b if x > float(np.median(now_a)) + band / 2]
        if r >= 3 and d - stdtrit(dof, 0.995) * error > 0 and len(above) >= 3:
            return "worse", r
    return "undecided", 6


@pytest.mark.nightly
@pytest.mark.parametrize(("band", "between"), [(4.0, 0.3), (2.0, 0.0), (5.0, 0.5)])
def test_the_rule_is_the_one_that_was_simulated(band: float, between: float) -> None:
    rng = np.random.default_rng([15, int(10 * band)])
    a, b, _ = pairs(rng, CASES // 3 + 1)
    noise, seen = AbNoise(1.0, between), {"worse": 0, "no worse": 0, "undecided": 0}
    for one, other in zip(a.tolist(), b.tolist(), strict=True):
        expected = slowly(one, other, band, math.sqrt(1 - between))
        found = decide(one, other, band, noise)
        assert (found.answer, found.pairs) == expected
        seen[found.answer] += 1
    assert min(seen["worse"], seen["no worse"]) > CASES // 50, seen
    assert band > 2 or seen["undecided"] > CASES // 250, seen


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


@each(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": 0.5},
        {"beta": math.nan},
        {"prior_dof": 0},
        {"pairs": 1},
        {"first_look": 7},
        {"needed": 1},
        {"fewest": 1},
    ],
)
def test_constants_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="the rule of an A/B cannot be used"):
        AbRule(**wrong)  # type: ignore[arg-type]


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


def rates(noise: AbNoise, band: float, a: Values, b: Values) -> tuple[float, float, float]:
    """Shares of "worse" and "no worse", and mean starts of both builds."""
    found = [decide(x, y, band, noise) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    answers = [one.answer for one in found]
    worse, fine = answers.count("worse"), answers.count("no worse")
    return worse / len(a), fine / len(a), 2 * float(np.mean([one.pairs for one in found]))


def test_error_rates_on_noise_as_it_is() -> None:
    """Statistics §10: equal builds 0.17 % worse, one band found in 93.8 %."""
    rng = np.random.default_rng(1510)
    a, _, _ = pairs(rng, 2000)
    equal = rng.permutation(a)
    worse, fine, starts = rates(AbNoise(1.0), 4.0, a, equal)
    assert worse < 0.015
    assert fine > 0.97
    assert starts < 4.6
    found, _, _ = rates(AbNoise(1.0), 4.0, a, equal + 4)
    assert found > 0.88


def test_error_rates_of_a_machine_that_measures_its_own_noise() -> None:
    rng = np.random.default_rng(1511)
    for sigma in (0.03, 0.06, 0.13):
        a, b = rng.normal(0, sigma, (2, 500, 6))
        worse, _, _ = rates(AbNoise.own(), 0.05, a, b)
        assert worse < 0.015, sigma
        found, _, _ = rates(AbNoise.own(), 0.05, a, b + 12 * sigma)
        assert found > 0.9, sigma


def test_values_in_other_units_are_refused() -> None:
    with pytest.raises(InputError, match="hardly all in ms"):
        judge_ab("ttft_mean_ms", [100.0] * 3, [0.1] * 3)
    with pytest.raises(InputError, match="has no default band"):
        judge_ab("ttft_p99_ms", [100.0] * 3, [100.0] * 3)


def test_a_zero_cannot_be_compared() -> None:
    judged = judge_ab("itl_median_ms", [0.0, 1.0], [1.0, 1.0], band=0.1)
    assert (judged.verdict, judged.against) == (Verdict.NOT_COMPARABLE, "ab")
