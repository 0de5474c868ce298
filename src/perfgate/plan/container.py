"""docker: run an engine's command in its release container, or in the one that is running.

As in the DeepSeek-R1 recipe, section "Run Docker Container", but for ``-it``: there is no terminal
to be interactive with. The launcher docker renders its calls here, too; only where things are, and
what keeps the container in perfgate's hands, is its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal

from perfgate.core.errors import InputError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import DOCKER
from perfgate.engines.base import EngineBuild, engine
from perfgate.plan.shell_text import HOME_CACHE
from perfgate.scenarios.scenario import Container, Scenario

# What holds the engine of a start: nothing, Docker, or Slurm's plugin.
Runtime = Literal["none", "docker", "pyxis"]

PUBLISHED = "127.0.0.1:8000:8000"
WORKDIR = "/workspace"


@dataclass(frozen=True)
class DockerRun:
    """A call of `docker run`; what is None or empty is left to Docker.

    Attributes:
        image: the image.
        name: the container's.
        gpus, ipc, network, user, workdir: as the options of that name take them.
        ports: published ones, ``[ADDRESS:]HERE:THERE``.
        mounts: ``SOURCE:TARGET[:ro]``; a relative source needs Docker 23.
        variables: name → None: the name alone is written, and Docker takes the value from its own
            environment. A value is written only where it is a constant of perfgate's own.
        options: further ones, last.
    """

    image: str
    name: str | None = None
    gpus: str | None = None
    ipc: str | None = None
    network: str | None = None
    user: str | None = None
    workdir: str | None = None
    ports: Sequence[str] = ()
    mounts: Sequence[str] = ()
    variables: Mapping[str, str | None] = field(default_factory=dict)
    options: Sequence[str] = ()

    def words(self, command: Command, *, greeted: bool = True) -> tuple[str, ...]:
        """The words that run `command`, without Docker's program itself.

        Args:
            command: named as in the container.
            greeted: whether the image's entry point runs first: it sets up libraries, and greets
                on standard output; so never where that is the result.
        """
        words = ["run", "--rm", *([f"--ipc={self.ipc}"] if self.ipc else [])]
        words += _option("--gpus", self.gpus) + _option("--network", self.network)
        words += _option("-p", *self.ports) + _option("--user", self.user)
        words += _option("-v", *self.mounts) + _option("-w", self.workdir)
        words += _option("--name", self.name)
        words += [*variable_words(self.variables), *self.options]
        program, *arguments = command.argv
        entry_points = {one.image.entry_point for one in engine.values() if one.image}
        if greeted and command.stdout is None and program not in entry_points:
            return (*words, self.image, program, *arguments)
        return (*words, "--entrypoint", program, self.image, *arguments)


def container_of(scenario: Scenario, build: EngineBuild) -> Container:
    """The container with this build: the scenario's, its tag moved to the build's release.

    Raises:
        InputError: the engine has no release container.
    """
    released = engine[build.name].image
    if released is None:
        known = ", ".join(sorted(name for name, one in engine.items() if one.image))
        raise InputError(
            f"no release container of {build.name} is known", expected=f"one of {known}"
        )
    if scenario.launch is not None:
        raise InputError(
            "ranks that are launched use a container of their own",
            found=f"launched by {scenario.launch.by}",
            hint="srun and sbatch take it from PERFGATE_CONTAINER_IMAGE; mpirun runs inside one",
        )
    documented = scenario.container
    name = build.name.replace("-", "_")
    if documented is not None and documented.name:
        name = documented.name
    if documented is not None and documented.image.partition(":")[0] != released.name:
        return Container(documented.image, name)
    return Container(released.of(build.version), name)


def contained(
    command: Command, container: Container, locations: Locations, published: str = PUBLISHED
) -> Command:
    """`command` in a container of its own, gone when it ends.

    The working folder is mounted, so that files are found by their relative names; so are the
    folders of models, datasets and sources, under their own paths.

    Args:
        command: a command whose programs are named as in the container.
        container: image and name.
        locations: where Docker and the folders are.
        published: the port of a server in the container, ``ADDRESS:HERE:THERE``.
    """
    cache = HOME_CACHE if locations.on_paper else str(Path(HOME_CACHE).expanduser())
    folders = (f"{folder}:{folder}" for folder in locations.folders)
    run = DockerRun(
        container.image,
        container.name,
        gpus="all",
        ipc="host",
        workdir=WORKDIR,
        ports=(published,),
        mounts=(f"{cache}:/root/.cache:rw", *folders, f".:{WORKDIR}"),
        variables=dict.fromkeys(command.env),
    )
    return replace(command, argv=(*locations.find(DOCKER), *run.words(command)))


def entered(
    command: Command, container: Container, locations: Locations, folder: PurePath
) -> Command:
    """`command` in the running container, in `folder` of the container's own working folder."""
    if container.name is None:
        raise ValueError("a container without a name cannot be entered")
    argv = [*locations.find(DOCKER), "exec", "-w", str(PurePosixPath(WORKDIR) / folder)]
    argv += [*variable_words(dict.fromkeys(command.env)), container.name]
    return replace(command, argv=(*argv, *command.argv))


def variable_words(variables: Mapping[str, str | None]) -> list[str]:
    """``-e`` for each, by name where it has no value: see `DockerRun`."""
    return _option(
        "-e",
        *(name if value is None else f"{name}={value}" for name, value in variables.items()),
    )


def with_mounts(mounts: Sequence[str], ours: Iterable[str]) -> list[str]:
    """The site's mounts, and those of ours whose target it mounts nothing at, each once."""
    taken = {_target(mount) for mount in mounts}
    return [*mounts, *(one for one in dict.fromkeys(ours) if _target(one) not in taken)]


def _target(mount: str) -> str:
    return [*mount.split(":"), mount][1]


def _option(name: str, *values: str | None) -> list[str]:
    """An option and its value, once for each value that there is."""
    return [word for value in values if value is not None for word in (name, value)]
