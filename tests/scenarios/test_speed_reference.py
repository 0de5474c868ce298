"""What the first measured speed of a scenario can be compared with, so that all is told before."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO

from perfgate.scenarios.documented import speed_from
from perfgate.scenarios.scenario import Claim, Floor, Source

HERE = replace(SCENARIO, gate=replace(SCENARIO.gate, reference="stored"))
SCORE = "accuracy:sums:exact_match:strict-match"
CLAIM = Claim(
    "c", "C", Source("d", "s"), "output_throughput", HERE.id, "better", concurrency=4, value=9.0
)


@pytest.fixture(autouse=True)
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERFGATE_BASELINES", str(tmp_path))
    folder = tmp_path / "documented"
    folder.mkdir()
    return folder / f"{HERE.id}.json"


def write(file: Path, metric: str, **value: float) -> None:
    plain = {
        "schema_version": 1,
        "scenario": HERE.id,
        "source": {"document": "d", "section": "s"},
        "values": {metric: {"value": 0.5, **value}},
    }
    file.write_text(json.dumps(plain), encoding="utf-8")


def test_without_any_number_the_first_run_is_the_first() -> None:
    assert speed_from(HERE) == "first run"


def test_a_score_is_no_speed(documented: Path) -> None:
    write(documented, SCORE)
    assert speed_from(HERE, [replace(CLAIM, metric=SCORE, concurrency=None)]) == "first run"


def test_a_documented_value_a_floor_and_a_claim_are() -> None:
    assert speed_from(replace(HERE, floors=(Floor("output_throughput", 9.0, 4),))) == "document"
    assert speed_from(HERE, [CLAIM]) == "document"
    assert speed_from(HERE, [replace(CLAIM, scenario="another")]) == "first run"
    assert speed_from(HERE, [replace(CLAIM, value=None, versus=HERE.id)]) == "first run"


def test_a_value_of_the_document(documented: Path) -> None:
    write(documented, "output_throughput", concurrency=4)
    assert speed_from(HERE) == "document"


def test_a_machine_that_measures_its_own_and_a_scenario_without_a_load() -> None:
    assert speed_from(replace(HERE, gate=replace(HERE.gate, reference="self"))) == "machine"
    assert speed_from(replace(HERE, workload=None)) == ""
