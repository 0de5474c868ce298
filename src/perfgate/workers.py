"""Workers of pytest-xdist: probes that share servers, or a claim's measurements, go to one worker.

Not done with xdist's own `--dist loadgroup`: it marks groups by renaming tests, which pytest 9.2
no longer lets it do (pytest-xdist 3.8).
"""

from collections.abc import Sequence
from typing import Any

from perfgate.probe import all_probes
from perfgate.scenarios.scenario import Claim, Scenario


def groups(scenarios: Sequence[Scenario], claims: Sequence[Claim] = ()) -> dict[str, str]:
    """Id of a probe or claim, as it stands between a test's brackets → name of its group.

    A group is named by a scenario; scenarios that a claim compares are in one.
    """
    group = {scenario.id: scenario.id for scenario in scenarios}
    for claim in claims:
        if claim.versus is not None:
            joined, into = group[claim.versus], group[claim.scenario]
            group = {name: into if one == joined else one for name, one in group.items()}
    of_probes = {
        probe.id: group[scenario.id] for scenario in scenarios for probe in all_probes(scenario)
    }
    return of_probes | {claim.id: group[claim.scenario] for claim in claims}


def scheduler_by_scenario(
    config: Any, log: Any, scenarios: Sequence[Scenario], claims: Sequence[Claim] = ()
) -> Any:
    """An xdist scheduler that sends all tests of a group to one worker."""
    from xdist.scheduler import LoadScopeScheduling

    group_of = groups(scenarios, claims)

    class ByScenario(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            probe = nodeid.partition("[")[2].removesuffix("]")
            return group_of.get(probe, nodeid)

    return ByScenario(config, log)
