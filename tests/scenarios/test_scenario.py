"""Scenario: its sweep, its names, and what its hashes see."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from building import SCENARIO
from tables import each

from perfgate.scenarios.scenario import (
    Container,
    DocumentedAnswer,
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


def with_settings(**changes: Any) -> Scenario:
    settings = replace(SCENARIO.engine.settings, **changes)
    return replace(SCENARIO, engine=replace(SCENARIO.engine, settings=settings))


# The sweep. ---------------------------------------------------------------------------------


def test_a_sweep_has_one_point_per_concurrency_each_with_its_own_seed() -> None:
    assert SCENARIO.points() == (
        LoadPoint(concurrency=1, requests=6, warmup_requests=1, seed=21),
        LoadPoint(concurrency=4, requests=24, warmup_requests=4, seed=24),
    )
    assert [point.label for point in SCENARIO.points()] == ["c1", "c4"]


def test_requests_and_warmup_may_be_given_outright() -> None:
    scenario = with_load(requests=9, requests_per_concurrency=None, warmup_requests=2)
    assert [(one.requests, one.warmup_requests) for one in scenario.points()] == [(9, 2), (9, 2)]


def test_no_workload_no_points() -> None:
    assert replace(SCENARIO, workload=None).points() == ()


@each(
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


SHAPING = [
    *({"isl": 65}, {"osl": 33}, {"client": "other"}, {"dataset": "real"}),
    *({"concurrency": (1, 4, 8)}, {"requests_per_concurrency": 7}, {"warmup_per_concurrency": 2}),
    *({"streaming": False}, {"ignore_eos": False}, {"seed": 21}, {"max_request_rate": 1.0}),
    *({"api": "chat"}, {"capped": False}, {"warmup_requests": 2}),
]
SHAPED = [
    *(with_load(**change) for change in SHAPING),
    replace(SCENARIO, workload=None),
    replace(SCENARIO, accuracy=()),
    replace(SCENARIO, hardware=Hardware("B200", 8)),
    replace(SCENARIO, model=replace(SCENARIO.model, precision="fp8")),
    replace(SCENARIO, model=replace(SCENARIO.model, folder="other")),
    replace(SCENARIO, engine=replace(SCENARIO.engine, name="vllm")),
    with_settings(attention_dp=True),
    with_settings(pp=2),
    replace(SCENARIO, environment={"TRTLLM_ENABLE_PDL": "1"}),
]


def test_what_shapes_a_measurement_is_hashed() -> None:
    hashes = {scenario.content_hash() for scenario in (SCENARIO, *SHAPED)}
    assert len(hashes) == 1 + len(SHAPED)


def test_one_pipeline_stage_measures_the_same_whether_it_is_said_or_not() -> None:
    assert with_settings(pp=None).content_hash() == with_settings(pp=1).content_hash()


def test_what_is_known_of_an_answer_changes_no_hash() -> None:
    one = replace(SCENARIO, smoke=Smoke("completion", ("Who?",)))
    answer = DocumentedAnswer("Who?", ("in",))
    other = replace(SCENARIO, smoke=Smoke("completion", ("Who?",), answers=(answer,)))
    assert one.content_hash(one.smoke) == other.content_hash(other.smoke)
    assert one.content_hash() == other.content_hash()


def test_the_order_of_mappings_does_not_matter() -> None:
    one = replace(SCENARIO, environment={"A": "1", "B": "2"})
    other = replace(SCENARIO, environment={"B": "2", "A": "1"})
    assert one.content_hash() == other.content_hash()
