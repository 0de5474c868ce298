"""docker: run the engine's programs in containers of its release image, on this machine.

Each program is a container of its own, the child of Docker's daemon and not of perfgate. What is
started here is `docker run`, under wardens as any program: signals, logs and exit statuses are as
with the local launcher. That no container outlives perfgate, a cleanup guard sees to.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.paths import machine_store
from perfgate.launchers.base import Job, Launcher, Placement, PlacementRequest, launcher
from perfgate.launchers.docker.argv import (
    HOST_NETWORK,
    LOOPBACK,
    ContainerSettings,
    handed_to_docker,
    run_words,
)
from perfgate.launchers.docker.containers import (
    START,
    DockerJob,
    call,
    docker,
    labels,
    meaning,
    new_name,
    of_start,
    remove,
    remove_orphans,
    server_version,
)
from perfgate.launchers.docker.image import DockerQuery, fetched, image_of
from perfgate.launchers.local.launcher import LocalLauncher, free_port, start_guard
from perfgate.launchers.site import DockerSite, load_site
from perfgate.scenarios.scenario import Scenario

POLITE_S = 5.0  # what a program may take to end by itself once perfgate is gone
SETTLE_S = 3.0  # a container that was being made when perfgate ended is there by then
GUARD_S = 120.0
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a network of the container's own
_SERVER = "server"
_KILLED = -9
_CLOCK_S = 3600.0  # the time of day may have been set back; a container's name is its own anyway


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

    def locations(self, here: Locations, scenario: Scenario, version: str | None) -> Locations:
        """As in `Launcher`: the engine's programs are in its image.

        Raises:
            InputError: no image is known, or the scenario runs on several nodes.
        """
        image = image_of(scenario, self._site, version)
        self._images[scenario.id] = image
        return replace(here, inside=DockerQuery(self._box(image, scenario, here)))

    def warnings(self, scenarios: Iterable[Scenario], version: str | None) -> tuple[str, ...]:
        """As in `Launcher`: the images that nobody named."""
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
        server = server_version()
        for orphan in remove_orphans():
            request.tell(f"removed {orphan}, whose perfgate process has ended")
        found = fetched(image, self._site, request.tell)
        docker_facts: Json = {**found, "network": self._site.network, "server": server}
        box = self._box(image, scenario, Locations.of_environment(), folder)
        start = uuid.uuid4().hex
        with self._kept(start, folder, request.tell):
            placement = DockerPlacement(self._local, box, start, {"docker": docker_facts})
            with closing(placement):
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

    @contextmanager
    def _kept(self, start: str, folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
        """A block whose containers are gone after it, and when perfgate is gone."""
        label = f"{START}={start}"
        pace = {"polite_s": POLITE_S, "settle_s": SETTLE_S}
        task = {"guards": "containers", "docker": docker(), "label": label, **pace}
        guard = start_guard(task, folder, "containers", GUARD_S)
        try:
            yield
        finally:
            try:
                remove(of_start(start))
            except (RunError, MissingProgram) as error:
                tell(f"containers may remain; the next run removes them: {error}")
            finally:
                guard.stop(0.0)


class DockerPlacement(Placement):
    """This machine; the server is reached over the loopback device alone.

    Args:
        local: starts `docker run`, and the programs that stay outside.
        box: what all containers have in common.
        start: marks the containers of this fresh start.
        facts: what the record says of the image.
    """

    host = LOOPBACK

    def __init__(
        self, local: LocalLauncher, box: ContainerSettings, start: str, facts: Mapping[str, Json]
    ) -> None:
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
        return LOOPBACK if self._network == HOST_NETWORK else _EVERYWHERE

    def start(self, command: Command, folder: Path, name: str) -> Job:
        if name != _SERVER:
            return self._run(command, folder, name, self._network)
        port = None if self._network == HOST_NETWORK else self._port
        self._server = self._run(command, folder, name, self._network, port)
        return self._server

    def start_client(self, command: Command, folder: Path, name: str) -> Job:
        return self._local.start(command, folder, name)

    def start_engine_client(self, command: Command, folder: Path, name: str) -> Job:
        network = self._network
        if network != HOST_NETWORK and self._server is not None:
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
        self._port = free_port(LOOPBACK)
        return self._port

    def close(self) -> None:
        """End what was not stopped."""
        for job in self._jobs:
            job.stop(0.0)

    def explained(self, error: RunError) -> RunError:
        """The error, or Docker's own words where a container could not be started or was full."""
        for job in self._jobs:
            if said := job.could_not_start:
                failure, hint = meaning(said)
                message = f"Docker could not start {job.name}"
                return RunError(failure, message, evidence=(said.strip(),), hint=hint)
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
            return bool(call(("events", *span, *which, "--format", "{{.Action}}")).strip())
        return False

    def _run(
        self, command: Command, folder: Path, name: str, network: str, port: int | None = None
    ) -> DockerJob:
        cwd = (command.cwd or folder).resolve()
        contained = replace(command, cwd=cwd)
        container, marks = new_name(name), labels(self._start)
        words = run_words(
            self._box, contained, container, os.environ, labels=marks, network=network, port=port
        )
        outside = replace(contained, argv=docker(*words), env=handed_to_docker(command))
        job = DockerJob(self._local.start(outside, folder, name), container, port)
        self._jobs.append(job)
        return job
