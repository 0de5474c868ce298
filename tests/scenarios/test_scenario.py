"""Scenario: its sweep, its names, and what its hashes see."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from tables import each

from perfgate.scenarios.scenario import (
    Container,
    Floor,
    GatePolicy,
    Hardware,
    Launch,
    Limits,
    Listen,
    LoadPoint,
    Scenario,
    Smoke,
    Source,
)

LOAD = SCENARIO.workload
assert LOAD is not None


def with_load(**changes: Any) -> Scenario:
    assert LOAD is not None
    return replace(SCENARIO, workload=replace(LOAD, **changes))


# The sweep. ---------------------------------------------------------------------------------


def test_a_sweep_has_one_point_per_concurrency_each_with_its_own_seed() -> None:
    assert SCENARIO.points() == (
        LoadPoint(concurrency=1, requests=6, warmup_requests=1, seed=21),
        LoadPoint(concurrency=4, requests=24, warmup_requests=4, seed=24),
    )
    assert [point.label for point in SCENARIO.points()] == ["c1", "c4"]


def test_the_number_of_requests_may_be_given_outright() -> None:
    scenario = with_load(requests=114_688, requests_per_concurrency=None, concurrency=(7168,))
    assert scenario.points()[0].requests == 114_688


def test_the_number_of_warmup_requests_may_be_given_outright() -> None:
    points = with_load(warmup_requests=2).points()
    assert [point.warmup_requests for point in points] == [2, 2]


def test_no_workload_no_points() -> None:
    assert replace(SCENARIO, workload=None).points() == ()


@pytest.mark.parametrize(
    ("hardware", "label"),
    [
        (Hardware("none", 0), "cpu"),
        (Hardware("B200", 8), "8xB200"),
        (Hardware("GB200", 8, nodes=2), "2x4xGB200"),
    ],
)
def test_hardware_has_a_short_name(hardware: Hardware, label: str) -> None:
    assert hardware.label == label


# What the hashes see. -----------------------------------------------------------------------

NOT_SHAPING = [
    {"title": "Another"},
    {"source": Source("other.md", "Other", url="https://example.com")},
    {"gate": GatePolicy(("duration_s",), {"duration_s": 0.1}, max_starts=9)},
    {"limits": Limits(1.0, 2.0, 3.0)},
    {"smoke": Smoke("completion", ("Where?",))},
    {"launch": Launch("mpirun")},
    {"container": Container("release:1.0")},
    {"listen": Listen("localhost", 8000)},
    {"floors": (Floor("duration_s", 1.0),)},
    {"markers": ("nightly",)},
    {"id": "renamed"},
    {"model": replace(SCENARIO.model, folder=SCENARIO.model.name.rpartition("/")[2])},
    {"file": Path("elsewhere.yaml")},
]


@each("change", NOT_SHAPING)
def test_what_does_not_shape_a_measurement_is_not_hashed(change: dict[str, Any]) -> None:
    assert replace(SCENARIO, **change).content_hash() == SCENARIO.content_hash()


SHAPING = {
    "isl": with_load(isl=65),
    "osl": with_load(osl=33),
    "client": with_load(client="other"),
    "dataset": with_load(dataset="real"),
    "concurrency": with_load(concurrency=(1, 4, 8)),
    "requests": with_load(requests_per_concurrency=7),
    "warm-up": with_load(warmup_per_concurrency=2),
    "streaming": with_load(streaming=False),
    "ignore_eos": with_load(ignore_eos=False),
    "seed": with_load(seed=21),
    "rate": with_load(max_request_rate=1.0),
    "api": with_load(api="chat"),
    "capped": with_load(capped=False),
    "warm-up outright": with_load(warmup_requests=2),
    "no workload": replace(SCENARIO, workload=None),
    "accuracy": replace(SCENARIO, accuracy=()),
    "hardware": replace(SCENARIO, hardware=Hardware("B200", 8)),
    "model": replace(SCENARIO, model=replace(SCENARIO.model, precision="fp8")),
    "folder": replace(SCENARIO, model=replace(SCENARIO.model, folder="other")),
    "engine": replace(SCENARIO, engine=replace(SCENARIO.engine, name="vllm")),
    "setting": replace(
        SCENARIO,
        engine=replace(
            SCENARIO.engine, settings=replace(SCENARIO.engine.settings, attention_dp=True)
        ),
    ),
    "environment": replace(SCENARIO, environment={"TRTLLM_ENABLE_PDL": "1"}),
}


@each("name", SHAPING)
def test_what_shapes_a_measurement_is_hashed(name: str) -> None:
    assert SHAPING[name].content_hash() != SCENARIO.content_hash()


def test_one_pipeline_stage_measures_the_same_whether_it_is_said_or_not() -> None:
    def staged(stages: int | None) -> str:
        settings = replace(SCENARIO.engine.settings, pp=stages)
        return replace(SCENARIO, engine=replace(SCENARIO.engine, settings=settings)).content_hash()

    assert staged(None) == staged(1)
    assert staged(2) != staged(1)


def test_the_order_of_mappings_does_not_matter() -> None:
    one = replace(SCENARIO, environment={"A": "1", "B": "2"})
    other = replace(SCENARIO, environment={"B": "2", "A": "1"})
    assert one.content_hash() == other.content_hash()
