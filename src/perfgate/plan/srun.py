"""srun: Slurm starts one rank per GPU, inside an allocation or in one of its own.

As in the DeepSeek-V3 example, section "Slurm", but for its ``bash -c "…"``: srun passes an argv on
as it is, while a shell string would have to be quoted and would put a shell before every rank. The
launcher slurm renders its steps here, too.
"""

from collections.abc import Sequence
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
    container = container_options(command, scenario, locations)
    inner = of_each_rank(command, locations, in_container=bool(container))
    # In a run the launcher keeps what srun prints: its log is what the parsers read.
    output = launch.output if locations.on_paper else None
    options = step_options(
        ranks,
        hosts_for(ranks, locations),
        mpi="pmix",
        gres=f"gpu:{ranks.per_node}",
        output=output,
        time_limit=launch.time_limit,
    )
    return replace(command, argv=(*locations.find(SRUN), *options, *container, *inner))


def step_options(
    tasks: Ranks,
    nodes: Sequence[str],
    *,
    mpi: str,
    gres: str | None = None,
    output: str | None = None,
    time_limit: str | None = None,
) -> list[str]:
    """Options of srun: so many tasks, and where.

    Args:
        tasks: how many, on how many nodes.
        nodes: these; empty: Slurm chooses.
        mpi: how ranks find each other: "pmix", or "none".
        gres: the GPUs of each node, as ``--gres`` takes them; None: those of the job.
        output: file of what the ranks print; None: srun prints it.
        time_limit: as ``--time`` takes it; None: the allocation's.
    """
    options = ["-N", str(tasks.nodes)]
    if nodes:
        options += ["-w", ",".join(nodes)]
    if output is not None:
        options.append(f"--output={output}")
    if time_limit is not None:
        options.append(f"--time={time_limit}")
    options += ["--ntasks", str(tasks.total), f"--ntasks-per-node={tasks.per_node}", f"--mpi={mpi}"]
    if gres is not None:
        options.append(f"--gres={gres}")
    return options
