"""The container that Slurm runs ranks in: options of the pyxis plugin for srun.

As in the DeepSeek-V3 example, section "Slurm", but for the mount: there it is the folder that the
person keeps everything in, here the one that the command runs in. The image is the scenario's on
paper; in a run, image and mounts are the site's own, as its environment says.
"""

import os

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.scenarios.scenario import Scenario

IMAGE = "PERFGATE_CONTAINER_IMAGE"
MOUNTS = "PERFGATE_CONTAINER_MOUNTS"
WORKDIR = "PERFGATE_CONTAINER_WORKDIR"
DOCUMENTED_WORKDIR = "/workspace"


def container_options(command: Command, scenario: Scenario, locations: Locations) -> list[str]:
    """``--container-…`` of srun; none where there is no container."""
    if locations.on_paper:
        if scenario.container is None:
            return []
        image, workdir = _as_enroot_has_it(scenario.container.image), DOCUMENTED_WORKDIR
        mounts = f"./:{workdir}"
    else:
        image = os.environ.get(IMAGE, "")
        if not image:
            return []
        workdir = os.environ.get(WORKDIR) or DOCUMENTED_WORKDIR
        mounts = ",".join(_mounts(workdir, locations))
    options = [f"--container-image={image}", f"--container-mounts={mounts}"]
    options += ["--container-workdir", workdir]
    if command.env:
        # Without it the image's own value of a variable wins over ours (`srun --help` of pyxis).
        options.append("--container-env=" + ",".join(command.env))
    return options


def _as_enroot_has_it(image: str) -> str:
    """A registry is set apart by ``#``; with a slash the name would be looked for at Docker Hub."""
    registry, slash, rest = image.partition("/")
    return f"{registry}#{rest}" if slash and "." in registry else image


def _mounts(workdir: str, locations: Locations) -> list[str]:
    """The site's mounts, the folder of the run, and the folders that files are named from."""
    site = [mount for mount in os.environ.get(MOUNTS, "").split(",") if mount]
    targets = {[*mount.split(":"), mount][1] for mount in site}
    # A source that begins with a dot is relative to srun's working folder.
    ours = {workdir: f"./:{workdir}"}
    for folder in (locations.models, locations.datasets, locations.source):
        if folder is not None:
            ours[str(folder)] = f"{folder}:{folder}"
    return [*site, *(mount for target, mount in ours.items() if target not in targets)]
