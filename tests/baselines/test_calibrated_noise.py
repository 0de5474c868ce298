"""Measured noise: what was calibrated is found again, on the machine and for the load it is of."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import pytest

from perfgate.baselines.calibrated_noise import (
    Calibrated,
    ProbeNoise,
    SigmaOf,
    measured_noise,
    noise_file,
    read,
    save,
    stored_noise,
)
from perfgate.baselines.noise_spread import spread
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Scenario

ROOT = Path(__file__).parents[2]
METRIC = "output_throughput"
VALUES = [[100.0, 101.0], [102.0, 103.0], [99.0, 98.0], [97.0, 99.5], [100.5, 101.0]]
SPREAD = spread(METRIC, VALUES)
OWN = replace(building.SCENARIO, gate=replace(building.SCENARIO.gate, reference="self"))


@pytest.fixture(autouse=True)
def checkout(suite_root: Path) -> Path:
    return suite_root


def calibrated(scenario: Scenario = building.SCENARIO, **changes: Any) -> Calibrated:
    made = Calibrated(
        scenario=scenario.id,
        hardware="cpu",
        engine=EngineBuild("llama.cpp", "1.2.0", "abc123"),
        machine=building.MACHINE.fingerprint(),
        run="run-1",
        at="2026-11-20T08:00:00+00:00",
        starts=5,
        repeats=2,
        probes={
            probe.label: ProbeNoise(probe.content_hash(), {METRIC: SPREAD})
            for probe in load_probes(scenario)
        },
    )
    return replace(made, **changes)


def test_nothing_calibrated_is_nothing_known() -> None:
    assert measured_noise(building.SCENARIO, building.MACHINE) is None


def test_what_is_saved_is_read_again(suite_root: Path) -> None:
    path = noise_file(building.SCENARIO)
    assert path == suite_root / "baselines" / "noise" / "cpu" / "small-serve.json"
    save(calibrated(), path)
    assert read(path) == calibrated()
    expected = {METRIC: SigmaOf(SPREAD.sigma, SPREAD.dof)}
    assert measured_noise(building.SCENARIO, building.MACHINE) == {"c1": expected, "c4": expected}


def test_a_machine_that_measures_itself_keeps_its_noise_to_itself(tmp_path: Path) -> None:
    path = noise_file(OWN)
    assert path == tmp_path / "home" / "noise" / "cpu" / "small-serve.json"
    save(calibrated(), path)
    assert measured_noise(OWN, building.MACHINE) is not None
    assert measured_noise(building.SCENARIO, building.MACHINE) is None


def test_on_another_machine_it_is_not_known() -> None:
    save(calibrated(), noise_file(building.SCENARIO))
    other = replace(building.MACHINE, cores=2)
    assert measured_noise(building.SCENARIO, other) is None
    found = stored_noise(building.SCENARIO)
    assert found is not None
    assert found.differences(other.fingerprint()) == ("cores: here 2, calibrated on 72",)


def test_a_point_that_has_changed_since_has_no_known_noise() -> None:
    save(calibrated(), noise_file(building.SCENARIO))
    load = building.SCENARIO.workload
    assert load is not None
    changed = replace(building.SCENARIO, workload=replace(load, osl=64))
    assert measured_noise(changed, building.MACHINE) == {}
    # more requests at one point leave the other's as it was: c1 is c1 still
    fewer = replace(building.SCENARIO, workload=replace(load, concurrency=(1,)))
    assert list(measured_noise(fewer, building.MACHINE) or ()) == ["c1"]


def edited(change: Callable[[dict[str, Any]], object]) -> Path:
    path = noise_file(building.SCENARIO)
    save(calibrated(), path)
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))
    return path


def metric_of(plain: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = plain["probes"]["c1"]["metrics"][METRIC]
    return found


@pytest.mark.parametrize(
    ("change", "problem", "field"),
    [
        (lambda plain: plain.update(schema_version=2), "unknown schema version", "schema_version"),
        (lambda plain: plain.pop("machine"), "missing", "machine"),
        (lambda plain: plain.update(starts="five"), "wrong type", "starts"),
        (lambda plain: plain.update(scenario="other"), "not in the folder", "scenario"),
        (lambda plain: plain.update(hardware="8xB200"), "not in the folder", "hardware"),
        (
            lambda plain: metric_of(plain).update(sigma=0.0001),
            "not what the stored values give",
            f"probes.c1.metrics.{METRIC}.sigma",
        ),
        (
            lambda plain: metric_of(plain).update(dof=400),
            "not what the stored values give",
            f"probes.c1.metrics.{METRIC}.dof",
        ),
        (
            lambda plain: metric_of(plain).update(within=None),
            "not what the stored values give",
            f"probes.c1.metrics.{METRIC}.within",
        ),
        (
            lambda plain: metric_of(plain)["values"][2].__setitem__(0, 150.0),
            "not what the stored values give",
            f"probes.c1.metrics.{METRIC}.between",
        ),
        (
            lambda plain: metric_of(plain).update(values=[[100.0]] * 5),
            "gave the same value",
            f"probes.c1.metrics.{METRIC}.values",
        ),
        (
            lambda plain: metric_of(plain)["values"].pop(),
            "",
            f"probes.c1.metrics.{METRIC}.values",
        ),
        (
            lambda plain: metric_of(plain)["values"][0].__setitem__(0, -1),
            "",
            f"probes.c1.metrics.{METRIC}.values[0][0]",
        ),
    ],
)
def test_a_damaged_or_edited_file_is_an_error_that_names_the_place(
    change: Callable[[dict[str, Any]], object], problem: str, field: str
) -> None:
    path = edited(change)
    with pytest.raises(InputError) as caught:
        measured_noise(building.SCENARIO, building.MACHINE)
    assert caught.value.file == path
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", '"noise"', "null"])
def test_what_is_no_calibration_at_all_is_an_error(text: str) -> None:
    path = noise_file(building.SCENARIO)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        measured_noise(building.SCENARIO, building.MACHINE)
    assert caught.value.file == path
