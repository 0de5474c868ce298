"""The place of a start is looked at and written down, its GPUs are leased, its load is watched."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import building
import pytest
from plain_records import recorded
from tables import each

from perfgate.campaign import start_guard
from perfgate.campaign.fresh_start import FreshStart, StartSetup
from perfgate.campaign.schedule import StartRole
from perfgate.campaign.session import Session
from perfgate.campaign.start_guard import (
    PlaceCheck,
    guarded,
    leased,
    look_at,
    measure_guarded,
    watch_start,
)
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.programs import TENSORRT_LLM_PYTHON
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.judging.assembly.references import References
from perfgate.launchers.base import Launcher
from perfgate.launchers.local.launcher import LocalLauncher, LocalPlacement
from perfgate.launchers.site import Site
from perfgate.machine.conditions.conditions import Conditions, CpuConditions, not_watched
from perfgate.machine.conditions.watch import NodesWatch, Watch
from perfgate.machine.hardware import Machine
from perfgate.machine.leases import Device, GpuPool, Lease
from perfgate.machine.leases.devices import Devices
from perfgate.machine.preflight import Check, PreflightReport
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import AccuracyTask, Hardware, Launch, LoadPoint

WELL = Check("ports", "ok", "28,000 free")
FULL = Check("run folder", "failed", "0.1 GiB free", hint="choose another folder with --run-dir")
H200 = building.machine("NVIDIA H200", "NVIDIA H200")
TOOLS = Toolchain(building.SCENARIO, engine=None)  # type: ignore[arg-type]
RANKED = Toolchain(replace(building.SCENARIO, launch=Launch("mpirun")), engine=TensorRTLLM())
FOLDER = Path("start-1")
MEASURED = Measurement({"output_throughput": 100.0}, {"osl": 32})


def conditions(others_share: float) -> Conditions:
    cpu = CpuConditions(cores=2, others_share=others_share, steal_share=0.0)
    return Conditions(seconds=60.0, samples=60, cpu=cpu, gpus=(), notes=())


class Nodes(LocalPlacement):
    """Nodes whose doctor says what it is told to, and whose watch sees a neighbour."""

    def __init__(self, *checks: Check, machine: Machine = H200) -> None:
        super().__init__(lambda *_: pytest.fail("nothing is started"))
        self.watches: list[str] = []
        self._told: dict[str, Any] = {
            "machine": asdict(machine),
            "checks": [asdict(check) for check in checks],
            "observed": {"driver": "570.1"},
        }

    def doctor(self) -> Mapping[str, Json] | None:
        return self._told if self._told["checks"] else None

    @contextmanager
    def _watched(self, folder: Path) -> Iterator[NodesWatch]:
        self.watches.append(folder.name)
        watch = NodesWatch()
        yield watch
        watch.conditions["n1"] = conditions(0.5)

    def watched(self, folder: Path) -> AbstractContextManager[NodesWatch | None]:
        return self._watched(folder)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(RunFolder.create(tmp_path / "run", {}), building.MACHINE, LocalLauncher())


# The place. ---------------------------------------------------------------------------------------


def ranks_of(answer: Check | RunError | None) -> Callable[..., Check]:
    """Ranks that answer so; None: none is started."""

    def check(*given: Any) -> Check:
        if answer is None:
            pytest.fail("started")
        assert given[-2:] == (TENSORRT_LLM_PYTHON, FOLDER / "ranks")
        if isinstance(answer, RunError):
            raise answer
        return answer

    return check


ANSWERED = Check("ranks", "ok", "4 of 4 ranks")
ALONE = RunError("pmi_mismatch", "each of 4 ranks takes itself for the only one")


@pytest.mark.parametrize(
    ("tools", "checks", "ranks", "failure", "found"),
    [
        (TOOLS, [WELL], None, "", ["28,000 free"]),
        (TOOLS, [WELL, FULL], None, "unfit_machine", ["28,000 free", "0.1 GiB free"]),
        # Ranks are tried last, not on an unfit machine, and are written down.
        (RANKED, [WELL], ANSWERED, "", ["28,000 free", "4 of 4 ranks"]),
        (RANKED, [WELL], ALONE, "pmi_mismatch", ["28,000 free", f"pmi_mismatch: {ALONE.message}"]),
        (RANKED, [WELL, FULL], None, "unfit_machine", ["28,000 free", "0.1 GiB free"]),
    ],
)
def test_what_nodes_say_is_written_down_before_an_unfit_place_is_refused(
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    tools: Toolchain,
    checks: list[Check],
    ranks: Check | RunError | None,
    failure: str,
    found: list[str],
) -> None:
    monkeypatch.setattr(start_guard, "check_ranks", ranks_of(ranks))
    if failure:
        with pytest.raises(RunError) as caught:
            look_at(Nodes(*checks), tools, session, Lease(), FOLDER)
        assert caught.value.failure == failure
        assert failure != "unfit_machine" or "--run-dir" in caught.value.hint
    else:
        assert look_at(Nodes(*checks), tools, session, Lease(), FOLDER) == H200
    (record,) = recorded(session.run, "preflight")
    assert (record["scenario"], record["fit"]) == ("small-serve", not failure)
    assert (record["machine"]["gpus"][0]["name"], record["observed"]["driver"]) == (
        "NVIDIA H200",
        "570.1",
    )
    assert [one["found"] for one in record["checks"]] == found


def test_this_machine_is_looked_at_where_no_node_says_anything(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def look(*given: Any) -> PreflightReport:
        asked.extend(given)
        return PreflightReport((WELL,))

    monkeypatch.setattr(start_guard, "look", look)
    assert look_at(Nodes(), TOOLS, session, Lease(), FOLDER) is building.MACHINE
    *_, machine, where = asked
    assert machine is building.MACHINE
    assert (where.run_folder, where.leased, where.runtime) == (session.run.path, None, "none")


def checked() -> tuple[PlaceCheck, list[Machine]]:
    """A check, and the machines that references were told of."""
    told: list[Machine] = []
    references = SimpleNamespace(measured_on=told.append)
    return PlaceCheck(cast(References, references)), told


def test_a_place_here_is_looked_at_once_for_each_build(session: Session) -> None:
    check, told = checked()
    roles: tuple[StartRole, ...] = ("new", "reference", "baseline_control", "new", "claim")
    for role in (*roles, "baseline_control", "anchor_control"):
        check.look(role, TOOLS, session, Lease(), FOLDER, Nodes(WELL))
    assert len(recorded(session.run, "preflight")) == 3
    assert told == [H200]


def test_a_control_on_another_kind_of_machine_is_refused(session: Session) -> None:
    check, _ = checked()

    def look(role: StartRole, **changes: str) -> None:
        nodes = Nodes(WELL, machine=replace(H200, **changes))
        check.look(role, TOOLS, session, Lease(), FOLDER, nodes)

    look("new")
    look("baseline_control", host="node8")
    with pytest.raises(RunError, match=r"node9 is not of .*: cpu Xeon, not Grace"):
        look("anchor_control", host="node9", cpu="Xeon")


# Its GPUs. ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("site", "other"), [(Site(), "has it"), (Site(after=(("true",),)), "gpus_busy")]
)
def test_commands_of_the_site_may_change_all_gpus_so_that_a_start_has_them(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Site, other: str
) -> None:
    (tmp_path / "locks").mkdir()
    monkeypatch.setenv("PERFGATE_LEASES", str(tmp_path / "locks"))
    gpus = tuple(
        Device(f"gpu-{one}", one, one, "NVIDIA B200", f"GPU-{4 * one}") for one in ("0", "1")
    )
    pool = GpuPool(Devices(gpus, chosen=False, made_up=False), dict(os.environ))
    others: list[str] = []

    def lease_the_second() -> None:
        alone = replace(pool, devices=replace(pool.devices, gpus=gpus[1:]))
        try:
            with alone.lease(1, whole=False, run="b", wait_s=0, tell=print):
                others.append("has it")
        except RunError as error:
            others.append(error.failure)

    session = replace(session, pool=pool, site=replace(site, wait_for_gpus_s=0))
    on_a_gpu = replace(building.SCENARIO, hardware=Hardware("B200", 1, 1))
    with leased(on_a_gpu, session, print) as lease:
        assert len(lease.gpus) == 1
        thread = threading.Thread(target=lease_the_second)  # one thread holds one lease
        thread.start()
        thread.join()
    assert others == [other]


# Who disturbs it. ---------------------------------------------------------------------------------


def test_what_is_over_the_scenarios_limits_disturbs_it() -> None:
    quiet, busy = Watch(), Watch()
    quiet.conclude(conditions(0.01))
    busy.conclude(conditions(0.5))
    found = guarded(MEASURED, quiet, building.SCENARIO)
    assert (found.disturbed, found.metrics) == ((), MEASURED.metrics)
    assert set(found.facts) == {"osl", "environment"}
    told = "other processes used 50 % of 2 cores (limit 20 %)"
    assert guarded(MEASURED, busy, building.SCENARIO).disturbed == (told,)
    limits = replace(building.SCENARIO.gate.disturbance, others_cpu=0.6)
    lenient = replace(building.SCENARIO, gate=replace(building.SCENARIO.gate, disturbance=limits))
    assert guarded(MEASURED, busy, lenient).disturbed == ()
    of_nodes = {"n1": conditions(0.01), "n2": conditions(0.5), "n3": not_watched("it was killed")}
    found = guarded(MEASURED, NodesWatch(of_nodes), building.SCENARIO)
    assert found.disturbed == (f"n2: {told}",)
    plain = {name: one.plain() for name, one in of_nodes.items()}
    assert found.facts["environment"] == {"nodes": plain}


LOAD = LoadPoint(concurrency=4, requests=16, warmup_requests=4, seed=1)
TASK = AccuracyTask("lm_eval", "sums", 0)


class Measuring(FreshStart):
    """A start that measures without any program."""

    def measure(self, probe: Probe) -> Measurement:
        return MEASURED


class Elsewhere(LocalLauncher):
    here = False


@each(
    ("launcher", "what", "since", "watched"),
    [
        (Elsewhere(), LOAD, Watch(), "there"),
        (Elsewhere(), TASK, Watch(), ""),
        (Elsewhere(), LOAD, None, ""),  # as where programs are played
        (LocalLauncher(), LOAD, Watch(), "here"),
        (LocalLauncher(), TASK, Watch(), ""),
    ],
)
def test_load_is_watched_where_it_runs_and_nothing_that_is_played(
    tmp_path: Path, launcher: Launcher, what: Any, since: Watch | None, watched: str
) -> None:
    nodes, probe = Nodes(), Probe(building.SCENARIO, what)
    start = Measuring(building.SCENARIO, TOOLS, StartSetup(launcher, tmp_path, tmp_path), nodes)
    found = measure_guarded(start, probe, since)
    assert nodes.watches == ([probe.label] if watched == "there" else [])
    assert any("n1: other processes used" in one for one in found.disturbed) == bool(nodes.watches)
    environment = cast(dict[str, Json], found.facts.get("environment", {}))
    assert ("cpu" in environment, "nodes" in environment) == (watched == "here", watched == "there")


@pytest.mark.parametrize(
    ("launch", "launcher", "synthetic", "is_watched"),
    [
        (None, LocalLauncher(), False, True),
        (None, LocalLauncher(), True, False),
        (Launch("srun"), LocalLauncher(), False, False),
        (Launch("sbatch"), LocalLauncher(), False, False),
        (None, Elsewhere(), False, True),  # by an empty watch
    ],
)
def test_a_start_is_watched_on_this_machine_alone(
    session: Session, launch: Launch | None, launcher: Launcher, synthetic: bool, is_watched: bool
) -> None:
    session = replace(session, launcher=launcher, synthetic=synthetic)
    with watch_start(replace(building.SCENARIO, launch=launch), session, Lease()) as watch:
        assert (watch is not None) == is_watched
