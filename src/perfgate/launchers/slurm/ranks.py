"""Ranks in a Slurm job: a documented launch, by whatever program, as one srun of the job's own.

mpirun, srun and sbatch all come to the same processes: a rank per GPU under `trtllm-llmapi-launch`.
In a job of perfgate's, srun starts them: it knows the nodes, ends all ranks with one of them, and
needs neither ssh nor a second job.
"""

from collections.abc import Sequence
from dataclasses import replace

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import SRUN
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.script import gres_of, ranks_argv
from perfgate.plan.ranks import of_each_rank, ranks_of
from perfgate.plan.slurm_container import container_options
from perfgate.scenarios.scenario import Scenario


def as_ranks(
    command: Command,
    scenario: Scenario,
    locations: Locations,
    site: SlurmSite,
    nodes: Sequence[str],
) -> Command:
    """The engine's command as ranks on `nodes`; itself where its document launches none.

    What the document hands to every rank (`mpirun -x`) is in the environment of srun, and so in
    that of the ranks.

    Raises:
        InputError: the GPUs do not spread evenly over the nodes.
        MissingProgram: a program is not here (never on paper).
    """
    launch = scenario.launch
    if launch is None:
        return command
    ranks = ranks_of(scenario)
    command = replace(command, env={**launch.pass_on, **command.env})
    # The site's own container is added when the step is started, and its folder is known.
    other = [] if site.container is not None else container_options(command, scenario, locations)
    options = ranks_argv(nodes, ranks.per_node, gres_of(site, scenario.hardware), other)
    unseen = bool(other) or (site.container is not None and locations.inside is None)
    inner = of_each_rank(command, locations, in_container=unseen)
    return replace(command, argv=(*locations.find(SRUN), *options, *inner))
