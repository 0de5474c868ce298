"""What a fresh start adds to a client's measurement, and makes of a place that is lost."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import pytest
from small_server import small_server

from perfgate.campaign.fresh_start import FreshStart, StartSetup, fresh_start
from perfgate.clients.base import client
from perfgate.core.command import Command
from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json, Measurement
from perfgate.engines.base import Endpoint, Engine, EngineBuild
from perfgate.launchers.base import Placement, PlacementRequest
from perfgate.launchers.local.launcher import LocalLauncher, LocalPlacement
from perfgate.launchers.site import Site
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Limits, LoadPoint, Scenario

POINT = LoadPoint(concurrency=4, requests=16, warmup_requests=4, seed=1)


class Lost(LocalPlacement):
    """A place whose server's node is lost while it measures."""

    facts: Mapping[str, Json] = {"nodes": ["n1"]}

    def __init__(self, *, lost: bool) -> None:
        super().__init__(lambda *_: pytest.fail("nothing is started"))
        self.lost = lost

    def require(self) -> None:
        if self.lost:
            raise RunError("node_failed", "n1 failed")

    def explained(self, error: RunError) -> RunError:
        return RunError("node_failed", f"n1 failed; {error.message}") if self.lost else error


class Measuring(FreshStart):
    """A start that measures, or fails, without any program."""

    error: RunError | None = None

    def _measure(self, probe: Probe, folder: Path) -> Measurement:
        if self.error:
            raise self.error
        return Measurement({"output_throughput": 800.0}, {"osl": 32})


def start_on(placement: Lost, folder: Path, error: RunError | None = None) -> Measuring:
    tools: Any = None
    place = StartSetup(LocalLauncher(), folder, folder)
    start = Measuring(building.SCENARIO, tools, place, placement)
    object.__setattr__(start, "error", error)
    return start


def test_a_measurement_says_where_it_was_made(tmp_path: Path) -> None:
    start = start_on(Lost(lost=False), tmp_path)
    measured = start.measure(Probe(building.SCENARIO, POINT))
    assert measured.facts == {"osl": 32, "nodes": ["n1"]}


@pytest.mark.parametrize("error", [None, RunError("server_died", "server ended by itself")])
def test_what_a_lost_place_gave_is_no_measurement_and_no_failure_of_the_engine(
    tmp_path: Path, error: RunError | None
) -> None:
    start = start_on(Lost(lost=True), tmp_path, error)
    with pytest.raises(RunError, match="n1 failed") as caught:
        start.measure(Probe(building.SCENARIO, POINT))
    assert caught.value.failure == "node_failed"


def test_a_failure_on_a_place_that_is_well_stays_what_it_is(tmp_path: Path) -> None:
    error = RunError("server_died", "server ended by itself")
    start = start_on(Lost(lost=False), tmp_path, error)
    with pytest.raises(RunError) as caught:
        start.measure(Probe(building.SCENARIO, POINT))
    assert caught.value is error


class Serving(Engine):
    """An engine whose server is a few lines of Python."""

    name = "serving"

    def check(self, *_: object) -> None: ...

    def build(self, *_: object) -> EngineBuild:
        return EngineBuild("serving", "1.0", "1.0")

    def served_model(self, *_: object) -> str:
        return "m"

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        return small_server(endpoint.port)

    def tokenizer(self, *_: object) -> str:
        return "m"

    def model_facts(self, *_: object) -> Mapping[str, Json]:
        return {"sha256": "0" * 64}


class Offering(LocalLauncher):
    """This machine, where the first free ports are those it is told."""

    def __init__(self, *ports: int) -> None:
        super().__init__()
        self.ports = list(ports)

    @contextmanager
    def placed(self, wanted: PlacementRequest) -> Iterator[Placement]:
        launcher = self

        class There(LocalPlacement):
            def free_port(self) -> int:
                return launcher.ports.pop(0) if launcher.ports else super().free_port()

        yield There(self.start)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def served_by(launcher: Offering, folder: Path, said: list[str]) -> Endpoint:
    """Start the small server by the launcher; where it was when it was ready."""
    scenario = replace(building.SCENARIO, limits=Limits(30.0, 30.0, 60.0))
    tools = Toolchain(scenario, Serving(), {"aiperf": client["aiperf"]()})
    place = StartSetup(launcher, folder / "start", folder, tell=said.append)
    with fresh_start(scenario, tools, place, load_probes(scenario)) as start:
        assert start.target is not None
        return start.target.endpoint


def test_a_port_that_another_program_took_first_is_left_to_it(tmp_path: Path, taken: int) -> None:
    said: list[str] = []
    found = served_by(Offering(taken), tmp_path, said)
    assert found.port != taken
    assert said == [f"port {taken} was taken before the server had it: another one"]


def test_two_taken_ports_are_an_error_that_names_the_last(tmp_path: Path, taken: int) -> None:
    with pytest.raises(RunError, match=f"port {taken}") as caught:
        served_by(Offering(taken, taken), tmp_path, [])
    assert caught.value.failure == "port_in_use"


def started(folder: Path, **changes: Any) -> None:
    tools = Toolchain(building.SCENARIO, Serving(), {"aiperf": client["aiperf"]()})
    place = StartSetup(Offering(), folder / "start", folder, **changes)
    with fresh_start(building.SCENARIO, tools, place, load_probes(building.SCENARIO)):
        pytest.fail("it was started")


def test_a_place_that_will_not_do_gets_nothing_started(tmp_path: Path) -> None:
    def refuse(placement: Placement) -> None:
        raise RunError("unfit_machine", f"{placement.host} is not fit")

    with pytest.raises(RunError, match="not fit"):
        started(tmp_path, check=refuse)
    assert list((tmp_path / "start").iterdir()) == []


def test_a_failed_command_of_the_site_gets_nothing_started(tmp_path: Path) -> None:
    after = tmp_path / "after"
    site = Site(before=(("false",),), after=(("touch", str(after)),), file=Path("site.yaml"))
    told = r"site.yaml: before\[0\]: `false`: ended with status 1"
    with pytest.raises(RunError, match=told):
        started(tmp_path, check=pytest.fail, site=site)
    assert after.exists()
