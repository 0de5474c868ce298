"""Calibrating: what of the starts is used, what is told, and when it is given up."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import building
import pytest

from perfgate.baselines.noise_history import NoiseRun
from perfgate.baselines.noise_observation import observe
from perfgate.campaign import calibration as measuring
from perfgate.campaign.calibration import Collected, chosen_probes, measure, showing_noise
from perfgate.campaign.fresh_start import StartSetup
from perfgate.campaign.session import Session
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Measurement
from perfgate.engines.base import EngineBuild
from perfgate.gate.rule import Rule
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.records import RunFolder
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import LoadPoint

METRIC = "output_throughput"
SCENARIO = replace(
    building.SCENARIO, gate=replace(building.SCENARIO.gate, metrics=(METRIC, building.SUMS))
)
PROBES = load_probes(SCENARIO)


class Engine:
    """Starts that give numbers as told, or fail."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str, int, str]] = []
        self.failing: Sequence[int] = ()
        self.disturbed: Sequence[tuple[int, str]] = ()

    @contextmanager
    def start(
        self, scenario: object, tools: object, setup: StartSetup, probes: Sequence[Probe]
    ) -> Iterator["Start"]:
        if setup.number in self.failing:
            raise RunError("oom", "no memory was left")
        yield Start(self, setup)


class Start(SimpleNamespace):
    def __init__(self, engine: Engine, setup: StartSetup) -> None:
        super().__init__(engine=engine, setup=setup)

    def __replace__(self, **changes: Any) -> "Start":
        return Start(self.engine, changes["setup"])

    def measure(self, probe: Probe) -> Measurement:
        assert isinstance(probe.what, LoadPoint)
        number, folder = self.setup.number, self.setup.folder.name
        self.engine.asked.append((number, probe.label, probe.what.seed, folder))
        hit = (number, folder) in self.engine.disturbed
        return Measurement(
            {METRIC: 100.0 + number + 0.1 * len(self.engine.asked), "ttft_mean_ms": 5.0},
            disturbed=("others used 80 % of the cores",) if hit else (),
        )


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()
    monkeypatch.setattr(measuring, "fresh_start", made.start)
    monkeypatch.setattr(measuring, "watch_start", lambda *_: nullcontext())
    monkeypatch.setattr(measuring, "measure_guarded", lambda start, probe, _: start.measure(probe))

    def replaced(one: Any, **changes: Any) -> Any:
        return one.__replace__(**changes) if isinstance(one, Start) else replace(one, **changes)

    monkeypatch.setattr(measuring, "replace", replaced)
    return made


@pytest.fixture
def session(tmp_path: Path) -> Session:
    run = RunFolder.create(tmp_path / "run", {"synthetic": False, "purpose": "calibrate"})
    return Session(run, building.MACHINE, LocalLauncher(), Rule(), cache=tmp_path)


def collected(engine: Engine, session: Session, starts: int = 6, repeats: int = 2) -> Collected:
    tools = SimpleNamespace(
        scenario=SCENARIO,
        build=EngineBuild("llama.cpp", "1.2.0", "abc123"),
        fingerprint=lambda probe, machine: {"content": "a"},
    )
    return measure(PROBES, cast(Toolchain, tools), session, starts, repeats)


def test_every_repeat_has_requests_of_its_own_and_the_first_are_the_gates(
    engine: Engine, session: Session
) -> None:
    collected(engine, session, starts=5, repeats=3)
    of_first = [(label, seed) for number, label, seed, _ in engine.asked if number == 1]
    points = {probe.label: probe.what for probe in PROBES}
    assert len(set(of_first)) == len(of_first) == 6
    assert len({seed for _, seed in of_first}) == 6
    for label, point in points.items():
        assert isinstance(point, LoadPoint)
        assert of_first[list(points).index(label)] == (label, point.seed)
    # Every start gets the same ones: what differs between starts is not what was asked.
    assert [(label, seed) for number, label, seed, _ in engine.asked if number == 5] == of_first
    assert {folder for *_, folder in engine.asked} == {"repeat-1", "repeat-2", "repeat-3"}


def shown(session: Session) -> NoiseRun | None:
    return next(iter(observe(session.run)), None)


def values(run: NoiseRun, probe: str, repeat: int = 1) -> tuple[float, ...]:
    (found,) = [one for one in run.series if (one.probe, one.repeat) == (probe, repeat)]
    return found.values[METRIC]


def test_each_repeat_is_a_series_of_its_own(engine: Engine, session: Session) -> None:
    found = collected(engine, session)
    assert found.starts == {"c1": [1, 2, 3, 4, 5, 6], "c4": [1, 2, 3, 4, 5, 6]}
    run = showing_noise(PROBES, found, shown(session))
    assert (run.kind, run.run, run.hardware) == ("calibration", "run", "cpu")
    assert len(run.series) == 4
    assert values(run, "c1") == pytest.approx((101.1, 102.5, 103.9, 105.3, 106.7, 108.1))
    assert values(run, "c1", 2) == pytest.approx((101.3, 102.7, 104.1, 105.5, 106.9, 108.3))
    assert found.notes == []


def test_a_failed_start_is_told_and_not_used(engine: Engine, session: Session) -> None:
    engine.failing = [3]
    found = collected(engine, session)
    assert found.starts["c1"] == [1, 2, 4, 5, 6]
    assert found.notes == ["start 3 failed: oom: no memory was left"]
    assert len(values(showing_noise(PROBES, found, shown(session)), "c1")) == 5


@pytest.mark.parametrize(("failing", "asked", "made"), [([2, 3], 3, 3), ([1, 2], 10, 2)])
def test_it_is_given_up_when_too_few_good_starts_are_left(
    engine: Engine, session: Session, failing: list[int], asked: int, made: int
) -> None:
    engine.failing = failing
    with pytest.raises(RunError, match=f"2 of {made} fresh starts failed") as caught:
        collected(engine, session, starts=asked)
    assert caught.value.failure == "oom"


def test_one_lost_start_of_two_is_no_reason_to_give_up(engine: Engine, session: Session) -> None:
    engine.failing = [1, 3, 5, 7, 9]
    assert collected(engine, session, starts=10).starts["c1"] == [2, 4, 6, 8, 10]


def test_what_was_disturbed_is_told_and_not_used(engine: Engine, session: Session) -> None:
    engine.disturbed = [(2, "repeat-1")]
    found = collected(engine, session)
    assert "start 2: c1, 1 of 2: disturbed, so not used: others used 80 % of the cores" in (
        found.notes
    )
    run = showing_noise(PROBES, found, shown(session))
    assert [len(values(run, "c1", repeat)) for repeat in (1, 2)] == [5, 6]
    lines = session.run.records("calibration")
    assert [bool(line["disturbed"]) for line in lines if line["start"] == 2] == [
        *(True, True),
        *(False, False),
    ]


def test_too_few_undisturbed_starts_are_refused(engine: Engine, session: Session) -> None:
    engine.disturbed = [(2, f"repeat-{r}") for r in (1, 2)]
    found = collected(engine, session, starts=2)
    with pytest.raises(RunError, match="1 good fresh start of c1, where 2 are needed") as caught:
        showing_noise(PROBES, found, shown(session))
    assert "others used 80 %" in caught.value.evidence[0]


def test_a_missing_metric_of_the_gate_is_an_error(engine: Engine, session: Session) -> None:
    found = collected(engine, session)
    run = shown(session)
    assert run is not None
    without = [replace(one, values={}) if one.probe == "c4" else one for one in run.series]
    with pytest.raises(RunError, match="not every start of small-serve-c4 gave output_throughput"):
        showing_noise(PROBES, found, replace(run, series=tuple(without)))
    with pytest.raises(RunError, match="not every start of small-serve-c1"):
        showing_noise(PROBES, found, None)


def test_points_are_chosen_by_label() -> None:
    assert chosen_probes(SCENARIO, ()) == PROBES
    assert [probe.label for probe in chosen_probes(SCENARIO, ["c4"])] == ["c4"]
    with pytest.raises(InputError, match="no such point of the sweep"):
        chosen_probes(SCENARIO, ["c8"])
    with pytest.raises(InputError, match="the scenario measures no load"):
        chosen_probes(replace(SCENARIO, workload=None), ())
