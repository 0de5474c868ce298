"""srun: Slurm starts one rank per GPU, inside an allocation or in one of its own.

As in the DeepSeek-V3 example, section "Slurm", but for its ``bash -c "…"``: srun passes an argv on
as it is, while a shell string would have to be quoted and would put a shell before every rank. The
launcher slurm renders its steps here, too.

The container that Slurm runs programs in is that of the pyxis plugin. What is mounted there is the
folder that the command runs in, and not, as in the document, the one that a person keeps everything
in. The image is the scenario's on paper; in a run, image and mounts are the site's own: as its
environment says, or, with the launcher slurm, its file.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import SRUN
from perfgate.plan.container import with_mounts
from perfgate.plan.ranks import Ranks, hosts_for, of_each_rank
from perfgate.scenarios.scenario import Launch, Scenario

IMAGE = "PERFGATE_CONTAINER_IMAGE"
MOUNTS = "PERFGATE_CONTAINER_MOUNTS"
WORKDIR = "PERFGATE_CONTAINER_WORKDIR"
DOCUMENTED_WORKDIR = "/workspace"


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


def pyxis_options(
    image: str, mounts: Sequence[str], workdir: str | None, variables: Iterable[str]
) -> list[str]:
    """``--container-…`` of srun.

    Args:
        image: as enroot has it.
        mounts: ``SOURCE:TARGET[:ro]``; a source that begins with a dot is relative to srun's own
            working folder.
        workdir: the working folder; None: the image's own.
        variables: names of those that the command sets. Unnamed, the image's own value of one
            would win (`srun --help` of pyxis).
    """
    options = [f"--container-image={image}"]
    if mounts:
        options.append(f"--container-mounts={','.join(mounts)}")
    if workdir is not None:
        options += ["--container-workdir", workdir]
    if names := ",".join(variables):
        options.append(f"--container-env={names}")
    return options


def container_options(command: Command, scenario: Scenario, locations: Locations) -> list[str]:
    """The options for an engine's command; none where there is no container."""
    if locations.on_paper:
        if scenario.container is None:
            return []
        image, workdir = _as_enroot_has_it(scenario.container.image), DOCUMENTED_WORKDIR
        site: list[str] = []
    else:
        image = os.environ.get(IMAGE, "")
        if not image:
            return []
        workdir = os.environ.get(WORKDIR) or DOCUMENTED_WORKDIR
        site = [mount for mount in os.environ.get(MOUNTS, "").split(",") if mount]
    folders = () if locations.on_paper else locations.folders
    ours = [f"./:{workdir}", *(f"{folder}:{folder}" for folder in folders)]
    return pyxis_options(image, with_mounts(site, ours), workdir, command.env)


def _as_enroot_has_it(image: str) -> str:
    """A registry is set apart by ``#``; with a slash the name would be looked for at Docker Hub."""
    registry, slash, rest = image.partition("/")
    return f"{registry}#{rest}" if slash and "." in registry else image
