"""Recorded judgements: whatever collects the inputs, numbers and words of a verdict stay the same.

The cases are drawn at random and cover: measured, calibrated and prior noise, one node and two, an
anchor, documented values, metrics that only one side has, and values that cannot be judged.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import pytest
from starts_made import FACTS, entry_of
from tables import each

from perfgate.baselines import Entry
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Rule
from perfgate.judging.assembly.judgement import Reference
from perfgate.judging.rules.noise import RunNoise
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import GatePolicy, Hardware

RECORDED = json.loads(Path(__file__).with_name("recorded_judgements.json").read_text())


def entry(runs: Sequence[Mapping[str, float]] | None) -> Entry | None:
    return None if runs is None else entry_of(*map(Measurement, runs))


def judged(case: Mapping[str, Any]) -> Any:
    """What comes out, as plain values; of a refusal its first line."""
    gate = GatePolicy(tuple(case["metrics"]), noise=case["noise"], bands=case["bands"])
    nodes = case["nodes"]
    hardware = Hardware("H200", 8 * nodes, nodes=nodes)
    scenario = replace(building.SCENARIO, gate=gate, hardware=hardware)
    reference = Reference(
        entry(case["baseline"]),
        {name: DocumentedValue(value) for name, value in case["documented"].items()},
        entry(case["anchor"]),
        {name: RunNoise(known[0]) for name, known in case["calibrated"].items()},
    )
    measurements = [Measurement(run) for run in case["new"]]
    rule = Rule(alpha=case["alpha"], max_runs=case["max_runs"])
    try:
        found = building.judged(load_probes(scenario)[0], reference, measurements, FACTS, rule)
    except InputError as error:
        return {"refused": error.problem}
    plain = json.loads(json.dumps(to_plain(found)))
    assert plain.pop("changed") == []  # told beside the judgements; there are no answers here
    for judgement in plain["judgements"]:
        assert judgement.pop("is_interleaved") is False
    return plain


def same(found: Any, recorded: Any) -> bool:
    """Equal, but for the last bits of numbers, which are the mathematical library's."""
    if isinstance(recorded, dict):
        return found.keys() == recorded.keys() and all(
            same(found[name], value) for name, value in recorded.items()
        )
    if isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(same, found, recorded))
    if isinstance(recorded, float):
        return bool(found == pytest.approx(recorded, rel=1e-9, abs=1e-12))
    return bool(found == recorded)


@each("number", range(len(RECORDED)))
def test_a_recorded_case_is_judged_as_it_was(number: int) -> None:
    case = RECORDED[number]
    found = judged(case)
    assert same(found, case["judged"]), found
