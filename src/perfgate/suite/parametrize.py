"""Parametrize: what each test function of the suite is run for, by the name of its parameter."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pytest

from perfgate.campaign.selection import Selected
from perfgate.campaign.suite_tests import markers_of_selected
from perfgate.clients.base import Offline, client
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.sweeps import SweepProbe, sweep_probes
from perfgate.scenarios.probe import Probe, accuracy_probes, load_probes, smoke_probes
from perfgate.scenarios.scenario import Scenario


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
