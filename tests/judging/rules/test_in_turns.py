"""Starts in turns: A/B, and a machine that measures its own reference; by hand and error rates."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.paired import (
    AB_RULE,
    OWN_NOISE_RULE,
    AbTest,
    Effect,
    InterleavedTest,
    PairedRule,
    paired_test,
    rule_for,
    with_history,
)

SPEED = "output_throughput"
PASS, OPEN, LOST = Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION
QUIET = [100.0, 101.0, 99.5, 100.4, 99.8, 100.6]
NOISY = [100.0, 130.0, 82.0, 115.0, 93.0, 70.0]
Values = NDArray[np.float64]


def values(*sides: Sequence[float]) -> list[list[float]]:
    """Throughputs from losses in per cent."""
    return [[1000 * math.exp(-x / 100) for x in side] for side in sides]


def judge_ab(
    metric: str,
    a: Sequence[float],
    b: Sequence[float],
    *,
    band: float | None = None,
    measured_noise: bool = False,
) -> Judgement:
    return AbTest(metric, a, b, band, RunNoise(widen=measured_noise)).judge(Rule())


def in_turns(
    references: list[float], new: list[float], *earlier: list[float], metric: str = SPEED
) -> Judgement:
    return InterleavedTest(metric, 0.02, references, new, earlier).judge(Rule())


@each("metric", sorted(METRICS))
def test_every_metric_twice_as_good_and_twice_as_bad(metric: str) -> None:
    good, bad = (0.8, 0.4) if METRICS[metric].direction == "higher" else (0.4, 0.8)
    for before, now, verdict in ((good, bad, LOST), (bad, good, Verdict.IMPROVEMENT)):
        told = judge_ab(metric, [before] * 3, [now] * 3, band=0.1)
        own = in_turns([before * one / 100.6 for one in QUIET], [now] * 6, metric=metric)
        assert (told.verdict, own.verdict, own.runs_used) == (verdict, verdict, 4)
        assert own.change == pytest.approx(now / before - 1, abs=0.02)
    assert judge_ab(metric, [good] * 3, [good] * 3, band=0.1).verdict == PASS


@each(
    ("bad", "why"),
    [
        *(({3: x}, "value 4 of output_throughput cannot be judged") for x in (0.0, -4.0, math.nan)),
        ({n: 1000 * one for n, one in enumerate(QUIET)}, "hardly all in"),
        (None, "values of output_throughput"),
    ],
)
def test_values_that_cannot_be_judged(bad: dict[int, float] | None, why: str) -> None:
    other = [] if bad is None else [bad.get(n, one) for n, one in enumerate(QUIET)]
    for one, two in ((other, QUIET), (QUIET, other)):
        with pytest.raises(InputError, match=why):
            in_turns(one, two)
        with pytest.raises(InputError, match=why):
            judge_ab(SPEED, one, two)
    with pytest.raises(InputError, match="too few reference starts"):
        in_turns(QUIET[:2], QUIET)
    with pytest.raises(InputError, match="has no default band"):
        judge_ab("ttft_p99_ms", [100.0] * 3, [100.0] * 3)
    for judged in (
        judge_ab("itl_median_ms", [0.0, 1.0], [1.0, 1.0], band=0.1),
        in_turns([0.0, 1.0, 1.0], [1.0], metric="itl_median_ms"),
    ):
        assert judged.verdict == Verdict.NOT_COMPARABLE


# Two builds side by side. --------------------------------------------------------------------


@each(
    ("a", "b", "verdict", "used", "more"),
    [
        pytest.param([0], [0], OPEN, 1, True, id="one pair decides nothing"),
        pytest.param([0, 0.1], [0, 0.1], PASS, 2, False, id="two equal pairs"),
        pytest.param([0, 0], [5, 5], OPEN, 2, True, id="a loss wants a third"),
        pytest.param([0] * 3, [5] * 3, LOST, 3, False, id="three of three"),
        pytest.param([0] * 4, [5, 0, 0, 0], PASS, 3, False, id="an outlier of three"),
        pytest.param([0, 0], [-5, -5], PASS, 2, True, id="a gain wants a third"),
        pytest.param([0] * 3, [-5] * 3, Verdict.IMPROVEMENT, 3, False, id="a proved gain"),
        pytest.param([0] * 3, [0] * 2, PASS, 2, False, id="a start without partner"),
    ],
)
def test_two_builds_by_hand(
    a: Sequence[float], b: Sequence[float], verdict: Verdict, used: int, more: bool
) -> None:
    judged = judge_ab(SPEED, *values(a, b))
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)
    assert judged.against == "ab"


def test_the_sign_is_told_when_a_and_b_are_swapped() -> None:
    slow = judge_ab(SPEED, *values([0] * 3, [8] * 3))
    assert slow.reason.startswith("B is 7.7 % slower than A (B/A 0.923, 0.9")
    fast = judge_ab(SPEED, *values([8] * 3, [0] * 3))
    assert (slow.verdict, fast.verdict) == (LOST, Verdict.IMPROVEMENT)
    assert fast.reason.startswith("B is 8.3 % faster than A (B/A 1.083")
    cost = judge_ab("server_cpu_s_per_1k_tokens", [1.0] * 3, [1.2] * 3)
    assert cost.reason.startswith("B is 20.0 % worse than A (B/A 1.200")


def test_two_builds_on_a_machine_that_measures_its_own_noise() -> None:
    def judged(a: Sequence[float], b: Sequence[float]) -> Judgement:
        return judge_ab(SPEED, *values(a, b), measured_noise=True)

    calm, wild = [0.0, 2, -1, 3, 0, 1], [0.0, 40, -30, 25, -45, 10]
    assert judged(calm[:3], calm[:3]).verdict == OPEN  # four pairs at least
    assert judged(calm, calm[::-1]).verdict == PASS
    assert judged(calm, [x + 60 for x in calm]).verdict == LOST
    assert judged(calm, [x - 60 for x in calm]).verdict == Verdict.IMPROVEMENT
    noisy = judged(wild, wild)
    assert noisy.verdict == OPEN
    assert "machine too noisy" in noisy.reason
    assert any(note.startswith("band widened from 2.0 % to") for note in noisy.notes)
    assert judged(wild, [x + 250 for x in wild]).verdict == LOST


def rates(rule: PairedRule, band: float, a: Values, b: Values) -> tuple[float, float, float]:
    """Shares of "worse" and "no worse", and mean starts of both builds."""
    found = paired_test(a, b, Effect.below_band(band), rule)
    return found.fails.mean(), found.holds.mean(), 2 * found.starts.mean()


def test_error_rates_of_two_builds_on_noise_as_it_is() -> None:
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


def test_error_rates_of_two_builds_where_the_machine_measures_its_own_noise() -> None:
    rng = np.random.default_rng(1511)
    for sigma in (0.03, 0.06, 0.13):
        a, b = rng.normal(0, sigma, (2, 5000, 6))
        assert rates(OWN_NOISE_RULE, 0.05, a, b)[0] < 0.01, sigma
        assert rates(OWN_NOISE_RULE, 0.05, a, b + 12 * sigma)[0] > 0.9, sigma


# A machine that measures its own reference. --------------------------------------------------


def shares(sigma: float, loss: float, *, stored: int = 0) -> tuple[float, float, float]:
    """How often REGRESSION and PASS come, and a machine that is too noisy; of throughput."""
    rng = np.random.default_rng([int(sigma * 1000), stored])
    references, new = rng.normal(0, sigma, (2, 10_000, 6))
    rule = with_history(rule_for(6), rng.normal(0, sigma, (stored, 6)).tolist())
    effect = Effect.below_band(-math.log(0.98), -math.log(0.75))
    found = paired_test(references, new + loss, effect, rule)
    return found.fails.mean(), found.holds.mean(), found.too_noisy.mean()


def test_error_rates_of_an_own_reference() -> None:
    """Statistics §9: a quiet machine; a noisy one; 12 % where starts vary by two and three."""
    lost, passed, _ = shares(0.02, 0.0)
    assert lost <= 0.002
    assert passed >= 0.99
    lost, _, too_noisy = shares(0.13, 0.0)
    assert lost <= 0.008
    assert too_noisy >= 0.65
    assert shares(0.02, -math.log(0.88))[0] >= 0.95
    assert shares(0.03, -math.log(0.88), stored=3)[0] >= 0.95


def test_on_a_machine_too_noisy_nothing_passes_and_no_start_is_wasted() -> None:
    for factor in (1, 1.02, 1.7):
        judged = in_turns(NOISY, [factor * one for one in NOISY])
        assert (judged.verdict, judged.mark) == (OPEN, "MACHINE")
        assert "machine too noisy" in judged.reason
        assert judged.band is not None
        assert judged.band > 0.25
        assert not judged.needs_more_runs
    judged = in_turns(NOISY, [12.0, 11.0, 13.0, 12.5])  # what cannot be overlooked
    assert (judged.verdict, judged.mark) == (LOST, "")


def test_earlier_sessions_add_their_spread_and_not_their_level() -> None:
    def band(*earlier: list[float]) -> float:
        judged = in_turns(QUIET, QUIET, *earlier)
        assert judged.band is not None
        assert judged.baseline == in_turns(QUIET, QUIET).baseline
        return judged.band

    assert band(QUIET, QUIET, QUIET) < band() < band(NOISY)
    assert band([50.0]) == band(), "one start of a session has no spread"
    assert band([0.5 * one for one in QUIET], QUIET) == pytest.approx(band(QUIET, QUIET))


@given(
    st.lists(st.floats(-0.3, 0.3), min_size=4, max_size=8),
    st.lists(st.floats(-0.3, 0.3), min_size=6, max_size=6),
    st.floats(0.0, 1.0),
)
def test_worse_values_never_better_the_verdict(
    references: list[float], new: list[float], more: float
) -> None:
    order = (Verdict.IMPROVEMENT, PASS, OPEN, LOST)
    before = [100 * math.exp(-x) for x in references]
    found = [in_turns(before, [100 * math.exp(-x - by) for x in new]) for by in (0.0, more)]
    ranks = [order.index(one.verdict) for one in found]
    assert ranks[0] <= ranks[1]


def test_looks_of_every_plan() -> None:
    for most in range(1, 12):
        looks = rule_for(most).looks
        assert looks[-1] == most
        assert all(a < b for a, b in pairwise(looks))
