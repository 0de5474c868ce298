"""pytest-benchmark's JSON of a report: the session's own entries, read by pytest-benchmark."""

import json
import os
import subprocess
import sys
from pathlib import Path

from building import outcome
from run_reports import of_size
from sessions import ONLY_NEEDED_PLUGINS

from perfgate.reports.formats.benchmark import BenchmarkFormat, benchmark_entries
from perfgate.reports.run_report import report_of
from perfgate.suite.outputs import MetricEntry

TEST = "perf_tests/test_serving.py::test_serving[small-serve-c4]"
FACTS = {
    "id": "20261123-1",
    "started": "2026-11-23T01:00:00+00:00",
    "machine": {},
    "versions": {},
    "arguments": [],
    "git": {},
}


def test_the_entries_are_those_of_the_session() -> None:
    line = outcome(injected=("a=1",)).as_record(TEST)
    text = BenchmarkFormat().render(report_of(FACTS, [line]))
    own = json.loads(json.dumps([MetricEntry(one).as_dict() for one in benchmark_entries(line)]))
    assert len(own) == 2
    assert json.loads(text)["benchmarks"] == own


def test_pytest_benchmark_reads_the_file(tmp_path: Path) -> None:
    file = tmp_path / "0001_report.json"
    file.write_text(BenchmarkFormat().render(of_size(10)))
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", str(file), "--columns=mean,rounds"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **ONLY_NEEDED_PLUGINS},
    )
    assert done.returncode == 0, done.stderr
    assert "test_serving[b200-scenario-000-c1] output_throughput" in done.stdout


def test_trackers_find_what_they_read() -> None:
    held = json.loads(BenchmarkFormat().render(of_size(5)))
    assert {"machine_info", "commit_info", "benchmarks", "datetime", "version"} == held.keys()
    for one in held["benchmarks"]:
        assert one["fullname"].startswith("perf_tests/")
        assert {"mean", "median", "iqr", "stddev", "ops", "rounds"} <= one["stats"].keys()
    assert len({one["fullname"] for one in held["benchmarks"]}) == len(held["benchmarks"]) > 20
