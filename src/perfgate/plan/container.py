"""docker: run an engine's command in its release container, or in the one that is running.

As in the DeepSeek-R1 recipe, section "Run Docker Container", but for ``-it``: there is no terminal
to be interactive with.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal

from perfgate.core.command import Command
from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.core.programs import DOCKER
from perfgate.core.secrets import is_secret
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import Container, Scenario

# What holds the engine of a start: nothing, Docker, or Slurm's plugin.
Runtime = Literal["none", "docker", "pyxis"]

RELEASES = "nvcr.io/nvidia/tensorrt-llm/release"
NAME = "tensorrt_llm"
PORT = 8000
WORKDIR = "/workspace"


def container_of(scenario: Scenario, build: EngineBuild) -> Container:
    """The container with this build: the scenario's, its tag moved to the build's release.

    Raises:
        InputError: the engine has no release container.
    """
    if build.name != "tensorrt-llm":
        raise InputError(
            f"no release container of {build.name} is known", expected="engine tensorrt-llm"
        )
    if scenario.launch is not None:
        raise InputError(
            "a run on several nodes brings its own container",
            found=f"launched by {scenario.launch.by}",
            hint="srun and sbatch take it from PERFGATE_CONTAINER_IMAGE; mpirun runs inside one",
        )
    documented = scenario.container
    name = NAME if documented is None else documented.name or NAME
    if documented is not None and documented.image.partition(":")[0] != RELEASES:
        return Container(documented.image, name)
    return Container(f"{RELEASES}:{build.version}", name)


def contained(
    command: Command, container: Container, locations: Locations, port: int = PORT
) -> Command:
    """`command` in a container of its own, gone when it ends.

    The working folder is mounted, so that files are found by their relative names; so are the
    folders of models, datasets and sources, under their own paths. The image's entry point greets
    on standard output: it is left out where standard output is the result.

    Args:
        command: a command whose programs are named as in the container.
        container: image and name.
        locations: where Docker and the folders are.
        port: where a server in the container listens, open on this machine under the same number.
    """
    cache = "~/.cache" if locations.on_paper else str(Path("~/.cache").expanduser())
    argv = [*locations.find(DOCKER), "run", "--rm", "--ipc=host", "--gpus", "all"]
    argv += ["-p", f"{port}:{port}", "-v", f"{cache}:/root/.cache:rw"]
    for folder in (locations.models, locations.datasets, locations.source):
        if folder is not None:
            argv += ["-v", f"{folder}:{folder}"]
    argv += ["-v", f".:{WORKDIR}", "-w", WORKDIR]  # a relative source needs Docker 23
    if container.name is not None:
        argv += ["--name", container.name]
    argv += _variables(command.env.items())
    program, *arguments = command.argv
    if command.stdout is None:
        argv += [container.image, program, *arguments]
    else:
        argv += ["--entrypoint", program, container.image, *arguments]
    return replace(command, argv=tuple(argv))


def entered(
    command: Command, container: Container, locations: Locations, folder: PurePath
) -> Command:
    """`command` in the running container, in `folder` of the container's own working folder."""
    if container.name is None:
        raise ValueError("a container without a name cannot be entered")
    argv = [*locations.find(DOCKER), "exec", "-w", str(PurePosixPath(WORKDIR) / folder)]
    argv += [*_variables(command.env.items()), container.name]
    return replace(command, argv=(*argv, *command.argv))


def _variables(variables: Iterable[tuple[str, str]]) -> list[str]:
    """``-e`` for each; of a secret the name alone: Docker takes its value from its environment."""
    argv = []
    for name, value in variables:
        argv += ["-e", name if is_secret(name) else f"{name}={value}"]
    return argv
