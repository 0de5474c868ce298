"""Interleaved starts of a machine that measures itself: verdicts and error rates."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.rules.paired import (
    Effect,
    InterleavedTest,
    paired_test,
    rule_for,
    with_history,
)

SPEED, COST = "output_throughput", "server_cpu_s_per_1k_tokens"
QUIET = [100.0, 101.0, 99.5, 100.4, 99.8, 100.6]
NOISY = [100.0, 130.0, 82.0, 115.0, 93.0, 70.0]


def judge(
    references: list[float],
    new: list[float],
    *earlier: list[float],
    metric: str = SPEED,
    band: float | None = None,
) -> Judgement:
    return InterleavedTest(metric, band, references, new, earlier).judge(Rule())


def times(factor: float, count: int = 6) -> list[float]:
    return [factor * one for one in QUIET[:count]]


def shares(sigma: float, loss: float, *, stored: int = 0) -> tuple[float, float, float]:
    """How often REGRESSION and PASS come, and a machine that is too noisy; of throughput."""
    rng = np.random.default_rng([int(sigma * 1000), stored])
    references, new = rng.normal(0, sigma, (2, 10_000, 6))
    rule = with_history(rule_for(6), rng.normal(0, sigma, (stored, 6)).tolist())
    effect = Effect.below_band(-math.log(0.98), -math.log(0.75))
    found = paired_test(references, new + loss, effect, rule)
    return found.fails.mean(), found.holds.mean(), found.too_noisy.mean()


class TestErrorRates:
    """Statistics §9."""

    def test_an_unchanged_build_of_a_quiet_machine(self) -> None:
        lost, passed, _ = shares(0.02, 0.0)
        assert lost <= 0.002
        assert passed >= 0.99

    def test_a_noisy_machine_is_mostly_told_to_be_one(self) -> None:
        lost, _, too_noisy = shares(0.13, 0.0)
        assert lost <= 0.008
        assert too_noisy >= 0.65

    def test_12_per_cent_are_found_where_starts_vary_by_two(self) -> None:
        loss = -math.log(1 - 0.12)
        assert shares(0.02, loss)[0] >= 0.95
        assert shares(0.03, loss, stored=3)[0] >= 0.95


@each("metric", [name for name, one in METRICS.items() if one.family.band and one.family.sigma])
def test_twice_as_bad_and_twice_as_good(metric: str) -> None:
    found = lookup(metric)
    before = [one / 400 for one in QUIET]
    worse = 0.5 if found.direction == "higher" else 2.0
    if metric == "draft_acceptance_rate":
        before = [one / 2 for one in before]
    bad = judge(before, [one * worse for one in before], metric=metric, band=0.02)
    good = judge(before, [one / worse for one in before], metric=metric, band=0.02)
    assert (bad.verdict, good.verdict) == (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    assert bad.change == pytest.approx(worse - 1, abs=0.01)
    assert (bad.runs_used, good.runs_used) == (4, 4)


class TestTooNoisy:
    def test_nothing_passes_and_no_start_is_wasted(self) -> None:
        for new in (NOISY, [1.02 * one for one in NOISY], [1.7 * one for one in NOISY]):
            judged = judge(NOISY, new)
            assert judged.verdict == Verdict.INCONCLUSIVE
            assert judged.mark == "MACHINE"
            assert "machine too noisy" in judged.reason
            assert judged.band is not None
            assert judged.band > 0.25
            assert not judged.needs_more_runs

    def test_what_cannot_be_overlooked_is_told(self) -> None:
        judged = judge(NOISY, [12.0, 11.0, 13.0, 12.5])
        assert (judged.verdict, judged.mark) == (Verdict.REGRESSION, "")


def test_earlier_sessions_narrow_the_band_of_a_quiet_machine_and_widen_that_of_a_noisy_one() -> (
    None
):
    alone = judge(QUIET, times(1.0)).band
    quiet = judge(QUIET, times(1.0), QUIET, QUIET, QUIET).band
    loud = judge(QUIET, times(1.0), NOISY).band
    assert alone is not None
    assert quiet is not None
    assert loud is not None
    assert quiet < alone < loud
    single = judge(QUIET, times(1.0), [50.0]).band
    assert single == alone, "one start of a session has no spread"


def test_earlier_sessions_add_their_spread_and_not_their_level() -> None:
    slower = [0.5 * one for one in QUIET]
    judged = judge(QUIET, times(1.0), slower, QUIET)
    level = judge(QUIET, times(1.0), QUIET, QUIET)
    assert judged.band == pytest.approx(level.band)
    assert judged.baseline == level.baseline


@given(
    st.lists(st.floats(-0.3, 0.3), min_size=4, max_size=8),
    st.lists(st.floats(-0.3, 0.3), min_size=6, max_size=6),
    st.floats(0.0, 1.0),
)
def test_worse_values_never_better_the_verdict(
    references: list[float], new: list[float], more: float
) -> None:
    order = (Verdict.IMPROVEMENT, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION)
    before = [100 * math.exp(-x) for x in references]
    found = [judge(before, [100 * math.exp(-x - by) for x in new]) for by in (0.0, more)]
    ranks = [order.index(one.verdict) for one in found]
    assert ranks[0] <= ranks[1]


@each(
    ("references", "new", "why"),
    [
        (QUIET[:2], QUIET, "too few reference starts"),
        ([], QUIET, "no reference values"),
        (QUIET, [], "no new values"),
        ([*QUIET[:5], math.nan], QUIET, "reference value 6"),
        ([*QUIET[:5], 0.0], QUIET, "reference value 6"),
        ([*QUIET[:5], -4.0], QUIET, "reference value 6"),
        (QUIET, [1000 * one for one in QUIET], "hardly all in"),
    ],
)
def test_values_that_cannot_be_judged(references: list[float], new: list[float], why: str) -> None:
    with pytest.raises(InputError, match=why):
        judge(references, new)


def test_looks_of_every_plan() -> None:
    for most in range(1, 12):
        looks = rule_for(most).looks
        assert looks[-1] == most
        assert all(a < b for a, b in pairwise(looks))
