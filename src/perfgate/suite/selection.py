"""Selection: the tests of a session: parameters, templates that are left out, unknown markers."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pytest

from perfgate.campaign.selection import Selected, markers_of_selected
from perfgate.clients.base import Offline, client
from perfgate.core.errors import PerfgateError
from perfgate.core.suggestion import did_you_mean
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.sweeps import SweepProbe, sweep_probes
from perfgate.scenarios.marker_expression import parse
from perfgate.scenarios.markers import EXPLORE, OPT_IN_MARKERS
from perfgate.scenarios.probe import Probe, accuracy_probes, load_probes, smoke_probes
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.selection import left_out, left_out_lines, template_marker
from perfgate.suite.options import option_of


def _served(scenario: Scenario) -> tuple[Probe, ...]:
    return () if _is_offline(scenario) else load_probes(scenario)


def _offline(scenario: Scenario) -> tuple[Probe, ...]:
    return load_probes(scenario) if _is_offline(scenario) else ()


def _is_offline(scenario: Scenario) -> bool:
    load = scenario.workload
    return load is not None and load.client in client and issubclass(client[load.client], Offline)


_OF_A_SCENARIO: Mapping[str, Callable[[Scenario], Sequence[Selected]]] = {
    "smoke_probe": smoke_probes,
    "load_probe": _served,
    "offline_probe": _offline,
    "sweep_probe": sweep_probes,
    "accuracy_probe": accuracy_probes,
}
_OF_CLAIMS = "claim_probe"
PARAMETERS = (*_OF_A_SCENARIO, _OF_CLAIMS)
_LEFT_OUT = "perfgate_left_out"  # what a worker of pytest-xdist reports to the main process


def parameters_of(
    name: str, scenarios: Sequence[Scenario], claims: Sequence[ClaimProbe]
) -> list[tuple[Selected, tuple[str, ...]]]:
    """What a test function with parameter `name` is run for, each with its markers."""
    tests: Iterable[Selected] = claims
    if name != _OF_CLAIMS:
        tests = (test for scenario in scenarios for test in _OF_A_SCENARIO[name](scenario))
    return [(test, markers_of_selected(test)) for test in tests]


def of_scenarios(scenarios: Sequence[Scenario]) -> Iterator[Selected]:
    """Everything about scenarios that a test can be run for, claims left out."""
    for scenario in scenarios:
        for found in _OF_A_SCENARIO.values():
            yield from found(scenario)


def named_in(test: str) -> str:
    """What stands between the brackets of a test's id: for a test of the suite, its parameter."""
    return test.partition("[")[2].removesuffix("]")


def named_among(
    tests: Iterable[str], scenarios: Sequence[Scenario], claims: Sequence[ClaimProbe]
) -> dict[str, Selected]:
    """The tests of the suite among `tests` → what each is about, by their ids alone."""
    known: dict[str, Selected] = {one.id: one for one in (*of_scenarios(scenarios), *claims)}
    return {test: known[named_in(test)] for test in tests if named_in(test) in known}


def selected_by(item: pytest.Item) -> Selected | None:
    """What a test of the suite measures or judges; None for any other test."""
    call = getattr(item, "callspec", None)
    if call is None:
        return None
    found = (call.params[name] for name in PARAMETERS if name in call.params)
    return next((one for one in found if isinstance(one, Probe | ClaimProbe | SweepProbe)), None)


def has_nothing(item: pytest.Item) -> bool:
    """Whether a test function of the suite got no parameter at all."""
    call = getattr(item, "callspec", None)
    named = call is not None and any(name in call.params for name in PARAMETERS)
    return named and selected_by(item) is None


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
    def pytest_testnodedown(self, node: object) -> None:
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
