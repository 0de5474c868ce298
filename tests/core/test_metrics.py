import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS, Metric, accuracy_name, is_accuracy, lookup

UNITS = {"_ms": "ms", "_s": "s"}


@each("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_unit_and_direction_go_with_its_name_and_one_run_can_tell_its_band(metric: Metric) -> None:
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
    assert 0 < metric.family.sigma < 1
    if metric.family.band is not None:
        assert 2 * metric.family.sigma < metric.family.band < 1
        assert not metric.name.startswith(("ttft_p", "itl_p", "e2el_p"))  # tails never gate


def test_a_score_is_a_metric_too() -> None:
    name = accuracy_name("gsm8k", "exact_match", "strict-match")
    assert name == "accuracy:gsm8k:exact_match:strict-match"
    metric = lookup(name)
    assert (metric.name, metric.unit, metric.direction) == (name, "fraction", "higher")
    assert (metric.family.name, metric.family.band) == ("accuracy", pytest.approx(0.02))
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
