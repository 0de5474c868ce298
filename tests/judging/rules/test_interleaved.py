"""Interleaved starts of a machine that measures itself: the rule, its oracle, its error rates."""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interleaved_oracle import verdict as plain_verdict
from sizes import sized
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS, lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.interleaved import (
    InterleavedRule,
    decide,
    judge_interleaved,
    own_level,
    rule_for,
)

SPEED, COST = "output_throughput", "server_cpu_s_per_1k_tokens"
QUIET = [100.0, 101.0, 99.5, 100.4, 99.8, 100.6]
NOISY = [100.0, 130.0, 82.0, 115.0, 93.0, 70.0]


def times(factor: float, count: int = 6) -> list[float]:
    return [factor * one for one in QUIET[:count]]


class TestOracle:
    @pytest.mark.nightly
    @pytest.mark.parametrize("pairs", [4, 5, 6, 8])
    def test_same_verdict_and_starts_as_the_plain_rule(self, pairs: int) -> None:
        """Each of the four plans, of quiet and noisy machines, with and without loss."""
        chance = random.Random(pairs)
        looks = {4: (4,), 5: (4, 5), 6: (4, 6), 8: (4, 6, 8)}[pairs]
        rule = rule_for(pairs)
        assert rule.looks == looks
        seen = {"PASS": 0, "REGRESSION": 0, "INCONCLUSIVE": 0}
        for _ in range(sized(1_000, 15_000)):
            sigma = chance.choice((0.005, 0.02, 0.06, 0.13))
            references = noisy(chance, sigma, pairs)
            earlier = [noisy(chance, sigma, 6) for _ in range(chance.randint(0, 4))]
            loss = chance.choice((0.0, 0.5, 1.0, 2.0, 4.0)) * 3 * sigma
            new = [loss + x for x in noisy(chance, chance.choice((1, 1, 3)) * sigma, pairs)]
            declared = chance.choice((0.02, 0.05, 0.2))
            expected = plain_verdict(references, new, declared, earlier, looks)
            level = own_level(references, earlier, rule)
            margin = max(declared, level.forced_margin(rule))
            found = decide(level, new, margin, rule)
            plain = "PASS" if found.verdict == Verdict.IMPROVEMENT else str(found.verdict)
            assert (plain, found.new) == expected[:2]
            assert margin == pytest.approx(expected[2], rel=1e-9)
            assert not found.needs_more
            seen[plain] += 1
        assert min(seen.values()) > 20, seen

    def test_starts_one_by_one_end_as_all_at_once(self) -> None:
        chance = random.Random(3)
        rule = rule_for(8)
        for _ in range(2000):
            references, new = noisy(chance, 0.03, 8), noisy(chance, 0.06, 8)
            level = own_level(references, (), rule)
            margin = level.forced_margin(rule)
            whole = decide(level, new, margin, rule)
            for count in range(1, 9):
                found = decide(level, new[:count], margin, rule)
                assert found.needs_more == (count < whole.new)
            assert decide(level, new[: whole.new], margin, rule) == whole


def noisy(chance: random.Random, sigma: float, count: int) -> list[float]:
    """Values with an outlier now and then."""
    return [chance.gauss(0, sigma) + 6 * sigma * (chance.random() < 0.05) for _ in range(count)]


def shares(sigma: float, loss: float, runs: int, *, stored: int = 0) -> dict[Verdict, float]:
    """How often each verdict comes, of throughput."""
    chance = random.Random(int(sigma * 1000) + stored)
    counts = dict.fromkeys(Verdict, 0)
    for _ in range(runs):
        references = [math.exp(chance.gauss(0, sigma)) for _ in range(6)]
        new = [math.exp(chance.gauss(0, sigma) - loss) for _ in range(6)]
        earlier = [[math.exp(chance.gauss(0, sigma)) for _ in range(6)] for _ in range(stored)]
        counts[judge_interleaved(SPEED, references, new, earlier=earlier).verdict] += 1
    return {verdict: count / runs for verdict, count in counts.items()}


class TestErrorRates:
    def test_an_unchanged_build_of_a_quiet_machine(self) -> None:
        found = shares(0.02, 0.0, 2000)
        assert found[Verdict.REGRESSION] <= 0.003
        assert found[Verdict.PASS] + found[Verdict.IMPROVEMENT] >= 0.985

    def test_a_noisy_machine_is_mostly_told_to_be_one(self) -> None:
        found = shares(0.13, 0.0, 2000)
        assert found[Verdict.REGRESSION] <= 0.008
        assert found[Verdict.INCONCLUSIVE] >= 0.6

    def test_12_per_cent_are_found_where_starts_vary_by_two(self) -> None:
        loss = -math.log(1 - 0.12)
        assert shares(0.02, loss, 1000)[Verdict.REGRESSION] >= 0.95
        assert shares(0.03, loss, 1000, stored=3)[Verdict.REGRESSION] >= 0.95


@each("metric", [name for name, one in METRICS.items() if one.family.band and one.family.sigma])
def test_twice_as_bad_and_twice_as_good(metric: str) -> None:
    found = lookup(metric)
    before = [one / 400 for one in QUIET]
    worse = 0.5 if found.direction == "higher" else 2.0
    if metric == "draft_acceptance_rate":
        before = [one / 2 for one in before]
    bad = judge_interleaved(metric, before, [one * worse for one in before], band=0.02)
    good = judge_interleaved(metric, before, [one / worse for one in before], band=0.02)
    assert (bad.verdict, good.verdict) == (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    assert bad.change == pytest.approx(worse - 1, abs=0.01)
    assert (bad.runs_used, good.runs_used) == (4, 4)


class TestTooNoisy:
    def test_nothing_passes_and_no_start_is_wasted(self) -> None:
        for new in (NOISY, [1.02 * one for one in NOISY], [1.7 * one for one in NOISY]):
            judged = judge_interleaved(SPEED, NOISY, new)
            assert judged.verdict == Verdict.INCONCLUSIVE
            assert judged.mark == "MACHINE"
            assert "machine too noisy" in judged.reason
            assert judged.band is not None
            assert judged.band > 0.25
            assert not judged.needs_more_runs

    def test_what_cannot_be_overlooked_is_told(self) -> None:
        judged = judge_interleaved(SPEED, NOISY, [12.0, 11.0, 13.0, 12.5])
        assert (judged.verdict, judged.mark) == (Verdict.REGRESSION, "")

    def test_the_limit_is_that_of_the_forced_band(self) -> None:
        wide = InterleavedRule(widest=0.01)
        assert judge_interleaved(SPEED, QUIET, times(1.0), rule=wide).mark == "MACHINE"


def test_earlier_sessions_narrow_the_band_of_a_quiet_machine_and_widen_that_of_a_noisy_one() -> (
    None
):
    alone = judge_interleaved(SPEED, QUIET, times(1.0)).band
    quiet = judge_interleaved(SPEED, QUIET, times(1.0), earlier=[QUIET, QUIET, QUIET]).band
    loud = judge_interleaved(SPEED, QUIET, times(1.0), earlier=[NOISY]).band
    assert alone is not None
    assert quiet is not None
    assert loud is not None
    assert quiet < alone < loud
    single = judge_interleaved(SPEED, QUIET, times(1.0), earlier=[[50.0]]).band
    assert single == alone, "one start of a session has no spread"


def test_earlier_sessions_add_their_spread_and_not_their_level() -> None:
    slower = [0.5 * one for one in QUIET]
    judged = judge_interleaved(SPEED, QUIET, times(1.0), earlier=[slower, QUIET])
    level = judge_interleaved(SPEED, QUIET, times(1.0), earlier=[QUIET, QUIET])
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
    found = [
        judge_interleaved(SPEED, before, [100 * math.exp(-x - by) for x in new])
        for by in (0.0, more)
    ]
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
        judge_interleaved(SPEED, references, new)


@each(
    "change",
    [
        {"alpha": 0.0},
        {"beta": 0.7},
        {"dof": 0},
        {"sigma": 3.0},
        {"looks": ()},
        {"looks": (6, 4)},
        {"looks": (4, 8)},
        {"widest": 1.0},
    ],
)
def test_constants_out_of_range(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        InterleavedRule(**change)  # type: ignore[arg-type]


def test_looks_of_every_plan() -> None:
    for most in range(1, 12):
        looks = rule_for(most).looks
        assert looks[-1] == most
        assert all(a < b for a, b in pairwise(looks))
