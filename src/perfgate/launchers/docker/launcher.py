"""docker: run the engine's programs in containers of its release image, on this machine.

Each program is a container of its own, the child of Docker's daemon and not of perfgate. What is
started here is `docker run`, under wardens as any program: signals, logs and exit statuses are as
with the local launcher. That no container outlives perfgate, a cleanup guard sees to.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.paths import machine_store
from perfgate.launchers.base import Launcher, Placement, PlacementRequest, launcher
from perfgate.launchers.docker.argv import ContainerSettings
from perfgate.launchers.docker.calls import docker, remove, server_version
from perfgate.launchers.docker.container_query import DockerQuery
from perfgate.launchers.docker.image import fetched, image_of
from perfgate.launchers.docker.ownership import START, of_start, remove_orphans
from perfgate.launchers.docker.placement import DockerPlacement
from perfgate.launchers.local.launcher import LocalLauncher, start_guard
from perfgate.launchers.site import DockerSite, load_site
from perfgate.scenarios.scenario import Scenario

POLITE_S = 5.0  # what a program may take to end by itself once perfgate is gone
SETTLE_S = 3.0  # a container that was being made when perfgate ended is there by then
GUARD_S = 120.0


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
        docker_facts: Json = {
            **fetched(image, self._site, request.tell),
            "network": self._site.network,
            "server": server,
        }
        box = self._box(image, scenario, Locations.of_environment(), folder)
        start = uuid.uuid4().hex
        with self._kept(start, folder, request.tell):
            placement = DockerPlacement(self._local, box, start, {"docker": docker_facts})
            with closing(placement):
                yield placement

    @property
    def _site(self) -> DockerSite:
        if self._given is None:
            self._given = load_site().docker
        return self._given

    def _box(
        self, image: str, scenario: Scenario, here: Locations, *folders: Path
    ) -> ContainerSettings:
        if self._site.cache is not None:
            # Docker would make it, as root's.
            Path(self._site.cache).expanduser().mkdir(parents=True, exist_ok=True)
        cache = machine_store() / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        mounted = (*folders, *here.folders, cache)
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
