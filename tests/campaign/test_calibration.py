"""Calibrating: what of the starts is used, what is told, and when it is given up."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import building
import pytest

from perfgate.campaign import calibration as measuring
from perfgate.campaign.calibration import Collected, chosen_probes, measure, noise_of
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
    run = RunFolder.create(tmp_path / "run", {})
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


def test_the_values_of_a_start_stay_together(engine: Engine, session: Session) -> None:
    found = collected(engine, session)
    assert found.starts == {"c1": [1, 2, 3, 4, 5, 6], "c4": [1, 2, 3, 4, 5, 6]}
    values = found.values["c1"][METRIC]
    assert len(values) == 6
    assert values[0] == pytest.approx([101.1, 101.3])
    assert values[5] == pytest.approx([108.1, 108.3])
    assert found.notes == []


def test_a_failed_start_is_told_and_not_used(engine: Engine, session: Session) -> None:
    engine.failing = [3]
    found = collected(engine, session)
    assert found.starts["c1"] == [1, 2, 4, 5, 6]
    assert found.notes == ["start 3 failed: oom: no memory was left"]
    assert noise_of(PROBES, found)["c1"].metrics[METRIC].sigma > 0


@pytest.mark.parametrize(("failing", "asked", "made"), [([3, 5], 6, 5), ([1, 2], 10, 2)])
def test_it_is_given_up_when_too_few_good_starts_are_left(
    engine: Engine, session: Session, failing: list[int], asked: int, made: int
) -> None:
    engine.failing = failing
    with pytest.raises(RunError, match=f"2 of {made} fresh starts failed") as caught:
        collected(engine, session, starts=asked)
    assert caught.value.failure == "oom"


def test_one_lost_start_of_ten_is_no_reason_to_give_up(engine: Engine, session: Session) -> None:
    engine.failing = [1, 3, 5, 7, 9]
    assert collected(engine, session, starts=10).starts["c1"] == [2, 4, 6, 8, 10]


def test_what_was_disturbed_is_told_and_not_used(engine: Engine, session: Session) -> None:
    engine.disturbed = [(2, "repeat-1")]
    found = collected(engine, session)
    assert [len(start) for start in found.values["c1"][METRIC]] == [2, 1, 2, 2, 2, 2]
    assert "start 2: c1, 1 of 2: disturbed, so not used: others used 80 % of the cores" in (
        found.notes
    )
    spread = noise_of(PROBES, found)["c1"].metrics[METRIC]
    assert [len(start) for start in spread.values] == [2, 1, 2, 2, 2, 2]
    lines = session.run.records("calibration")
    assert [bool(line["disturbed"]) for line in lines if line["start"] == 2] == [
        *(True, True),
        *(False, False),
    ]


def test_too_few_undisturbed_starts_are_refused(engine: Engine, session: Session) -> None:
    engine.disturbed = [(n, f"repeat-{r}") for n in (2, 4) for r in (1, 2)]
    with pytest.raises(RunError, match="4 good fresh starts of c1, where 5 are needed") as caught:
        noise_of(PROBES, collected(engine, session))
    assert "others used 80 %" in caught.value.evidence[0]


def test_a_metric_that_never_moves_is_left_out_and_told(engine: Engine, session: Session) -> None:
    found = collected(engine, session)
    noise = noise_of(PROBES, found)
    assert list(noise["c1"].metrics) == [METRIC]
    assert any("ttft_mean_ms gave the same value" in line for line in found.notes)
    assert noise["c1"].content == PROBES[0].content_hash()


def test_an_outlying_start_is_told_by_its_number(engine: Engine, session: Session) -> None:
    found = collected(engine, session)
    found.values["c1"][METRIC][4] = [50.0, 51.0]
    assert noise_of(PROBES, found)["c1"].metrics[METRIC].values[4] == (50.0, 51.0)
    assert "c1: output_throughput of start 5 is far from the others; it is still used" in (
        found.notes
    )


def test_a_missing_metric_of_the_gate_is_an_error(engine: Engine, session: Session) -> None:
    found = collected(engine, session)
    found.values["c4"][METRIC].pop()
    with pytest.raises(RunError, match="not every start of small-serve-c4 gave output_throughput"):
        noise_of(PROBES, found)


def test_points_are_chosen_by_label() -> None:
    assert chosen_probes(SCENARIO, ()) == PROBES
    assert [probe.label for probe in chosen_probes(SCENARIO, ["c4"])] == ["c4"]
    with pytest.raises(InputError, match="no such point of the sweep"):
        chosen_probes(SCENARIO, ["c8"])
    with pytest.raises(InputError, match="the scenario measures no load"):
        chosen_probes(replace(SCENARIO, workload=None), ())
