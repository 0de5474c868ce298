"""Entries of ``--benchmark-json``: one for each measured metric, its values one per fresh start.

pytest-benchmark times calls; how long a test took is no result here. So its fixture times nothing,
and the main process adds what the records of the run hold, which workers of pytest-xdist write too.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from pytest_benchmark.stats import Stats

from perfgate.campaign.resume import judgements_of, measured_of
from perfgate.core.errors import PerfgateError
from perfgate.core.metrics import lookup
from perfgate.gate.verdict import Judgement
from perfgate.suite.parametrize import named_in
from perfgate.suite.plugin import SESSION
from perfgate.verdicts.measured import MeasuredMetric

Record = Mapping[str, Any]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Add the entries before pytest-benchmark saves its own."""
    benchmarks = session.config.pluginmanager.getplugin("pytest-benchmark")
    run = session.config.stash[SESSION].run
    if benchmarks is not None and run is not None and not hasattr(session.config, "workerinput"):
        found: list[object] = []
        with contextlib.suppress(PerfgateError, OSError):  # the end of the session tells of it
            found += entries(run.records("verdict"))
        benchmarks.benchmarks += found or [NoEntry()]
    return (yield)


def entries(verdicts: Sequence[Record]) -> list["MetricEntry"]:
    """One entry per test and measured metric.

    Args:
        verdicts: the records of a run's verdicts.
    """
    found = []
    for line in verdicts:
        judged = {one.metric: one for one in reversed(judgements_of(line))}
        found += [MetricEntry(line, one, judged.get(one.metric)) for one in measured_of(line)]
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
        self, line: Record, measured: MeasuredMetric, judgement: Judgement | None = None
    ) -> None:
        self._line = line
        self._measured = measured
        self._judgement = judgement

    def __bool__(self) -> bool:
        return False

    @property
    def fullname(self) -> str:
        """The test's id and the metric."""
        return f"{self._line['test']} {self._measured.metric}"

    def as_dict(self, include_data: bool = True, **_others: object) -> dict[str, Any]:
        """The entry as plain values, in the format of pytest-benchmark.

        Args:
            include_data: whether the values of the single fresh starts are among them.
        """
        stats = Stats()
        for value in self._measured.values:
            stats.update(value)
        return {
            "group": self._line["scenario"],
            "name": self.fullname.rpartition("::")[2],
            "fullname": self.fullname,
            "params": None,
            "param": named_in(self._line["test"]),
            "extra_info": self._extra_info(),
            "options": {},
            "stats": {
                **stats.as_dict(),
                **({"data": stats.data} if include_data else {}),
                "iterations": 1,
            },
        }

    def _extra_info(self) -> dict[str, Any]:
        line, measured, judged = self._line, self._measured, self._judgement
        return {
            "metric": measured.metric,
            "unit": measured.unit,
            "direction": lookup(measured.metric).direction,
            "value": measured.value,
            "n": measured.n,
            "verdict": line["verdict"],
            "judgement": None
            if judged is None
            else {
                "verdict": judged.verdict.value,
                "baseline": judged.baseline,
                "change": judged.change,
                "interval": judged.interval,
                "band": judged.band,
                "against": judged.against,
            },
            "synthetic": line["synthetic"],
            "resumed_from": line.get("resumed_from"),
            "injected": line["injected"],
            "scenario": line["scenario"],
            "probe": line["probe"],
            "build": line.get("build"),
            "extra_options": line.get("extra_options", ""),
            "settings": line.get("settings", []),
            "compared_with": line["compared_with"],
        }
