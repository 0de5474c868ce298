import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS, Metric, accuracy_name, is_accuracy, lookup

UNITS = {"_ms": "ms", "_s": "s"}


def test_the_names_are_these() -> None:
    latencies = {
        f"{what}_{statistic}_ms"
        for what in ("ttft", "tpot", "itl", "e2el")
        for statistic in ("mean", "median", "p90", "p95", "p99")
    }
    assert set(METRICS) == latencies | {
        "request_throughput",
        "request_goodput",
        "output_throughput",
        "total_token_throughput",
        "output_throughput_per_gpu",
        "output_throughput_per_user",
        "output_speed_per_user",
        "mean_request_latency_ms",
        "duration_s",
        "acceptance_length",
        "draft_acceptance_rate",
        "server_cpu_s_per_1k_tokens",
    }


@each("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_unit_and_direction_go_with_its_name(metric: Metric) -> None:
    assert lookup(metric.name) is metric
    for suffix, unit in UNITS.items():
        if metric.name.endswith(suffix):
            assert metric.unit == unit
    faster_is_more = any(word in metric.name for word in ("throughput", "goodput", "speed"))
    if faster_is_more:
        assert metric.unit.endswith("/s")
    time_is_less = metric.unit in ("ms", "s")
    assert faster_is_more or time_is_less or metric.family.name == "acceptance"
    assert metric.direction == ("lower" if time_is_less else "higher")


@each("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_its_prior_and_band_are_fractions_that_one_run_can_tell_apart(metric: Metric) -> None:
    assert 0 < metric.family.sigma < 1
    if metric.family.band is not None:
        assert 2 * metric.family.sigma < metric.family.band < 1


def test_tails_of_latencies_never_gate_by_default() -> None:
    gating = {name for name, one in METRICS.items() if one.family.band is not None}
    assert not {name for name in gating if name.startswith(("ttft_p", "itl_p", "e2el_p"))}


def test_a_score_is_a_metric_too() -> None:
    name = accuracy_name("gsm8k", "exact_match", "strict-match")
    assert name == "accuracy:gsm8k:exact_match:strict-match"
    metric = lookup(name)
    assert (metric.name, metric.unit, metric.direction) == (name, "fraction", "higher")
    assert metric.family.name == "accuracy"
    assert metric.family.band == pytest.approx(0.02)
    assert "exact_match of gsm8k, filter strict-match" in metric.meaning


@each(
    "name", ["throughput", "", "accuracy:gsm8k", "accuracy:a:b:c:d", "accuracy:::", "TTFT_MEAN_MS"]
)
def test_an_unknown_name_lists_the_known(name: str) -> None:
    assert not is_accuracy(name)
    with pytest.raises(InputError, match="unknown metric") as caught:
        lookup(name)
    assert caught.value.found == name
    assert "accuracy:<task>:<metric>:<filter> or one of " in str(caught.value)
    assert "output_throughput, " in str(caught.value)
