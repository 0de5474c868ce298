"""Failure line: what pytest's short summary says of a test with a verdict.

In CI (``CI=true``) that summary repeats a failure's whole message, here a table of numbers.
"""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the first line of a verdict's message for the summary; the whole stands above it."""
    report = yield
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and any(name == "verdict" for name, _ in report.user_properties):
        crash.message = crash.message.partition("\n")[0]
    return report
