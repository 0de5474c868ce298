"""What a fresh start adds to a measurement, makes of a place that is lost, and makes only once."""

import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import building
import psutil
import pytest
from refusals import refused
from small_server import small_server
from tables import each

from perfgate.campaign.builds.build import Build, build_under_test
from perfgate.campaign.builds.words import parse_injection
from perfgate.campaign.fresh_start import FreshStart, StartSetup, fresh_start, made_once
from perfgate.campaign.schedule import Start
from perfgate.campaign.session import Session
from perfgate.campaign.start_guard import PlaceCheck
from perfgate.clients.base import client
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.programs.command import Command, Step
from perfgate.core.programs.locations import Installation, Locations
from perfgate.core.programs.programs import MPIRUN
from perfgate.engines.base import Engine, EngineBuild
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.local.launcher import LocalLauncher, LocalPlacement
from perfgate.launchers.site import Site
from perfgate.machine.leases import Lease
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Hardware, Launch, Limits, LoadPoint

POINT = LoadPoint(concurrency=4, requests=16, warmup_requests=4, seed=1)


class Place(LocalPlacement):
    """A place whose server's node may be lost while it measures."""

    facts: Mapping[str, Any] = {"nodes": ["n1"]}
    lost = False

    def require(self) -> None:
        if self.lost:
            raise RunError("node_failed", "n1 failed")

    def explained(self, error: RunError) -> RunError:
        return RunError("node_failed", f"n1 failed; {error.message}") if self.lost else error


DIED = RunError("server_died", "server ended by itself")


@each(
    "lost, error, failure",
    [
        (False, None, ""),
        (False, DIED, "server_died: server ended"),
        (True, None, "node_failed: n1 failed"),
        (True, DIED, "node_failed: n1 failed; server ended"),
    ],
)
def test_a_lost_place_gives_no_measurement(tmp_path, monkeypatch, lost, error, failure) -> None:
    given = Measurement({"output_throughput": 800.0}, {"osl": 32})
    monkeypatch.setattr(FreshStart, "_measure", Mock(side_effect=error, return_value=given))
    request = PlacementRequest(SERVED, tmp_path, 60.0, print)
    place = Place(request, lambda *_: pytest.fail("nothing is started"))
    place.lost = lost
    start = FreshStart(setup(tmp_path, tools=None), place)
    if failure:
        refused(start.measure, Probe(building.SCENARIO, POINT), match=failure, error=RunError)
    else:
        facts = start.measure(Probe(building.SCENARIO, POINT)).facts
        assert facts == {"osl": 32, "nodes": ["n1"]}


class Serving(Engine):
    """An engine whose server is a few lines of Python."""

    name = "serving"
    check = Mock()
    build = Mock(return_value=EngineBuild("serving", "1.0", "1.0"))
    served_model = tokenizer = Mock(return_value="m")
    serve = Mock(side_effect=lambda scenario, build, endpoint, where: small_server(endpoint.port))
    model_facts = Mock(return_value={"sha256": "0" * 64})


SERVED = replace(building.SCENARIO, limits=Limits(30.0, 30.0, 60.0))
TOOLS = Toolchain(SERVED, Serving(), {"aiperf": client["aiperf"]()})


def setup(folder: Path, *, tools: Any = TOOLS, **changes: Any) -> StartSetup:
    """A start of the small server."""
    build = Build(SERVED, tools, LocalLauncher())
    start = StartSetup(
        build,
        folder / "start",
        folder,
        Start("new"),
        tell=Mock(),
        lease=Lease(),
        watch=None,
        check=Mock(),
        nodes=(),
        site=Site(),
    )
    return replace(start, **changes)


def test_a_port_that_another_program_took_first_is_left_to_it(tmp_path, monkeypatch) -> None:
    said, offered, free = [], [], LocalPlacement.free_port

    def offer(place: LocalPlacement) -> int:
        return offered.pop() if offered else free(place)

    monkeypatch.setattr(LocalPlacement, "free_port", offer)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        offered.append(taken)
        start = setup(tmp_path, tell=said.append)
        with fresh_start(start, load_probes(SERVED)) as found:
            assert found.target.endpoint.port != taken
        assert said == [f"port {taken} was taken before the server had it: another one"]
        offered += [taken, taken]
        start = setup(tmp_path / "second")
        assert failing(start, match=f"port {taken}").failure == "port_in_use"


def test_a_server_finds_the_programs_of_its_own_build_first(tmp_path) -> None:
    other = replace(TOOLS, locations=Locations(build=Installation(str(tmp_path / "old"))))
    with fresh_start(setup(tmp_path, tools=other), load_probes(SERVED)) as found:
        environment = psutil.Process(found.server.pid).environ()
    assert environment["PATH"].startswith(f"{tmp_path}/old/bin:")
    assert environment["PERFGATE_SCENARIO"] == SERVED.id


def failing(start: StartSetup, match: str) -> RunError:
    """What a start fails with."""
    with ExitStack() as stack:
        begun = fresh_start(start, load_probes(SERVED))
        error: RunError = refused(stack.enter_context, begun, match=match, error=RunError)
        return error


def test_a_place_that_will_not_do_gets_nothing_started(tmp_path) -> None:
    def refuse(_setup: StartSetup, placement) -> None:
        raise RunError("unfit_machine", f"{placement.host} is not fit")

    failing(setup(tmp_path, check=refuse), match="not fit")
    assert list((tmp_path / "start").iterdir()) == []


def test_the_ranks_are_tried_as_the_injected_scenario_launches_them(tmp_path, run, monkeypatch):
    """By a stand-in for mpirun that writes down its argv, and starts nothing."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" >&2\n")
    mpirun.chmod(0o755)
    monkeypatch.setenv(MPIRUN.variable, str(mpirun))
    scenario = replace(SERVED, hardware=Hardware("H200", 4, 2), launch=Launch("mpirun"))
    tools = replace(TOOLS, scenario=scenario, locations=Locations(hosts=("n1", "n2")))
    session = Session(run, building.MACHINE, LocalLauncher(), synthetic=True)
    build = build_under_test(tools, session, (parse_injection("launch.ssh_port=2233"),))
    check = PlaceCheck(Mock(), session).look
    failing(setup(tmp_path, build=build, check=check), match="0 of 4 ranks")
    assert "-p 2233" in (tmp_path / "start/ranks/ranks.err").read_text().split("\n")


def test_a_failed_command_of_the_site_gets_nothing_started(tmp_path) -> None:
    after = tmp_path / "after"
    site = Site(before=(("false",),), after=(("touch", str(after)),), file=Path("site.yaml"))
    told = r"site.yaml: before\[0\]: `false`: ended with status 1"
    failing(setup(tmp_path, check=pytest.fail, site=site), match=told)
    assert after.exists()


# Datasets, made once per call and used again by every fresh start. --------------------------------

STEP = Step("prepare_dataset", Command(("prepare", "--num-requests", "8")), "c4", "dataset.txt")


@pytest.fixture
def make(tmp_path: Path) -> Any:
    """Makes a step's file in a start's folder, or takes the kept one: what became of it."""

    def made(start: str, step: Step = STEP, store: Path = tmp_path / "store") -> str:
        folder = tmp_path / start
        folder.mkdir(parents=True, exist_ok=True)
        times = []

        def run() -> None:
            times.append(1)
            (folder / "dataset.txt").write_text("prompts")

        assert made_once(step, folder, store, run) is bool(times)
        assert (folder / "dataset.txt").read_text() == "prompts"
        return "made" if times else "kept"

    return made


def test_the_second_start_uses_what_the_first_made(tmp_path, make) -> None:
    assert [make("run/first"), make("run/second")] == ["made", "kept"]
    files = [tmp_path / "run" / one / "dataset.txt" for one in ("first", "second")]
    links = [file.is_symlink() or file.stat().st_nlink > 1 for file in files]
    assert links == [False, False], "which no pack takes"
    files[0].write_text("damaged")
    assert make("third") == "kept", "a program that writes into its dataset leaves the kept one"


def test_the_store_may_be_on_another_disk(tmp_path, make) -> None:
    store = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        if store.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("needs two file systems: /dev/shm is on that of the temporary files")
        assert [make("one", store=store), make("two", store=store)] == ["made", "kept"]
    finally:
        shutil.rmtree(store)


def test_a_store_that_is_full_is_told_and_keeps_nothing(tmp_path, make, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "move", full)
    error = refused(make, "first", match="disk_full: cannot write", error=RunError)
    assert "PERFGATE_HOME" in error.hint
    assert list((tmp_path / "store").iterdir()) == []


def test_another_call_makes_its_own_file(make) -> None:
    changes: list[dict[str, Any]] = [
        {"argv": ("prepare", "--num-requests", "9")},
        {"env": {"SEED": "2"}},
        {"files": {"config.yml": "a: 1"}},
    ]
    others = [replace(STEP, command=replace(STEP.command, **one)) for one in changes]
    assert [make("one", step) for step in (STEP, *others)] == ["made"] * 4
    nothing = replace(STEP, produces=None)
    assert [make("one", nothing) for _ in range(2)] == ["made"] * 2
