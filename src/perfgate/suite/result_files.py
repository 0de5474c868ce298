"""Result files of pytest: what ``--junitxml`` and ``--benchmark-json`` say of the suite's tests.

JUnit: pytest knows a failed test only as ``<failure>``. A reader of the file must tell a regression
from a test that has no number, and from one that is undecided: each has an element, or a type, of
its own. The file is rewritten and pytest's own plugin left alone, whose inside changes with its
release.

Benchmarks: an entry for each measured metric, its values one per fresh start. pytest-benchmark
times calls; how long a test took is no result here. So its fixture times nothing, and the main
process adds what the records of the run hold, which workers of pytest-xdist write too.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from perfgate.core.durable_files import write_text
from perfgate.core.errors import PerfgateError
from perfgate.core.verdict import Verdict
from perfgate.reports.formats.benchmark import benchmark_entries
from perfgate.reports.formats.junit import COUNTS, ELEMENTS, count_elements, kind, message
from perfgate.runs.record import VerdictRecord
from perfgate.suite.session import SESSION


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Add entries before pytest-benchmark saves its own; fix JUnit's file once it is written."""
    if hasattr(session.config, "workerinput"):
        return (yield)
    benchmarks = session.config.pluginmanager.getplugin("pytest-benchmark")
    run = session.config.stash[SESSION].run
    if benchmarks is not None and run is not None:
        found: list[dict[str, Any] | None] = []
        with suppress(PerfgateError, OSError):  # the end of the session tells of it
            for record in run.records_of(VerdictRecord):
                found += benchmark_entries(record)
        benchmarks.benchmarks += map(MetricEntry, found or [None])
    yield
    rewrite_junit(session.config)


def rewrite_junit(config: pytest.Config) -> None:
    """Give the suite's tests the elements of their verdicts, where pytest wrote such a file."""
    path = getattr(config.option, "xmlpath", None)
    if path is None:
        return
    named = Path(os.path.expandvars(path)).expanduser()  # as pytest reads it
    file = config.invocation_params.dir / named
    if not file.is_file():  # a device or pipe, which nobody can read back
        return
    try:
        text = file.read_text(encoding="utf-8")
        if (changed := with_verdicts(text)) != text:
            write_text(file, changed)
    except (OSError, PerfgateError, ElementTree.ParseError) as error:
        # Raised here, it would end pytest in status 1, which means a regression.
        config.get_terminal_writer().line(
            f"perfgate: {file} is left as pytest wrote it, every failed test a <failure>: {error}",
            red=True,
        )


def with_verdicts(text: str) -> str:
    """The report with the elements of the verdicts; other tests stay as they are.

    Args:
        text: JUnit XML as pytest writes it.
    """
    root = ElementTree.fromstring(text)  # noqa: S314 (pytest wrote it in this session)
    if not any([_as_verdict(test) for test in root.iter("testcase")]):  # each of them
        return text
    for suite in root.iter("testsuite"):
        count_elements(suite)
    return '<?xml version="1.0" encoding="utf-8"?>' + ElementTree.tostring(root, encoding="unicode")


def _as_verdict(test: ElementTree.Element) -> bool:
    """Whether the test has a verdict, and an element that is now that of it."""
    known = {one.get("name"): one.get("value", "") for one in test.iter("property")}
    if not {"scenario", "probe", "summary"} <= known.keys() or known.get("verdict") not in ELEMENTS:
        return False
    verdict = Verdict(known["verdict"])
    for element in test:
        if element.tag in COUNTS:
            element.tag = ELEMENTS[verdict]
            element.set("type", kind(verdict))
            element.set("message", message(verdict, known["summary"]))
            return True
    return False


class MetricEntry:
    """One metric of one test, as pytest-benchmark takes an entry.

    One without values stands where nothing was measured: pytest-benchmark would warn, which can end
    the session, and leave an empty file. What has an error it leaves out. All entries are false:
    its table and its comparison are about seconds, of which less is better, and leave out what is
    false.

    Args:
        entry: of `benchmark_entries`; None: nothing was measured.
    """

    def __init__(self, entry: dict[str, Any] | None) -> None:
        self._entry = entry or {}
        self.has_error = entry is None
        self.fullname = self._entry.get("fullname")

    def __bool__(self) -> bool:
        return False

    def as_dict(self, include_data: bool = True, **_others: object) -> dict[str, Any]:
        """The entry as plain values, in the format of pytest-benchmark.

        Args:
            include_data: whether the values of the single fresh starts are among them.
        """
        left_out = () if include_data else ("data",)
        stats = {name: one for name, one in self._entry["stats"].items() if name not in left_out}
        return self._entry | {"stats": stats}
