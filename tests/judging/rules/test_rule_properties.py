"""What must hold of the rule whatever the numbers are."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from plain_values import judge_performance, judge_sweep

from perfgate.core.metrics import METRICS
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict

# How well a build comes off; making a run worse may only move it to the right.
ORDER = [Verdict.IMPROVEMENT, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION]

# Values near 100 on the log scale: from an eighth to eight times, most of them within a few bands.
log_values = st.one_of(st.floats(-0.06, 0.06), st.floats(-2.0, 2.0))
values = log_values.map(lambda x: 100 * math.exp(x))
baselines = st.lists(values, min_size=1, max_size=12)
runs = st.lists(values, min_size=1, max_size=6)
rules = st.sampled_from([Rule(), Rule(alpha=0.025), Rule(max_runs=2), Rule(max_runs=1)])
metrics = st.sampled_from(["output_throughput", "tpot_median_ms", "ttft_median_ms"])
factors = st.floats(1e-6, 1e6)


@settings(deadline=None)
@given(metrics, baselines, runs, factors, rules)
def test_the_unit_does_not_matter(
    metric: str, baseline: list[float], new: list[float], factor: float, rule: Rule
) -> None:
    judged = judge_performance(metric, baseline, new, rule=rule)
    scaled = judge_performance(
        metric, [factor * v for v in baseline], [factor * v for v in new], rule=rule
    )
    assert scaled.verdict == judged.verdict
    assert scaled.runs_used == judged.runs_used
    assert math.isclose(scaled.change or 0, judged.change or 0, rel_tol=1e-6, abs_tol=1e-9)


@settings(deadline=None)
@given(metrics, baselines, runs, st.data(), rules, st.booleans())
def test_a_worse_run_never_betters_the_verdict(
    metric: str,
    baseline: list[float],
    new: list[float],
    data: st.DataObject,
    rule: Rule,
    widen: bool,
) -> None:
    """Holds of every run on its own, with sequential stopping: PASS is asked first at every look,
    all bounds rise with every value, and the noise comes from the baseline alone."""
    losses = data.draw(st.lists(st.floats(0, 1), min_size=len(new), max_size=len(new)))
    sign = -1 if metric == "output_throughput" else 1
    worse = [v * math.exp(sign * loss) for v, loss in zip(new, losses, strict=True)]
    before = judge_performance(metric, baseline, new, rule=rule, widen=widen)
    after = judge_performance(metric, baseline, worse, rule=rule, widen=widen)
    assert ORDER.index(after.verdict) >= ORDER.index(before.verdict)


@settings(deadline=None)
@given(baselines, runs, st.floats(0.01, 0.4), rules)
def test_directions_mirror_each_other(
    baseline: list[float], new: list[float], band: float, rule: Rule
) -> None:
    """Throughput is judged as its inverse, the time per token, is with the same margin."""
    as_speed = judge_performance("output_throughput", baseline, new, band=band, rule=rule)
    as_time = judge_performance(
        "tpot_median_ms",
        [1 / v for v in baseline],
        [1 / v for v in new],
        band=band / (1 - band),
        rule=rule,
    )
    assert as_time.verdict == as_speed.verdict
    assert as_time.runs_used == as_speed.runs_used
    assert as_speed.change is not None
    assert as_time.change is not None
    assert math.isclose((1 + as_speed.change) * (1 + as_time.change), 1, rel_tol=1e-9)


@settings(deadline=None)
@given(metrics, baselines, runs, rules)
def test_a_judgement_agrees_with_itself(
    metric: str, baseline: list[float], new: list[float], rule: Rule
) -> None:
    judged = judge_performance(metric, baseline, new, rule=rule)
    assert judged.interval is not None
    assert judged.change is not None
    low, high = judged.interval
    assert low <= judged.change <= high
    assert 1 <= judged.runs_used <= min(len(new), rule.max_runs)
    undecided = judged.verdict == Verdict.INCONCLUSIVE
    assert judged.needs_more_runs == (undecided and len(new) < rule.max_runs)
    if undecided:
        assert judged.runs_used == min(len(new), rule.max_runs)
    loss_at_worst = -low if metric == "output_throughput" else high
    assert judged.band is not None
    passes = judged.verdict in (Verdict.PASS, Verdict.IMPROVEMENT)
    assert passes == (loss_at_worst < judged.band)


@settings(deadline=None)
@given(metrics, baselines, runs, rules)
def test_a_decision_stands_whatever_is_measured_after_it(
    metric: str, baseline: list[float], new: list[float], rule: Rule
) -> None:
    judged = judge_performance(metric, baseline, new, rule=rule)
    if judged.needs_more_runs or judged.verdict in (Verdict.PASS, Verdict.IMPROVEMENT):
        return
    for extra in (max(baseline) / 50, min(baseline) * 50):  # still in the same unit
        later = judge_performance(metric, baseline, [*new, extra], rule=rule)
        assert later.verdict == judged.verdict
        assert later.runs_used == judged.runs_used


def worsened(metric: str, value: float, loss: float) -> float:
    return value * math.exp(loss if METRICS[metric].direction == "lower" else -loss)


@st.composite
def curves(draw: st.DrawFn) -> tuple[list[list[float]], list[list[float]]]:
    """Fresh starts of both sides that measured the same points, each of its own size."""
    points = draw(st.integers(4, 6))
    sizes = [draw(st.floats(0.01, 1e4)) for _ in range(points)]
    start = st.lists(values, min_size=points, max_size=points)

    def drawn(starts: list[list[float]]) -> list[list[float]]:
        return [[size * x for size, x in zip(sizes, one, strict=True)] for one in starts]

    before = draw(st.lists(start, min_size=1, max_size=6))
    return drawn(before), drawn(draw(st.lists(start, min_size=1, max_size=5)))


Curves = tuple[list[list[float]], list[list[float]]]


@settings(deadline=None, max_examples=60)
@given(metrics, curves(), st.data(), rules)
def test_a_worse_point_never_betters_the_verdict_of_a_sweep(
    metric: str, curve: Curves, data: st.DataObject, rule: Rule
) -> None:
    before, new = curve
    worse = [[worsened(metric, x, data.draw(st.floats(0, 1))) for x in start] for start in new]
    healthy = judge_sweep(metric, before, new, rule=rule)
    hurt = judge_sweep(metric, before, worse, rule=rule)
    assert ORDER.index(hurt.verdict) >= ORDER.index(healthy.verdict)
    for judged in (healthy, hurt):
        assert judged.interval is not None
        assert judged.change is not None
        assert judged.interval[0] <= judged.change <= judged.interval[1]
