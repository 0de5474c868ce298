"""Entries of ``--benchmark-json``: one for each measured metric, its values one per fresh start.

pytest-benchmark times calls; how long a test took is no result here. So its fixture times nothing,
and the main process adds what the records of the run hold, which workers of pytest-xdist write too.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from perfgate.core.errors import PerfgateError
from perfgate.core.measured import MeasuredMetric
from perfgate.core.verdict import Judgement
from perfgate.reports.formats.benchmark import benchmark_entry, full_name
from perfgate.runs.record import VerdictRecord
from perfgate.suite.session import SESSION


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Add the entries before pytest-benchmark saves its own."""
    benchmarks = session.config.pluginmanager.getplugin("pytest-benchmark")
    run = session.config.stash[SESSION].run
    if benchmarks is not None and run is not None and not hasattr(session.config, "workerinput"):
        found: list[object] = []
        with contextlib.suppress(PerfgateError, OSError):  # the end of the session tells of it
            found += entries(run.records_of(VerdictRecord))
        benchmarks.benchmarks += found or [NoEntry()]
    return (yield)


def entries(verdicts: Sequence[VerdictRecord]) -> list["MetricEntry"]:
    """One entry per test and measured metric.

    Args:
        verdicts: the records of a run's verdicts.
    """
    found = []
    for line in verdicts:
        judged = {one.metric: one for one in reversed(line.judgements)}
        found += [MetricEntry(line, one, judged.get(one.metric)) for one in line.measured]
    return found


class NoEntry:
    """In place of entries where nothing was measured: a file without any is written.

    Without it pytest-benchmark warns, which can end the session, and leaves an empty file. What has
    an error it leaves out.
    """

    has_error = True

    def __bool__(self) -> bool:
        return False


class MetricEntry:
    """One metric of one test, as pytest-benchmark takes an entry.

    It is false: the table and the comparison of pytest-benchmark are about seconds, of which less
    is better, and leave out what is false.
    """

    has_error = False

    def __init__(
        self, line: VerdictRecord, measured: MeasuredMetric, judgement: Judgement | None = None
    ) -> None:
        self._line = line
        self._measured = measured
        self._judgement = judgement

    def __bool__(self) -> bool:
        return False

    @property
    def fullname(self) -> str:
        """The test's id and the metric."""
        return full_name(self._line, self._measured)

    def as_dict(self, include_data: bool = True, **_others: object) -> dict[str, Any]:
        """The entry as plain values, in the format of pytest-benchmark.

        Args:
            include_data: whether the values of the single fresh starts are among them.
        """
        return benchmark_entry(
            self._line, self._measured, self._judgement, include_data=include_data
        )
