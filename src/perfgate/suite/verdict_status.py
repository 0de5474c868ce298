"""Verdict status: verdicts that are no pass have letters and words of their own on the terminal."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass

import pytest

from perfgate.core.verdict import Verdict


@dataclass(frozen=True)
class _Status:
    """How pytest shows a verdict.

    Attributes:
        outcome: pytest's own outcome of such a test.
        letter: shown while the tests run.
        category: what the last line of a session counts it as.
    """

    outcome: str
    letter: str
    category: str


_STATUS: Mapping[object, _Status] = {
    Verdict.REGRESSION: _Status("failed", "R", "regression"),
    Verdict.INCONCLUSIVE: _Status("failed", "I", "inconclusive"),
    Verdict.ERROR: _Status("failed", "E", "error"),
    Verdict.NO_BASELINE: _Status("skipped", "b", "no baseline"),
    Verdict.NOT_COMPARABLE: _Status("skipped", "c", "not comparable"),
}


def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, str] | None:
    """Category, letter and word of a verdict that is no pass; None: as pytest shows it."""
    status = _status_of(report)
    if status is None:
        return None
    return status.category, status.letter, status.category.upper()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: "pytest.TerminalReporter",  # pytest 8 has none
) -> Generator[None, None, None]:
    """Have pytest list these tests with the failed and the skipped ones, but count them apart.

    Its section of failures and its short summary list reports by their category.
    """
    stats = terminalreporter.stats
    counted: dict[str, list[object]] = {}
    for status in _STATUS.values():
        reports = stats.get(status.category, [])
        own = [report for report in reports if _status_of(report) == status]
        if own:
            for category in (status.category, status.outcome):
                # An empty list of failures counts nothing, and keeps the last line red.
                counted.setdefault(category, stats.get(category, []))
            stats[status.category] = [report for report in reports if report not in own]
            stats[status.outcome] = [*stats.get(status.outcome, []), *own]
    yield
    stats.update(counted)


def _status_of(report: object) -> _Status | None:
    if not isinstance(report, pytest.TestReport) or report.when != "call":
        return None
    verdict = dict(report.user_properties).get("verdict")
    status = _STATUS.get(verdict)
    return status if status and status.outcome == report.outcome else None
