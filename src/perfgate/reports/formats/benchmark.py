"""The report as pytest-benchmark's JSON, for trackers that plot it: of one run or several merged.

The same entries as `pytest --benchmark-json`. What a tracker makes of values that are no seconds is
in docs/reference/reports.md.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest_benchmark

from perfgate.core.plain import to_plain
from perfgate.reports.benchmark_entry import benchmark_entry
from perfgate.reports.formats.base import ReportContext, ReportFormat, report_format
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.reports.shown import shown


@report_format("benchmark")
class BenchmarkFormat(ReportFormat):
    """One entry for each measured metric of each test."""

    file = "benchmark.json"

    def render(self, report: RunReport, context: ReportContext) -> str:  # noqa: ARG002
        """The text, ended by a line end."""
        report = shown(report)
        first = report.runs[0] if report.runs else None
        git: Mapping[str, Any] = {} if first is None else first.git
        machine: Mapping[str, Any] = {} if first is None else first.machine
        whole = {
            "machine_info": to_plain(machine),
            "commit_info": to_plain(git),
            "benchmarks": [entry for one in report.results for entry in _entries(one)],
            "datetime": "" if first is None else first.started,
            "version": pytest_benchmark.__version__,
        }
        return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _entries(result: TestResult) -> list[dict[str, Any]]:
    if result.verdict is None:
        return []
    judged = {one.metric: one for one in reversed(result.judgements)}
    return [benchmark_entry(result, one, judged.get(one.metric)) for one in result.measured]
