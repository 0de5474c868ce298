"""What must hold of the rules whatever the numbers are."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_values import describe_change, judge_performance, judge_sweep
from rule_cases import GAIN, LOST, OPEN, PASS, SPEED, judge_claim, statement

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.verdict import Rule
from perfgate.judging.rules.paired import InterleavedTest

# How well a build comes off; making a run worse may only move it to the right.
ORDER = [GAIN, PASS, OPEN, LOST]

# Values near 100 on the log scale: from an eighth to eight times, most of them within a few bands.
log_values = st.one_of(st.floats(-0.06, 0.06), st.floats(-2.0, 2.0))
values = log_values.map(lambda x: 100 * math.exp(x))
baselines = st.lists(values, min_size=1, max_size=12)
runs = st.lists(values, min_size=1, max_size=6)
rules = st.sampled_from([Rule(), Rule(alpha=0.025), Rule(max_runs=2), Rule(max_runs=1)])
metrics = st.sampled_from([SPEED, "tpot_median_ms", "ttft_median_ms"])
losses = st.floats(0, 1)
anything = st.lists(st.floats(allow_nan=False, min_value=5e-324), min_size=1, max_size=6)


def worsened(metric: str, value: float, loss: float) -> float:
    return value * math.exp(loss if METRICS[metric].direction == "lower" else -loss)


def own(expect):
    return lambda metric, base, new, _, __: judge_claim(statement(metric, expect), new, base)


# Way of judging → whether all starts lose alike, and the way.
WAYS = {
    "alone": (False, lambda m, base, new, _, rule: judge_performance(m, base, new, rule=rule)),
    "own noise": (
        False,
        lambda m, base, new, _, rule: judge_performance(m, base, new, rule=rule, widen=True),
    ),
    "controls": (
        False,
        lambda m, base, new, more, rule: judge_performance(m, base, new, controls=more, rule=rule),
    ),
    "in turns": (
        True,
        lambda m, base, new, more, _: InterleavedTest(m, 0.02, more + base, new, ()).judge(),
    ),
    **{f"claim: {one}": (True, own(one)) for one in ("better", "not_worse", "worse")},
}


@pytest.mark.parametrize("way", WAYS)
@given(metrics, baselines, runs, st.lists(values, min_size=3, max_size=3), rules, st.data())
def test_a_worse_start_never_betters_the_verdict(way, metric, base, new, more, rule, data) -> None:
    """Holds of every start on its own where only the noise of the baseline counts: PASS is asked
    first at every look, and all bounds rise with every value."""
    alike, judge = WAYS[way]
    lost = data.draw(st.lists(losses, min_size=len(new), max_size=len(new)))
    lost = lost[:1] * len(new) if alike else lost
    worse = [worsened(metric, value, loss) for value, loss in zip(new, lost, strict=True)]
    before, after = (judge(metric, base, side, more, rule) for side in (new, worse))
    assert ORDER.index(after.verdict) >= ORDER.index(before.verdict)


@st.composite
def curves(draw: st.DrawFn) -> tuple[list[list[float]], list[list[float]]]:
    """Fresh starts of both sides that measured the same points, each of its own size."""
    points = draw(st.integers(4, 6))
    sizes = [draw(st.floats(0.01, 1e4)) for _ in range(points)]
    start = st.lists(values, min_size=points, max_size=points)

    def drawn(most: int) -> list[list[float]]:
        starts = draw(st.lists(start, min_size=1, max_size=most))
        return [[size * x for size, x in zip(sizes, one, strict=True)] for one in starts]

    return drawn(6), drawn(5)


@settings(max_examples=60)
@given(metrics, curves(), st.data(), rules)
def test_a_worse_point_never_betters_the_verdict_of_a_sweep(metric, curve, data, rule) -> None:
    before, new = curve
    worse = [[worsened(metric, x, data.draw(losses)) for x in start] for start in new]
    found = [judge_sweep(metric, before, side, rule=rule) for side in (new, worse)]
    healthy, hurt = (ORDER.index(one.verdict) for one in found)
    assert hurt >= healthy
    assert all(one.interval[0] <= one.change <= one.interval[1] for one in found)


@given(metrics, baselines, runs, st.floats(1e-6, 1e6), rules)
def test_the_unit_does_not_matter(metric, baseline, new, factor, rule) -> None:
    judged, scaled = (
        judge_performance(metric, [x * v for v in baseline], [x * v for v in new], rule=rule)
        for x in (1, factor)
    )
    assert (scaled.verdict, scaled.runs_used) == (judged.verdict, judged.runs_used)
    assert math.isclose(scaled.change or 0, judged.change or 0, rel_tol=1e-6, abs_tol=1e-9)


@given(baselines, runs, st.floats(0.01, 0.4), rules)
def test_directions_mirror_each_other(baseline, new, band, rule) -> None:
    """Throughput is judged as its inverse, the time per token, is with the same margin."""
    speed = judge_performance(SPEED, baseline, new, band=band, rule=rule)
    inverse = [1 / v for v in baseline], [1 / v for v in new]
    time = judge_performance("tpot_median_ms", *inverse, band=band / (1 - band), rule=rule)
    assert (time.verdict, time.runs_used) == (speed.verdict, speed.runs_used)
    assert math.isclose((1 + speed.change) * (1 + time.change), 1, rel_tol=1e-9)


@given(metrics, baselines, runs, rules)
def test_a_judgement_agrees_with_itself_and_stands(metric, baseline, new, rule) -> None:
    """Whatever is measured after it."""
    judged = judge_performance(metric, baseline, new, rule=rule)
    low, high = judged.interval
    assert low <= judged.change <= high
    assert 1 <= judged.runs_used <= min(len(new), rule.max_runs)
    undecided = judged.verdict == OPEN
    assert judged.needs_more_runs == (undecided and len(new) < rule.max_runs)
    assert not undecided or judged.runs_used == min(len(new), rule.max_runs)
    passes = judged.verdict in (PASS, GAIN)
    assert passes == ((-low if metric == SPEED else high) < judged.band)
    if judged.needs_more_runs or passes:
        return
    for extra in (max(baseline) / 50, min(baseline) * 50):  # still in the same unit
        later = judge_performance(metric, baseline, [*new, extra], rule=rule)
        assert (later.verdict, later.runs_used) == (judged.verdict, judged.runs_used)


@given(st.sampled_from([SPEED, "tpot_median_ms"]), anything, anything)
def test_whatever_is_not_refused_gives_finite_numbers(metric, baseline, new) -> None:
    try:
        judged = judge_performance(metric, baseline, new)
        change = describe_change(metric, baseline, new)
    except InputError:
        return
    numbers = (judged.baseline, judged.measured, judged.change, *judged.interval, change.p_value)
    assert all(number is not None and math.isfinite(number) for number in numbers)
