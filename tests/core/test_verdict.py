"""Which verdict a group of verdicts gets, and what a metric is."""

import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from building import applied
from plain_values import judge_performance
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS, Metric, accuracy_name, is_accuracy, lookup
from perfgate.core.verdict import MEANINGS, Verdict, verdict_of, worst
from perfgate.judging.rules.reasons import HOST_SHIFT_MEANING

ROOT = Path(__file__).parents[2]

NAMES = "REGRESSION ERROR NOT_COMPARABLE NO_BASELINE INCONCLUSIVE IMPROVEMENT PASS"
FROM_WORST = [Verdict(name) for name in NAMES.split()]


@each("position", range(len(FROM_WORST)))
def test_worst_is_the_first_in_precedence_whatever_the_order(position: int) -> None:
    group = FROM_WORST[position : position + 3]
    for order in permutations(group):
        assert worst(order) == FROM_WORST[position]


def test_a_waived_regression_counts_as_passed_and_hides_no_other() -> None:
    lost = judge_performance("output_throughput", [1000] * 5, [900, 900])
    waived = replace(lost, waiver=applied("known, until 2026-12-31"))
    assert verdict_of([lost]) == Verdict.REGRESSION
    assert verdict_of([waived]) == Verdict.PASS
    assert verdict_of([waived, lost]) == Verdict.REGRESSION
    for of_a_group in (verdict_of, worst):
        with pytest.raises(ValueError, match="empty"):  # which has not passed
            of_a_group([])


def test_the_words_of_every_verdict_are_those_of_the_docs() -> None:
    page = (ROOT / "docs" / "reference" / "verdicts.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| ([A-Z_]+) \| (.+?) \| [a-z ]+ \|$", page, re.MULTILINE))
    assert table == {verdict.value: MEANINGS[verdict] for verdict in Verdict}
    assert HOST_SHIFT_MEANING in " ".join(page.split())


# Metrics

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
