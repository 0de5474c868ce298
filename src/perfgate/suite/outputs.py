"""Outputs: what pytest's own outputs say of the suite's tests.

Terminal: two lines before the first test, letters and words for verdicts that are no pass.

JUnit: pytest knows a failed test only as ``<failure>``. A reader of the file must tell a regression
from a test that has no number, and from one that is undecided: each has an element, or a type, of
its own. The file is rewritten and pytest's own plugin left alone, whose inside changes with its
release.

Benchmarks: an entry for each measured metric, its values one per fresh start. pytest-benchmark
times calls; how long a test took is no result here. So its fixture times nothing, and the main
process adds what the records of the run hold, which workers of pytest-xdist write too.
"""

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from perfgate.campaign.selection import scenarios_of
from perfgate.core.errors import PerfgateError
from perfgate.core.files.durable_files import write_text
from perfgate.core.files.paths import repository
from perfgate.core.verdict import Verdict
from perfgate.reports.formats.benchmark import benchmark_entries
from perfgate.reports.formats.junit import COUNTS, ELEMENTS, kind, message
from perfgate.runs.record import VerdictRecord
from perfgate.suite.selection import selected_by
from perfgate.suite.session import SESSION
from perfgate.suite.session_guard import usage_errors

# How pytest shows a verdict: its own outcome of such a test, the letter while the tests run, and
# the word in the last line of a session.
_SHOWN: Mapping[object, tuple[str, str, str]] = {
    Verdict.REGRESSION: ("failed", "R", "regression"),
    Verdict.INCONCLUSIVE: ("failed", "I", "inconclusive"),
    Verdict.ERROR: ("failed", "E", "error"),
    Verdict.NO_BASELINE: ("skipped", "b", "no baseline"),
    Verdict.NOT_COMPARABLE: ("skipped", "c", "not comparable"),
}


def pytest_report_collectionfinish(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> list[str]:
    """Scenarios, engines, references, launcher and gate repository; nothing for other tests."""
    selected = {item.nodeid: test for item in items if (test := selected_by(item))}
    if not selected or config.option.verbose < 0:
        return []
    session = config.stash[SESSION]
    scenarios = scenarios_of(selected).values()
    engines = sorted({scenario.engine.name for scenario in scenarios})
    references = sorted({scenario.gate.reference for scenario in scenarios})
    with usage_errors():
        compared = "A/B" if session.options.ab else ", ".join(references)
        return [
            f"perfgate: scenarios: {len(scenarios)}; engine: {', '.join(engines)}; "
            f"launcher: {session.option('--launcher')}; reference: {compared}",
            f"gate repository: {repository()}",
        ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the first line of a verdict's message for pytest's short summary.

    In CI (``CI=true``) that summary repeats a failure's whole message, here a table of numbers,
    which stands above it.
    """
    report = yield
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and any(name == "verdict" for name, _ in report.user_properties):
        crash.message = crash.message.partition("\n")[0]
    return report


def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, str] | None:
    """Category, letter and word of a verdict that is no pass; None: as pytest shows it."""
    if (shown := _shown(report)) is None:
        return None
    _, letter, category = shown
    return category, letter, category.upper()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: "pytest.TerminalReporter",  # pytest 8 has none
) -> Generator[None, None, None]:
    """Have pytest list these tests with the failed and the skipped ones, but count them apart.

    Its section of failures and its short summary list reports by their category.
    """
    stats = terminalreporter.stats
    counted: dict[str, list[object]] = {}
    for shown in _SHOWN.values():
        outcome, _, category = shown
        reports = stats.get(category, [])
        if own := [report for report in reports if _shown(report) == shown]:
            for name in (category, outcome):
                # An empty list of failures counts nothing, and keeps the last line red.
                counted.setdefault(name, stats.get(name, []))
            stats[category] = [report for report in reports if report not in own]
            stats[outcome] = [*stats.get(outcome, []), *own]
    yield
    stats.update(counted)


def _shown(report: object) -> tuple[str, str, str] | None:
    if not isinstance(report, pytest.TestReport) or report.when != "call":
        return None
    shown = _SHOWN.get(dict(report.user_properties).get("verdict"))
    return shown if shown and shown[0] == report.outcome else None


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
        for element, attribute in COUNTS.items():
            suite.set(attribute, str(len(suite.findall(f"testcase/{element}"))))
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
