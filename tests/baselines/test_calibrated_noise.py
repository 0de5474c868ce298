"""Calibrations of earlier releases are still learnt from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfgate.baselines.calibrated_noise import read, read_older
from perfgate.baselines.hardware_noise import known_noise
from perfgate.core.errors import InputError

METRIC = "output_throughput"
VALUES = [[100.0, 101.0], [102.0, 103.0], [99.0], [97.0, 99.5], [100.5, 101.0]]


def spread(values: list[list[float]]) -> dict[str, Any]:
    return {"between": 0.01, "within": 0.01, "sigma": 0.02, "dof": 5.0, "values": values}


@pytest.fixture
def path(suite_root: Path) -> Path:
    plain = {
        "schema_version": 1,
        "scenario": "small-serve",
        "hardware": "8xH200",
        "engine": {"name": "llama.cpp", "version": "1.2.0", "commit": "abc123"},
        "machine": {"cpu": "Grace", "cores": "72", "driver": "570.1"},
        "run": "run-1",
        "at": "2026-11-20T08:00:00+00:00",
        "starts": 5,
        "repeats": 2,
        "probes": {
            "c1": {"content": "1", "metrics": {METRIC: spread(VALUES)}},
            "c4": {"content": "4", "metrics": {METRIC: spread([[9.0 + x] for x in range(5)])}},
        },
    }
    path = suite_root / "baselines" / "noise" / "8xH200" / "small-serve.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(plain))
    return path


def test_each_repeat_is_a_series_of_one_session(path: Path) -> None:
    run = read(path)
    found = {(one.probe, one.repeat): one.values[METRIC] for one in run.series}
    assert found == {
        ("c1", 1): (100.0, 102.0, 99.0, 97.0, 100.5),
        ("c1", 2): (101.0, 103.0, 99.5, 101.0),
        ("c4", 1): (9.0, 10.0, 11.0, 12.0, 13.0),
    }
    assert (run.kind, run.series[0].machine) == ("calibration", {"cpu": "Grace", "cores": "72"})


def test_the_hardware_learns_from_it(path: Path) -> None:
    found, told = known_noise("8xH200", own=False).components(METRIC, 0.005)
    assert (found.n_within, found.n_between, told) == (4 + 3 + 4, 0, ())
    assert not known_noise("8xH200", own=True).histories
    assert not known_noise("8xH200", own=False, machine={"cpu": "Xeon", "cores": "2"}).histories


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda plain: plain.update(schema_version=2), "schema_version"),
        (lambda plain: plain.pop("machine"), "machine"),
        (lambda plain: plain.update(scenario="other"), "scenario"),
        (lambda plain: plain.update(hardware="8xB200"), "hardware"),
        (
            lambda plain: plain["probes"]["c1"]["metrics"][METRIC]["values"][0].__setitem__(0, -1),
            f"probes.c1.metrics.{METRIC}.values[0][0]",
        ),
    ],
)
def test_a_damaged_file_is_told_and_left_out(
    path: Path, change: Callable[[dict[str, Any]], object], field: str
) -> None:
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))
    with pytest.raises(InputError) as caught:
        read(path)
    assert (caught.value.file, caught.value.field) == (path, field)
    assert read_older("8xH200", own=False) == ([], [f"small-serve.json: {caught.value.problem}"])


@pytest.mark.parametrize("text", ["", "{", "[]", '"noise"', "null"])
def test_what_is_no_calibration_at_all_is_left_out(path: Path, text: str) -> None:
    path.write_text(text)
    found, told = read_older("8xH200", own=False)
    assert (found, len(told)) == ([], 1)
