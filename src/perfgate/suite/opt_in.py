"""Opt-in: templates are measured only by a session that asks for them; others are told how to."""

import re

import pytest

from perfgate.core.errors import PerfgateError
from perfgate.scenarios.marker_expression import parse
from perfgate.scenarios.markers import EXPLORE, OPT_IN_MARKERS
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.selection import left_out, left_out_lines, template_marker
from perfgate.suite.options import option_of
from perfgate.suite.parametrize import named_in, selected_by

_LEFT_OUT = "perfgate_left_out"  # what a worker of pytest-xdist tells the main process


class OptIn:
    """Deselects what was not asked for: by a marker of `-m`, `--shape`, `-k` or its test's id."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._markers = set(_named(config.option.markexpr))
        if option_of(config)("--shape"):
            self._markers.add(EXPLORE)
        self._words = re.findall(r"[^\s()]+", config.option.keyword or "")
        self._left_out: dict[str, str] = {}  # id of the scenario → the marker that asks for it

    @pytest.hookimpl(trylast=True)  # after `-m` and `-k`: only what these chose is told of
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        given = {named_in(word) for word in self._config.args if "::" in word}
        dropped = []
        for item in items:
            probe = selected_by(item)
            if probe is None or named_in(item.nodeid) in given:
                continue
            scenario = probe.scenario
            if left_out(scenario, self._markers) and not self._is_a_keyword(scenario):
                dropped.append(item)
                self._left_out[scenario.id] = template_marker(scenario)
        if dropped:
            gone = set(map(id, dropped))
            items[:] = [item for item in items if id(item) not in gone]
            self._config.hook.pytest_deselected(items=dropped)

    def pytest_sessionfinish(self) -> None:
        """Tell the main process what this worker left out."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_LEFT_OUT] = self._left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:  # noqa: ARG002
        """Learn from a worker what it left out."""
        self._left_out |= getattr(node, "workeroutput", {}).get(_LEFT_OUT, {})

    def pytest_terminal_summary(
        self,
        terminalreporter: "pytest.TerminalReporter",  # pytest 8 has none
    ) -> None:
        for line in left_out_lines(self._left_out):
            terminalreporter.write_line(f"perfgate: {line}")

    def _is_a_keyword(self, scenario: Scenario) -> bool:
        names = (scenario.id, *OPT_IN_MARKERS.intersection(scenario.markers))
        return any(name in word for word in self._words for name in names)


def _named(expression: str) -> frozenset[str]:
    """The markers that ``-m`` names; none of one that pytest refuses."""
    try:
        return parse(expression).names if expression else frozenset()
    except PerfgateError:
        return frozenset()
