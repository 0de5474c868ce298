"""docker: run the engine's programs in containers of its release image, on this machine.

Each program is a container of its own, the child of Docker's daemon and not of perfgate. What is
started here is `docker run`, under wardens as any program: signals, logs and exit statuses are as
with the local launcher. That no container outlives perfgate, a cleanup guard sees to.
"""

import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.files import json_text
from perfgate.core.files.paths import machine_store
from perfgate.core.measurement import Json
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.program_query import Answer, NoStatus, ask_here
from perfgate.engines.base import EngineBuild, engine
from perfgate.launchers.base import Job, Launcher, Placement, PlacementRequest, launcher
from perfgate.launchers.docker import containers
from perfgate.launchers.docker.containers import ContainerSettings, DockerJob
from perfgate.launchers.local.launcher import LocalLauncher, free_port, guarded, started
from perfgate.launchers.site import DockerSite, load_site
from perfgate.plan.container import container_of
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.scenario import Scenario

POLITE_S = 5.0  # what a program may take to end by itself once perfgate is gone
SETTLE_S = 3.0  # a container that was being made when perfgate ended is there by then
GUARD_S = 120.0
EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a network of the container's own
_SERVER = "server"
_KILLED = -9
_CLOCK_S = 3600.0  # the time of day may have been set back; a container's name is its own anyway
ENDED_S = 2.0
STARTED_S = 60.0  # beyond the program's own time: Docker makes a container first
TELL_EVERY_S = 30.0
_LAYER = re.compile(r"^[0-9a-f]{12}: (.*)$", re.MULTILINE)
_LAYER_IS_HERE = ("Pull complete", "Already exists")


@launcher("docker")
class DockerLauncher(Launcher):
    """Start the engine's programs in containers, and all others on this machine.

    Args:
        site: how this place runs containers; None: as the site's file says, read when first needed.
    """

    name = "docker"
    runtime = "docker"

    def __init__(self, site: DockerSite | None = None) -> None:
        self._given = site
        self._local = LocalLauncher()
        self._images: dict[str, str] = {}

    def locations(self, tools: Toolchain) -> Locations:
        """As in `Launcher`: the engine's programs are in its image.

        Raises:
            InputError: no image is known, or the scenario runs on several nodes.
        """
        scenario, here = tools.scenario, tools.locations
        image = image_of(scenario, self._site, tools.override.version)
        self._images[scenario.id] = image
        return replace(here, inside=DockerQuery(self._box(image, scenario, here)))

    def warnings(self, scenarios: Iterable[Scenario], version: str | None) -> tuple[str, ...]:
        """As in `Launcher`: of the images that nobody named."""
        if version is not None or self._site.image is not None:
            return ()
        images = set()
        for scenario in scenarios:
            with suppress(InputError):  # which the scenario's own tests report
                images.add(image_of(scenario, self._site, None))
        return tuple(
            f"--launcher docker starts {image}, the release of the document, as no other is named: "
            "docker.image in site.yaml, or --engine-version, names the build under test"
            for image in sorted(images)
        )

    def with_image(self, image: str) -> "DockerLauncher":
        """As in `Launcher`; what it remembers of images is its own."""
        return DockerLauncher(replace(self._site, image=image))

    @contextmanager
    def placed(self, request: PlacementRequest) -> Iterator[Placement]:
        scenario, folder = request.scenario, request.folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        image = self._images.get(scenario.id) or image_of(scenario, self._site, None)
        server = containers.server_version()
        for orphan in containers.remove_orphans():
            request.tell(f"removed {orphan}, whose perfgate process has ended")
        found = fetched(image, self._site, request.tell)
        network = self._site.network
        box = self._box(image, scenario, Locations.of_environment(), folder)
        start = uuid.uuid4().hex

        def clean_up() -> None:
            try:
                containers.remove(containers.of_start(start))
            except (RunError, MissingProgram) as error:
                request.tell(f"containers may remain; the next run removes them: {error}")

        label = f"{containers.START}={start}"
        pace = {"polite_s": POLITE_S, "settle_s": SETTLE_S}
        task = {"guards": "containers", "docker": containers.docker(), "label": label, **pace}
        facts: Mapping[str, Json] = {"docker": {**found, "network": network, "server": server}}
        placement = DockerPlacement(request, self._local, box, start, facts)
        with guarded(task, folder, "containers", GUARD_S, clean_up), closing(placement):
            yield placement

    @cached_property
    def _site(self) -> DockerSite:
        return self._given or load_site().docker

    def _box(
        self, image: str, scenario: Scenario, here: Locations, *folders: Path
    ) -> ContainerSettings:
        ours, cache = machine_store() / "cache", self._site.cache
        for one in (ours, *([] if cache is None else [Path(cache).expanduser()])):
            one.mkdir(parents=True, exist_ok=True)  # Docker would make it, as root's
        mounted = (*folders, *here.folders, ours)
        return ContainerSettings(image, self._site, scenario.hardware.gpu != "none", mounted)


class DockerPlacement(Placement):
    """This machine; the server is reached over the loopback device alone.

    Args:
        request: the start.
        local: starts `docker run`, and the programs that stay outside.
        box: what all containers have in common.
        start: marks the containers of this fresh start.
        facts: what the record says of the image.
    """

    host = containers.LOOPBACK

    def __init__(
        self,
        request: PlacementRequest,
        local: LocalLauncher,
        box: ContainerSettings,
        start: str,
        facts: Mapping[str, Json],
    ) -> None:
        self.request = request
        self._local = local
        self._box = box
        self._start = start
        self._port: int | None = None
        self._server: DockerJob | None = None
        self._jobs: list[DockerJob] = []
        self._began = time.time()
        self.facts = facts

    @property
    def binds(self) -> str:
        return containers.LOOPBACK if self._network == containers.HOST_NETWORK else EVERYWHERE

    def start(self, command: Command, folder: Path, name: str) -> Job:
        if name != _SERVER:
            return self._run(command, folder, name, self._network)
        port = None if self._network == containers.HOST_NETWORK else self._port
        self._server = self._run(command, folder, name, self._network, port)
        return self._server

    def start_client(self, command: Command, folder: Path, name: str) -> Job:
        return self._local.start(command, folder, name)

    def start_engine_client(self, command: Command, folder: Path, name: str) -> Job:
        network = self._network
        if network != containers.HOST_NETWORK and self._server is not None:
            network = f"container:{self._server.container}"  # the server's own loopback device
        return self._run(command, folder, name, network)

    def free_port(self) -> int:
        if self._network == "none" or self._network.startswith("container:"):
            raise InputError(
                "a server in this network cannot be reached",
                field="docker.network",
                found=self._network,
                expected="host, bridge or a network of your own",
            )
        self._port = free_port(containers.LOOPBACK)
        return self._port

    def close(self) -> None:
        """End what was not stopped."""
        for job in self._jobs:
            job.stop(0.0)

    def explained(self, error: RunError) -> RunError:
        """The error, or Docker's own words where a container could not be started or was full."""
        for job in self._jobs:
            if said := job.could_not_start:
                return containers.refused(f"Docker could not start {job.name}", said)
        for job in self._jobs:
            ended = job.poll()
            if ended is not None and ended.status == _KILLED and self._was_full(job):
                message = f"{job.name} was killed: its container ran out of memory"
                hint = "raise or leave out --memory among docker.options in site.yaml"
                return RunError("oom", message, evidence=error.evidence, hint=hint)
        return error

    @property
    def _network(self) -> str:
        return self._box.site.network

    def _was_full(self, job: DockerJob) -> bool:
        """Whether Docker saw the container at its limit of memory; it remembers for a while."""
        since = self._began - _CLOCK_S
        span = ("--since", f"{since:.0f}", "--until", f"{time.time() + 1:.0f}")
        which = ("--filter", f"container={job.container}", "--filter", "event=oom")
        with suppress(RunError, MissingProgram):
            seen = containers.call(("events", *span, *which, "--format", "{{.Action}}"))
            return bool(seen.strip())
        return False

    def _run(
        self, command: Command, folder: Path, name: str, network: str, port: int | None = None
    ) -> DockerJob:
        cwd = (command.cwd or folder).resolve()
        contained = replace(command, cwd=cwd)
        container, marks = containers.new_name(name), containers.labels(self._start)
        words = containers.run_words(
            self._box, contained, container, os.environ, labels=marks, network=network, port=port
        )
        outside = replace(
            contained, argv=containers.docker(*words), env=containers.handed_to_docker(command)
        )
        job = DockerJob(self._local.start(outside, folder, name), container, port)
        self._jobs.append(job)
        return job


def image_of(scenario: Scenario, site: DockerSite, version: str | None) -> str:
    """The image for a scenario: the site's, else that of the engine's release.

    Args:
        scenario: the scenario.
        site: may name an image for all.
        version: the release, as a person says it; None: the document's.

    Raises:
        InputError: its document launches ranks; or no image is known.
    """
    if scenario.launch is not None:
        raise InputError(
            "--launcher docker starts no ranks",
            file=scenario.file,
            field=f"{scenario.id}.launch.by",
            found=f"launched by {scenario.launch.by}",
            hint="use --launcher slurm, whose containers site.yaml names, or mpirun inside one",
        )
    if site.image is not None:
        return site.image
    version = version or scenario.source.engine_version
    if engine[scenario.engine.name].image is None or version is None:
        raise InputError(
            "no image is known for the engine",
            file=scenario.file,
            field=f"{scenario.id}.engine",
            found=f"{scenario.engine.name}, release unknown",
            expected="an engine with release containers and a release, or an image by name",
            hint="give --engine-version, or docker.image in site.yaml",
        )
    return container_of(scenario, EngineBuild(scenario.engine.name, version, version)).image


def fetched(image: str, site: DockerSite, tell: Callable[[str], None]) -> dict[str, Json]:
    """What the image is exactly; it is pulled first where it is not here.

    Args:
        image: its name.
        site: says how long pulling may take.
        tell: says how far it is.

    Raises:
        RunError: it cannot be had, or Docker does not answer.
        MissingProgram: Docker is not here.
    """
    found = _inspected(image)
    if found is None:
        _pull(image, site.pull_s, tell)
        found = _inspected(image)
    if found is None:
        raise RunError("config_error", f"the image {image} was pulled and is not here")
    digests = [str(one) for one in found.get("RepoDigests") or []]
    return {"image": image, "id": str(found.get("Id")), "digests": [*digests]}


def _inspected(image: str) -> dict[str, Any] | None:
    """What Docker knows of an image; None: it is not here."""
    answer = ask_here(containers.docker("image", "inspect", image), containers.CALL_S)
    if answer.is_good:
        try:
            (found,) = json_text.parse(answer.stdout)
        except ValueError as error:
            raise RunError("config_error", f"docker image inspect gave no JSON: {error}") from error
        return dict(found)
    if re.search(r"no such image", answer.stderr, re.IGNORECASE):
        return None
    raise containers.trouble("docker image inspect failed", answer)


def _pull(image: str, within_s: float, tell: Callable[[str], None]) -> None:
    with started(containers.docker("pull", image), "pull") as job:
        tell(f"pulling {image}")
        reported = time.monotonic()

        def progress() -> None:
            nonlocal reported
            if time.monotonic() - reported >= TELL_EVERY_S:
                reported = time.monotonic()
                said = _LAYER.findall(job.stdout.read_text(errors="replace"))
                layers = sum(one.startswith("Pulling fs layer") for one in said)
                here = sum(one.startswith(_LAYER_IS_HERE) for one in said)
                tell(f"pulling {image}: {here} of {max(layers, here)} layers are here")

        ended = job.wait(total_s=within_s, watch=progress)
        said = job.tail(8)
    if ended.reason == "total":
        why = f"the image {image} was not pulled in {within_s:g} s"
        hint = "pull it by hand, or raise docker.pull_s in site.yaml"
        raise RunError("config_error", why, evidence=said[-3:], hint=hint)
    if ended.status != 0:
        by_hand = f"pull it by hand: docker pull {image}"
        why = f"the image {image} could not be pulled"
        raise containers.refused(why, "\n".join(said), by_hand)


@dataclass(frozen=True)
class DockerQuery:
    """The image of a scenario, each question in a container of its own. See `ContainerQuery`."""

    box: ContainerSettings

    def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
        """As in `ContainerQuery`; the image is pulled first where it is not here."""
        _have(self.box)
        name = containers.new_name()
        words = containers.run_words(
            self.box, Command(argv), name, os.environ, labels=containers.labels(name), greeted=False
        )
        with started(containers.docker(*words), "asked") as run, DockerJob(run, name) as job:
            if (ended := job.until(seconds + STARTED_S)) is None:
                job.stop(ENDED_S)
                why = f"no answer from {argv[0]} within {seconds:g} s"
                return Answer(None, why=why, cause=NoStatus.TOO_LONG)
            output, errors = (log.read_text(errors="replace") for log in (job.stdout, job.stderr))
        answer = Answer(ended.status, output, errors)
        is_failed = ended.status == containers.DAEMON_FAILED
        if is_failed and containers.not_started(ended.status, answer.stderr):
            raise containers.trouble(f"no container of {self.box.image} could be started", answer)
        return answer


@lru_cache(maxsize=16)
def _have(box: ContainerSettings) -> None:
    fetched(box.image, box.site, lambda _: None)  # before a start nobody is told of anything
