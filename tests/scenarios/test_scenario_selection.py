"""Scenarios are chosen by id pattern, and known to pytest by markers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.scenarios.scenario import Hardware
from perfgate.scenarios.selection import (
    HARDWARE_MARKERS,
    all_markers,
    hardware_marker,
    markers_of,
    pick,
    select,
)

LOCAL = replace(SCENARIO, id="local-small", markers=("serving",))
B200 = replace(SCENARIO, id="b200-r1", hardware=Hardware("B200", 8), markers=("latency",))
GB200 = replace(SCENARIO, id="gb200-r1", hardware=Hardware("GB200", 4), markers=())
SCENARIOS = (LOCAL, B200, GB200)


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], SCENARIOS),
        (["b200-r1"], (B200,)),
        (["*b200-*"], (B200, GB200)),
        (["gb200-*", "local-*"], (LOCAL, GB200)),
    ],
)
def test_patterns_choose_in_the_scenarios_order(patterns: list[str], chosen: object) -> None:
    assert select(SCENARIOS, patterns) == chosen


def test_each_pattern_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(SeveralInputErrors) as caught:
        select(SCENARIOS, ["b200-r2", "*", "zzz"])
    first, second = caught.value.errors
    assert (first.found, first.hint) == ("b200-r2", "did you mean b200-r1?")
    assert second.found == "zzz"


def test_one_scenario_is_picked_by_its_whole_id() -> None:
    assert pick(SCENARIOS, "b200-r1") is B200
    with pytest.raises(InputError, match="did you mean b200-r1"):
        pick(SCENARIOS, "b200-r*")


def test_the_hardwares_marker_is_added() -> None:
    assert markers_of(LOCAL) == ("local", "serving")
    assert markers_of(B200) == ("b200", "latency")
    assert markers_of(replace(B200, markers=("b200",))) == ("b200",)
    assert all_markers(SCENARIOS) == ("b200", "gb200", "latency", "local", "serving")


def test_every_gpu_of_the_schema_has_a_marker() -> None:
    file = Path(__file__).parents[2] / "src/perfgate/scenarios/scenario.schema.json"
    scenario = json.loads(file.read_text(encoding="utf-8"))["$defs"]["scenario"]
    gpus = scenario["properties"]["hardware"]["properties"]["gpu"]["enum"]
    markers = {hardware_marker(replace(SCENARIO, hardware=Hardware(gpu, 8))) for gpu in gpus}
    assert markers == HARDWARE_MARKERS
    assert len(markers) == len(gpus)
