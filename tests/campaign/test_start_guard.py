"""The place of a start is looked at and written down, its GPUs are leased, its load is watched."""

from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import MagicMock, Mock

import building
import pytest
from plain_records import recorded
from refusals import refused
from tables import each

from perfgate.baselines.noise_history import NoiseRun, NoiseSeries, machine_of, save
from perfgate.campaign import start_guard
from perfgate.campaign.builds.build import Build
from perfgate.campaign.fresh_start import FreshStart, StartSetup
from perfgate.campaign.schedule import Start, StartRole
from perfgate.campaign.session import Session
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.programs.programs import TENSORRT_LLM_PYTHON
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.judging.assembly.references import References
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.local.launcher import LocalLauncher, LocalPlacement
from perfgate.launchers.site import Site
from perfgate.machine.conditions.conditions import Conditions, CpuConditions, not_watched
from perfgate.machine.conditions.watch import NodesWatch, Watch
from perfgate.machine.leases import Lease
from perfgate.machine.preflight import Check, PreflightReport
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import AccuracyTask, Hardware, Launch, LoadPoint

WELL = Check("ports", "ok", "28,000 free")
FULL = Check("run folder", "failed", "0.1 GiB free", hint="choose another folder with --run-dir")
H200 = building.machine("NVIDIA H200", "NVIDIA H200")
TOOLS = Toolchain(building.SCENARIO, engine=None)  # type: ignore[arg-type]
RANKED = Toolchain(replace(building.SCENARIO, launch=Launch("mpirun")), engine=TensorRTLLM())
FOLDER = Path("start-1")
SPEED = "output_throughput"
MEASURED = Measurement({SPEED: 100.0}, {"osl": 32})


def conditions(others_share: float) -> Conditions:
    cpu = CpuConditions(cores=2, others_share=others_share, steal_share=0.0)
    return Conditions(seconds=60.0, samples=60, cpu=cpu, gpus=(), notes=())


class Nodes(LocalPlacement):
    """Nodes whose doctor says what it is told to, and whose watch sees a neighbour."""

    def __init__(self, *checks: Check, machine=H200) -> None:
        request = PlacementRequest(building.SCENARIO, FOLDER, 60.0, print)
        super().__init__(request, lambda *_: pytest.fail("nothing is started"))
        self.watches: list[str] = []
        self._told = {
            "machine": asdict(machine),
            "checks": [asdict(check) for check in checks],
            "observed": {"driver": "570.1"},
        }

    def doctor(self):
        return self._told if self._told["checks"] else None

    @contextmanager
    def watched(self, folder: Path):
        self.watches.append(folder.name)
        watch = NodesWatch()
        yield watch
        watch.conditions["n1"] = conditions(0.5)


@pytest.fixture
def session(run) -> Session:
    return Session(run, building.MACHINE, LocalLauncher())


LOCAL = LocalLauncher()


def setup(tools: Toolchain, role: StartRole = "new", launcher=LOCAL, watch=None) -> StartSetup:
    build = Build(building.SCENARIO, tools, launcher)
    start = Start(role)
    return StartSetup(
        build, FOLDER, FOLDER, start, Mock(), Lease(), watch, Mock(), nodes=(), site=Site()
    )


# The place. ---------------------------------------------------------------------------------------


ANSWERED = Check("ranks", "ok", "4 of 4 ranks")
ALONE = RunError("pmi_mismatch", "each of 4 ranks takes itself for the only one")


@pytest.mark.parametrize(
    ("tools", "checks", "ranks", "failure", "found"),
    [
        (TOOLS, [WELL], None, "", ["28,000 free"]),
        # Ranks are tried last, not on an unfit machine, and are written down.
        (RANKED, [WELL], ANSWERED, "", ["28,000 free", "4 of 4 ranks"]),
        (RANKED, [WELL], ALONE, "pmi_mismatch", ["28,000 free", f"pmi_mismatch: {ALONE.message}"]),
        (RANKED, [WELL, FULL], None, "unfit_machine", ["28,000 free", "0.1 GiB free"]),
    ],
)
def test_what_nodes_say_is_written_down(session, monkeypatch, tools, checks, ranks, failure, found):
    check_ranks = Mock(side_effect=[ranks] if ranks else pytest.fail)
    monkeypatch.setattr(start_guard, "check_ranks", check_ranks)
    given = (setup(tools), Nodes(*checks), session)
    if failure:
        error = refused(start_guard.look_at, *given, error=RunError)
        assert (error.failure, "--run-dir" in error.hint) == (failure, FULL in checks)
    else:
        assert start_guard.look_at(*given) == H200
    if ranks is not None:
        assert check_ranks.call_args.args[-2:] == (TENSORRT_LLM_PYTHON, FOLDER / "ranks")
    (record,) = recorded(session.run, "preflight")
    assert (record["scenario"], record["fit"]) == ("small-serve", not failure)
    assert record["machine"]["gpus"][0]["name"] == "NVIDIA H200"
    assert record["observed"] == {"driver": "570.1"}
    assert [one["found"] for one in record["checks"]] == found


def test_this_machine_is_looked_at_where_no_node_says_anything(session, monkeypatch) -> None:
    look = Mock(return_value=PreflightReport((WELL,)))
    monkeypatch.setattr(start_guard, "look", look)
    assert start_guard.look_at(setup(TOOLS), Nodes(), session) is building.MACHINE
    *_, machine, where = look.call_args.args
    assert machine is building.MACHINE
    assert (where.run_folder, where.leased, where.runtime) == (session.run.path, None, "none")


def test_a_place_here_is_looked_at_once_for_each_build_and_must_be_of_the_same_kind(session):
    references = Mock()
    check = start_guard.PlaceCheck(references, session)
    roles: tuple[StartRole, ...] = ("new", "reference", "baseline_control", "new", "claim")
    for role in (*roles, "baseline_control"):
        host = "node8" if role == "baseline_control" else "node7"
        check.look(setup(TOOLS, role), Nodes(WELL, machine=replace(H200, host=host)))
    assert len(recorded(session.run, "preflight")) == 2
    assert references.machine == H200
    other = Nodes(WELL, machine=replace(H200, host="node9", cpu="Xeon"))
    told = r"node9 is not of .*: cpu Xeon, not Grace"
    refused(check.look, setup(TOOLS, "anchor_control"), other, match=told, error=RunError)


def test_the_noise_is_that_of_the_machine_that_the_start_is_placed_on(session, suite_root) -> None:
    """Known of one machine and of another: 2 and 3 differences between starts."""
    xeon = replace(building.MACHINE, cpu="Xeon")
    for machine, speeds in ((building.MACHINE, (100.0, 101.0, 99.0)), (xeon, (100.0, 140.0) * 2)):
        facts = machine_of(machine.fingerprint())
        series = NoiseSeries("small-serve", "c1", "a", "abc123", {SPEED: speeds}, facts)
        save(NoiseRun("cpu", machine.cpu, "2026-11-20T08:00:00+00:00", (series,)), own=False)
    references = References(TOOLS, session.machine)
    (probe, *_) = load_probes(building.SCENARIO)
    assert references.noise_of(probe)[SPEED].differences == 2
    start_guard.PlaceCheck(references, session).look(setup(TOOLS), Nodes(WELL, machine=xeon))
    assert references.noise_of(probe)[SPEED].differences == 3


# Its GPUs. ----------------------------------------------------------------------------------------


@each("site, whole", [(Site(), False), (Site(after=(("true",),)), True)])
def test_with_commands_of_the_site_a_start_has_all_gpus(session, site, whole) -> None:
    pool = MagicMock(synthetic=False, gpus=["gpu-0", "gpu-1"])
    on_a_gpu = replace(building.SCENARIO, hardware=Hardware("B200", 1, 1))
    with start_guard.leased(on_a_gpu, replace(session, pool=pool, site=site), print):
        assert pool.lease.call_args.args == (1,)
        assert pool.lease.call_args.kwargs["whole"] is whole


# Who disturbs it. ---------------------------------------------------------------------------------


def test_what_is_over_the_scenarios_limits_disturbs_it() -> None:
    told = "other processes used 50 % of 2 cores (limit 20 %)"
    limits = replace(building.SCENARIO.gate.disturbance, others_cpu=0.6)
    lenient = replace(building.SCENARIO, gate=replace(building.SCENARIO.gate, disturbance=limits))
    given = building.SCENARIO
    for share, scenario, found in ((0.01, given, ()), (0.5, given, (told,)), (0.5, lenient, ())):
        watch = Watch()
        watch.conclude(conditions(share))
        measured = start_guard.guarded(MEASURED, watch, scenario)
        assert (measured.disturbed, measured.metrics) == (found, MEASURED.metrics)
        assert set(measured.facts) == {"osl", "environment"}
    of_nodes = {"n1": conditions(0.01), "n2": conditions(0.5), "n3": not_watched("it was killed")}
    measured = start_guard.guarded(MEASURED, NodesWatch(of_nodes), building.SCENARIO)
    assert measured.disturbed == (f"n2: {told}",)
    plain = {name: one.plain() for name, one in of_nodes.items()}
    assert measured.facts["environment"] == {"nodes": plain}


LOAD = LoadPoint(concurrency=4, requests=16, warmup_requests=4, seed=1)
TASK = AccuracyTask("lm_eval", "sums", 0)


class Elsewhere(LocalLauncher):
    here = False


@each(
    "launcher, what, since, watched",
    [
        (Elsewhere(), LOAD, Watch(), "there"),
        (Elsewhere(), TASK, Watch(), ""),
        (Elsewhere(), LOAD, None, ""),  # as where programs are played
        (LocalLauncher(), LOAD, Watch(), "here"),
        (LocalLauncher(), TASK, Watch(), ""),
    ],
)
def test_load_is_watched_where_it_runs(monkeypatch, launcher, what, since, watched) -> None:
    monkeypatch.setattr(FreshStart, "measure", lambda *_: MEASURED)
    nodes, probe = Nodes(), Probe(building.SCENARIO, what)
    place = LocalPlacement(nodes.request, LOCAL.start) if launcher.here else nodes
    start = FreshStart(setup(TOOLS, "new", launcher, since), place)
    found = start_guard.measure_guarded(start, probe)
    assert nodes.watches == ([probe.label] if watched == "there" else [])
    assert any("n1: other processes used" in one for one in found.disturbed) == bool(nodes.watches)
    environment = found.facts.get("environment", {})
    assert ("cpu" in environment, "nodes" in environment) == (watched == "here", watched == "there")


@each(
    "launch, launcher, synthetic, is_watched",
    [
        (None, LocalLauncher(), False, True),
        (None, LocalLauncher(), True, False),
        (Launch("srun"), LocalLauncher(), False, False),
        (Launch("sbatch"), LocalLauncher(), False, False),
        (None, Elsewhere(), False, True),  # by an empty watch
    ],
)
def test_a_start_is_watched_on_this_machine_alone(session, launch, launcher, synthetic, is_watched):
    session = replace(session, launcher=launcher, synthetic=synthetic)
    scenario = replace(building.SCENARIO, launch=launch)
    with start_guard.watch_start(scenario, session, Lease()) as watch:
        assert (watch is not None) == is_watched
