"""Guarding: what a measurement carries of the conditions it was made in."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import building
from tables import each

from perfgate.campaign.fresh_start import FreshStart, StartSetup
from perfgate.campaign.start_guard import guarded, measure_guarded, watch_over
from perfgate.core.measurement import Measurement
from perfgate.launchers.base import Job, Launcher
from perfgate.launchers.local.launcher import LocalLauncher, LocalPlacement
from perfgate.machine.conditions.conditions import Conditions, CpuConditions, not_watched
from perfgate.machine.conditions.watch import NodesWatch, Watch
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import AccuracyTask, Launch, LoadPoint

MEASURED = Measurement({"output_throughput": 100.0}, {"osl": 32})


def conditions(others_share: float) -> Conditions:
    cpu = CpuConditions(cores=2, others_share=others_share, steal_share=0.0)
    return Conditions(seconds=60.0, samples=60, cpu=cpu, gpus=(), notes=())


def seen(others_share: float) -> Watch:
    watch = Watch()
    watch.conclude(conditions(others_share))
    return watch


def test_a_quiet_measurement_carries_its_conditions() -> None:
    found = guarded(MEASURED, seen(0.01), building.SCENARIO)
    assert (found.disturbed, found.metrics) == ((), MEASURED.metrics)
    assert set(found.facts) == {"osl", "environment"}


def test_what_is_over_the_scenarios_limits_disturbs_it() -> None:
    (told,) = guarded(MEASURED, seen(0.5), building.SCENARIO).disturbed
    assert told == "other processes used 50 % of 2 cores (limit 20 %)"
    limits = replace(building.SCENARIO.gate.disturbance, others_cpu=0.6)
    lenient = replace(building.SCENARIO, gate=replace(building.SCENARIO.gate, disturbance=limits))
    assert guarded(MEASURED, seen(0.5), lenient).disturbed == ()


def test_what_disturbed_a_node_is_told_with_its_name() -> None:
    nodes = NodesWatch(
        {"n1": conditions(0.01), "n2": conditions(0.5), "n3": not_watched("it was killed")}
    )
    found = guarded(MEASURED, nodes, building.SCENARIO)
    assert found.disturbed == ("n2: other processes used 50 % of 2 cores (limit 20 %)",)
    environment = found.facts["environment"]
    assert isinstance(environment, dict)
    assert list(environment) == ["nodes"]
    assert environment["nodes"] == {name: one.plain() for name, one in nodes.conditions.items()}


LOAD = LoadPoint(concurrency=4, requests=16, warmup_requests=4, seed=1)
TASK = AccuracyTask("lm_eval", "sums", 0)


class Nodes(LocalPlacement):
    """Nodes whose watch sees a neighbour; what of it ran when is written down."""

    def __init__(self) -> None:
        super().__init__(_nothing)
        self.told: list[str] = []

    @contextmanager
    def _watched(self, folder: Path) -> Iterator[NodesWatch]:
        self.told.append(f"watched in {folder.name}")
        watch = NodesWatch()
        yield watch
        watch.conditions["n1"] = conditions(0.5)

    def watched(self, folder: Path) -> AbstractContextManager[NodesWatch | None]:
        return self._watched(folder)


def _nothing(*_: object) -> Job:
    raise AssertionError("nothing is started")


class Measuring(FreshStart):
    """A start that measures without any program."""

    def measure(self, probe: Probe) -> Measurement:
        return MEASURED


class Elsewhere(LocalLauncher):
    here = False


def start_on(launcher: Launcher, placement: LocalPlacement, folder: Path) -> Measuring:
    tools = None
    place = StartSetup(launcher, folder, folder)
    return Measuring(building.SCENARIO, tools, place, placement)  # type: ignore[arg-type]


def test_load_on_nodes_is_watched_there(tmp_path: Path) -> None:
    nodes, probe = Nodes(), Probe(building.SCENARIO, LOAD)
    found = measure_guarded(start_on(Elsewhere(), nodes, tmp_path), probe, Watch())
    assert nodes.told == [f"watched in {probe.label}"]
    assert found.disturbed[0].startswith("n1: other processes used")


@each(("what", "since"), [(TASK, Watch()), (LOAD, None)])
def test_on_nodes_too_only_load_is_watched_and_nothing_that_is_played(
    tmp_path: Path, what: AccuracyTask | LoadPoint, since: Watch | None
) -> None:
    nodes = Nodes()
    start = start_on(Elsewhere(), nodes, tmp_path)
    assert measure_guarded(start, Probe(building.SCENARIO, what), since) is MEASURED
    assert nodes.told == []
    unwatched = start_on(Elsewhere(), LocalPlacement(_nothing), tmp_path)
    assert measure_guarded(unwatched, Probe(building.SCENARIO, LOAD), Watch()) is MEASURED


def test_load_on_this_machine_is_watched_here(tmp_path: Path) -> None:
    nodes = Nodes()
    start = start_on(LocalLauncher(), nodes, tmp_path)
    found = measure_guarded(start, Probe(building.SCENARIO, LOAD), Watch())
    assert nodes.told == []
    environment = found.facts["environment"]
    assert isinstance(environment, dict)
    assert "cpu" in environment


def test_only_what_runs_on_this_machine_is_watched_here() -> None:
    for elsewhere in (Launch("srun"), Launch("sbatch")):
        with watch_over(replace(building.SCENARIO, launch=elsewhere)) as watch:
            assert watch is None
    with watch_over(building.SCENARIO, wanted=False) as watch:
        assert watch is None
    with watch_over(building.SCENARIO) as start, watch_over(building.SCENARIO, start) as watch:
        assert watch is not None
    assert watch.conditions.samples >= 1
