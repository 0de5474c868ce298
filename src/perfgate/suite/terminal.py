"""Terminal: what a session of the suite adds to pytest's own output.

Two lines before the first test, letters and words for verdicts that are no pass, and the end of the
run below pytest's own summary.
"""

from collections.abc import Generator, Mapping, Sequence

import pytest

from perfgate.core.paths import repository
from perfgate.core.verdict import Verdict
from perfgate.suite.selection import scenarios_of, selected_by
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
