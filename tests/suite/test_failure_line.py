"""The short summary of pytest has one line for a test, in CI too."""

from pathlib import Path

import pytest
from test_road import make_suite


@pytest.mark.slow
def test_in_ci_the_short_summary_has_one_line_for_a_test(tmp_path: Path) -> None:
    """pytest repeats whole messages there when CI is set, and a table of numbers is long."""
    suite = make_suite(tmp_path)
    suite.environment["CI"] = "true"
    done = suite.run("perf_tests/test_accuracy.py", fault="no-result")
    assert done.status == 11, done.output
    summary = done.output.partition("short test summary info")[2]
    assert "FAILED perf_tests/test_accuracy.py::test_accuracy[standin-serve-sums]" in summary
    assert "rerun: " not in summary
    assert done.output.count("rerun: ") == 1
