"""srun: Slurm starts one rank per GPU, inside an allocation or in one of its own.

As in the DeepSeek-V3 example, section "Slurm", but for its ``bash -c "…"``: srun passes an argv on
as it is, while a shell string would have to be quoted and would put a shell before every rank.
"""

from dataclasses import replace

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import SRUN
from perfgate.plan.ranks import Ranks, hosts_for, of_each_rank
from perfgate.plan.slurm_container import container_options
from perfgate.scenarios.scenario import Launch, Scenario


def wrap(
    command: Command, scenario: Scenario, launch: Launch, ranks: Ranks, locations: Locations
) -> Command:
    """See `plan.wrapping.wrapped`. The command's variables reach the ranks as srun's own."""
    argv = [*locations.find(SRUN), "-N", str(ranks.nodes)]
    hosts = hosts_for(ranks, locations)
    if hosts:
        argv += ["-w", ",".join(hosts)]
    if launch.output is not None and locations.on_paper:
        # In a run the launcher keeps what srun prints: its log is what the parsers read.
        argv.append(f"--output={launch.output}")
    if launch.time_limit is not None:
        argv.append(f"--time={launch.time_limit}")
    argv += ["--ntasks", str(ranks.total), f"--ntasks-per-node={ranks.per_node}"]
    argv += ["--mpi=pmix", f"--gres=gpu:{ranks.per_node}"]
    container = container_options(command, scenario, locations)
    argv += container
    inner = of_each_rank(command, locations, in_container=bool(container))
    return replace(command, argv=(*argv, *inner))
