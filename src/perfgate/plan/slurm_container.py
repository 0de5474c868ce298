"""The container that Slurm runs programs in: options of the pyxis plugin for srun.

As in the DeepSeek-V3 example, section "Slurm", but for the mount: there it is the folder that the
person keeps everything in, here the one that the command runs in. The image is the scenario's on
paper; in a run, image and mounts are the site's own: as its environment says, or, with the launcher
slurm, its file.
"""

import os
from collections.abc import Iterable, Sequence

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.plan.container import with_mounts
from perfgate.scenarios.scenario import Scenario

IMAGE = "PERFGATE_CONTAINER_IMAGE"
MOUNTS = "PERFGATE_CONTAINER_MOUNTS"
WORKDIR = "PERFGATE_CONTAINER_WORKDIR"
DOCUMENTED_WORKDIR = "/workspace"


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
