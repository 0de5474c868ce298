"""Workers of pytest-xdist: a scenario's probes share servers, so they go to one worker.

Not done with xdist's own `--dist loadgroup`: it marks groups by renaming tests, which pytest 9.2
no longer lets it do (pytest-xdist 3.8).
"""

from collections.abc import Sequence
from typing import Any

from perfgate.probe import accuracy_probes, load_probes
from perfgate.scenarios.scenario import Scenario


def groups(scenarios: Sequence[Scenario]) -> dict[str, str]:
    """Probe id, as it stands between a test's brackets → its scenario's id."""
    return {
        probe.id: scenario.id
        for scenario in scenarios
        for probe in (*load_probes(scenario), *accuracy_probes(scenario))
    }


def scheduler_by_scenario(config: Any, log: Any, scenarios: Sequence[Scenario]) -> Any:
    """An xdist scheduler that sends all tests of a scenario to one worker."""
    from xdist.scheduler import LoadScopeScheduling

    group_of = groups(scenarios)

    class ByScenario(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            probe = nodeid.partition("[")[2].removesuffix("]")
            return group_of.get(probe, nodeid)

    return ByScenario(config, log)
