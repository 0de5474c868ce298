"""Wrapping: a command as it reaches several nodes, or a container. Nothing is started here.

One module per way, each from a `Command` to a `Command`. The launcher starts what comes out.
"""

from collections.abc import Callable, Mapping

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.plan import mpirun, sbatch, srun
from perfgate.plan.ranks import Ranks, ranks_of
from perfgate.scenarios.scenario import Launch, Scenario

__all__ = ["wrapped"]

_Way = Callable[[Command, Scenario, Launch, Ranks, Locations], Command]

_WAYS: Mapping[str, _Way] = {
    "mpirun": mpirun.wrap,
    "srun": srun.wrap,
    "sbatch": sbatch.wrap,
}


def wrapped(command: Command, scenario: Scenario, locations: Locations) -> Command:
    """The engine's command as the scenario's document launches it; itself without a launch.

    Only what runs on the scenario's GPUs is wrapped, servers and benchmarks; clients, evaluators
    and the making of datasets run where perfgate runs. All nodes must see the folder that perfgate
    runs in, under the same path: files are named relative to it.

    Raises:
        InputError: the nodes are not known, or the GPUs do not spread evenly over them.
        MissingProgram: the launching program is not here (never on paper).
    """
    launch = scenario.launch
    if launch is None:
        return command
    return _WAYS[launch.by](command, scenario, launch, ranks_of(scenario), locations)
