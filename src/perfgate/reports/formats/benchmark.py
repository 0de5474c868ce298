"""The report as pytest-benchmark's JSON, for trackers that plot it: of one run or several merged.

The same entries as `pytest --benchmark-json`. What a tracker makes of values that are no seconds is
in docs/reference/reports.md.
"""

from collections.abc import Mapping
from math import dist, sqrt
from statistics import fmean
from typing import Any

import pytest_benchmark
from pytest_benchmark.stats import Stats

from perfgate.core.measurement import MeasuredMetric
from perfgate.core.metrics import Metric
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Judgement
from perfgate.reports.figures import known
from perfgate.reports.formats.base import ReportFormat, indented, report_format
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.runs.record import VerdictRecord

Tested = VerdictRecord | TestResult
_OF_TEST = ("scenario", "probe", "synthetic", "extra_options", "compared_with")
_JUDGED = ("verdict", "baseline", "change", "interval", "band", "against")


def benchmark_entries(result: Tested) -> list[dict[str, Any]]:
    """An entry for each measured metric of a test, as plain values.

    Args:
        result: of the test.
    """
    if result.verdict is None:
        return []
    judged = {judgement.metric: judgement for judgement in reversed(result.judgements)}
    shared = {
        **{name: getattr(result, name) for name in _OF_TEST},
        "resumed_from": result.resumed_from or None,
        "injected": list(result.injected),
        "build": to_plain(result.build),
        "settings": list(result.settings),
    }
    return [_entry(result, one, judged.get(one.metric), shared) for one in result.measured]


def _entry(
    result: Tested, measured: MeasuredMetric, judged: Judgement | None, shared: Mapping[str, Any]
) -> dict[str, Any]:
    stats = Stats()
    stats.data = list(measured.values)
    stats.mean = mean = fmean(stats.data)  # it takes `Stats` three times as long
    n = len(stats.data)
    stats.stddev = dist(stats.data, [mean] * n) / sqrt(n - 1) if n > 1 else 0
    metric = known(measured.metric)
    fullname = f"{result.test} {measured.metric}"
    return {
        "group": _group(result, measured, metric),
        "name": fullname.rpartition("::")[2],
        "fullname": fullname,
        "params": None,
        "param": result.test.partition("[")[2].removesuffix("]"),
        "extra_info": {
            "metric": measured.metric,
            "unit": measured.unit,
            "direction": None if metric is None else metric.direction,
            "value": measured.value,
            "n": measured.n,
            "verdict": result.verdict.value if result.verdict else None,
            "judgement": judged and {name: getattr(judged, name) for name in _JUDGED},
            **shared,
        },
        "options": {},
        "stats": {**stats.as_dict(), "data": stats.data, "iterations": 1},
    }


def _group(result: Tested, measured: MeasuredMetric, metric: Metric | None) -> str:
    """``SCENARIO: METRIC [UNIT], more is better``: the title of a table of pytest-benchmark."""
    better = {"higher": ", more is better", "lower": ", less is better"}
    side = "" if metric is None else better[metric.direction]
    return f"{result.scenario}: {measured.metric} [{measured.unit}]{side}"


@report_format("benchmark")
class BenchmarkFormat(ReportFormat):
    """One entry for each measured metric of each test."""

    file = "benchmark.json"

    def text(self, report: RunReport) -> str:
        """The text, ended by a line end."""
        first = report.runs[0] if report.runs else None
        git: Mapping[str, Any] = {} if first is None else first.git
        machine: Mapping[str, Any] = {} if first is None else first.machine
        whole = {
            "machine_info": machine,
            "commit_info": git,
            "benchmarks": [
                entry for result in report.results for entry in benchmark_entries(result)
            ],
            "datetime": "" if first is None else first.started,
            "version": pytest_benchmark.__version__,
        }
        return indented(whole) + "\n"
