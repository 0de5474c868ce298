"""Scenario ⇄ plain values of a scenario file; checks nothing: `schema` did that before."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfgate.core.measurement import Json
from perfgate.core.plain import from_plain, to_plain
from perfgate.scenarios.scenario import Scenario


def scenario_from_plain(plain: Mapping[str, Any], file: Path | None = None) -> Scenario:
    """The scenario of plain values that fit the schema and have their defaults merged in.

    A sweep of one point may be written without a list, and a load without lengths, of which every
    reader must say what they are.
    """
    load = plain.get("workload")
    if load is not None:
        load = {"isl": None, "osl": None, **load}
        if isinstance(load["concurrency"], int):
            load["concurrency"] = [load["concurrency"]]
    return replace(from_plain(Scenario, {**plain, "workload": load}), file=file)


def scenario_to_plain(scenario: Scenario) -> dict[str, Json]:
    """The scenario as a scenario file has it, with its content hash.

    All defaults are written out; what is left to the engine is left out. Without `content_hash` it
    can stand in a scenario file and gives an equal scenario.
    """
    plain: dict[str, Json] = to_plain(replace(scenario, file=None), leave_out_none=True)
    plain["content_hash"] = scenario.content_hash()
    return plain
