"""Unknown markers: a session whose ``-m`` is mistyped is told so, with what was meant."""

from collections.abc import Callable, Iterable, Mapping

import pytest

from perfgate.core.errors import PerfgateError
from perfgate.core.suggestion import did_you_mean
from perfgate.scenarios.marker_expression import parse


class UnknownMarkers:
    """Says which markers of a session's ``-m`` nobody knows.

    With ``--strict-markers`` before anything is collected, as wrong usage: pytest from 9.1 on would
    refuse them afterwards, when a run was opened, and crash with pytest-xdist 3.8. Else at the end.

    Args:
        expression: what ``-m`` says.
        declared: reads the markers of the suite; asked where pytest itself does not know one.
    """

    def __init__(self, expression: str, declared: Callable[[], Mapping[str, str]]) -> None:
        self._expression = expression
        self._declared = declared

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        config = session.config
        if hasattr(config, "workerinput") or not _is_strict(config):
            return
        if unknown := self._lines(config):
            raise pytest.UsageError("\n".join(unknown))

    def pytest_terminal_summary(
        self,
        terminalreporter: "pytest.TerminalReporter",  # pytest 8 has none
        config: pytest.Config,
    ) -> None:
        for line in self._lines(config):
            terminalreporter.write_line(f"perfgate: {line}", yellow=True)

    def _lines(self, config: pytest.Config) -> list[str]:
        return lines(self._expression, config.getini("markers"), self._declared)


def _is_strict(config: pytest.Config) -> bool:
    """Whether unknown markers are errors: by pytest 9's settings, or by pytest 8's option."""
    for setting in ("strict_markers", "strict"):
        try:
            given = config.getini(setting)
        except (KeyError, ValueError):  # pytest 8 does not have it
            continue
        if given is not None:
            return bool(given)
    return bool(getattr(config.option, "strict_markers", False))


def lines(
    expression: str, registered: Iterable[str], declared: Callable[[], Mapping[str, str]]
) -> list[str]:
    """A line for each marker of the expression that neither pytest nor the suite knows.

    Args:
        expression: what ``-m`` says; one that pytest refuses gives no line.
        registered: pytest's own lines, each a marker, its arguments and its meaning.
        declared: reads the markers of the suite.
    """
    known = {line.partition(":")[0].partition("(")[0].strip() for line in registered}
    try:
        names = parse(expression).names - known
        known |= declared().keys() if names else set()
    except PerfgateError:
        return []  # told elsewhere
    return [
        f"-m: no marker {name} is known; "
        + (did_you_mean(name, known) or "`pytest --markers` lists those that are")
        for name in sorted(names - known)
    ]
