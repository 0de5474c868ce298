"""Spoiled input and tables: refused, or a verdict that says so; never a quiet PASS."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.gate import performance
from perfgate.gate.accuracy import judge_paired
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import Verdict

SPEED, TIME = "output_throughput", "tpot_median_ms"
SCORE = "accuracy:gsm8k:exact_match:strict-match"

PASS, REGRESSION = Verdict.PASS, Verdict.REGRESSION
IMPROVEMENT, INCONCLUSIVE = Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE

FLAT = [1000.0] * 5
STEADY = [1000.0, 1003.0, 998.0, 1005.0, 996.0, 1001.0, 999.0, 1002.0, 997.0, 1000.0]

# A build that lost three bands and one that is as it was, on a baseline of ten.
SLOW = [939.0, 942.0, 940.0]
SAME = [1001.0, 999.0, 1000.0]


def verdict(
    new: Sequence[float], baseline: Sequence[float] = STEADY, metric: str = SPEED
) -> Verdict:
    return performance.judge_performance(metric, baseline, new).verdict


def test_the_pair_that_is_spoiled_below() -> None:
    assert (verdict(SAME), verdict(SLOW)) == (PASS, REGRESSION)


@pytest.mark.parametrize("metric", [SPEED, TIME, "ttft_median_ms", "server_cpu_s_per_1k_tokens"])
def test_a_swapped_direction_shows_in_a_build_that_lost(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = METRICS[metric]
    lost = [value * (0.5 if found.direction == "higher" else 2) for value in SAME]
    assert verdict(lost, metric=metric) == REGRESSION
    other = "lower" if found.direction == "higher" else "higher"
    monkeypatch.setitem(METRICS, metric, replace(found, direction=other))
    assert verdict(lost, metric=metric) == IMPROVEMENT


def test_a_dropped_metric_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(METRICS, SPEED)
    with pytest.raises(InputError, match="unknown metric"):
        verdict(SAME)


def test_baseline_and_new_swapped_show_in_a_build_that_changed() -> None:
    assert verdict(STEADY[:5], baseline=SLOW) == IMPROVEMENT
    faster = [1061.0, 1060.0, 1059.0]
    assert (verdict(faster), verdict(STEADY[:5], baseline=faster)) == (IMPROVEMENT, REGRESSION)


@each("position", [0, 1, 2])
@each("bad", [math.nan, math.inf, -math.inf, 0.0, -1000.0, 1e9, 1e300])
def test_a_spoiled_value_is_refused_wherever_it_stands(bad: float, position: int) -> None:
    for values in (SAME, SLOW):
        spoiled = [*values[:position], bad, *values[position + 1 :]]
        with pytest.raises(InputError):
            verdict(spoiled)
        with pytest.raises(InputError):
            verdict(values, baseline=spoiled)


@pytest.mark.parametrize("tiny", [1e-9, 1e-300])
def test_tiny_values_turn_red(tiny: float) -> None:
    with pytest.raises(InputError):
        verdict([tiny, tiny])
    assert verdict([1000 / 150, 1000 / 150]) == REGRESSION


def test_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no new values"):
        verdict([])
    with pytest.raises(InputError, match="no baseline values"):
        verdict(SAME, baseline=[])


def test_one_value_never_proves_a_loss_and_one_bad_one_does_not_pass() -> None:
    assert verdict(SLOW[:1]) == INCONCLUSIVE
    with pytest.raises(InputError, match="too few"):
        performance.judge_performance(SPEED, STEADY[:1], SAME, rule=Rule(prior_dof=0))


def test_identical_values_measure_no_noise() -> None:
    with pytest.raises(InputError, match="all runs gave the same value"):
        performance.judge_performance(SPEED, FLAT, SAME, rule=Rule(prior_dof=0))
    assert verdict([1000.0] * 3, baseline=FLAT) == PASS
    assert verdict([940.0] * 3, baseline=FLAT) == REGRESSION


@each("metric", sorted(METRICS))
@each("rule", [Rule(), Rule(alpha=0.005)], ids=["few tests", "many tests"])
def test_every_metric_twice_as_bad_and_twice_as_good(metric: str, rule: Rule) -> None:
    found = METRICS[metric]
    wiggle = found.family.sigma / 2
    base = [0.4 * (1 + wiggle * z) for z in (-1.0, 0.5, 0.0, 1.0, -0.5)]
    good, bad = (2.0, 0.5) if found.direction == "higher" else (0.5, 2.0)
    band = found.family.band or 0.25

    def outcome(factor: float) -> tuple[Verdict, int]:
        new = [0.4 * factor * (1 - wiggle), 0.4 * factor * (1 + wiggle)]
        judged = performance.judge_performance(metric, base, new, band=band, rule=rule)
        return judged.verdict, judged.runs_used

    assert outcome(bad) == (REGRESSION, 2)
    assert outcome(good) == (IMPROVEMENT, 2)
    assert outcome(1) == (PASS, 1)


def test_an_accuracy_twice_as_bad_and_twice_as_good() -> None:
    def answers(right: int) -> dict[str, bool]:
        return {str(number): number < right for number in range(1000)}

    def outcome(right: int) -> Verdict:
        return judge_paired(SCORE, [answers(400)], [answers(right)] * 2, margin=0.02).verdict

    assert (outcome(200), outcome(800), outcome(400)) == (REGRESSION, IMPROVEMENT, PASS)
