"""Conformance: does what the scenarios start fit a release, by the release's own sources? Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.definitions import YAML, Definitions
from perfgate.engines.option_check import Mismatch
from perfgate.engines.tensorrt_llm.definition_check import mismatches
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE
from perfgate.engines.tensorrt_llm.program_calls import calls
from perfgate.engines.tensorrt_llm.releases import told_by
from perfgate.plan.calls import commands_to_verify
from perfgate.scenarios.scenario import Scenario

_ON_PAPER = Locations(on_paper=True)


@dataclass(frozen=True)
class Drift:
    """Something that perfgate renders and the release does not take.

    Attributes:
        mismatch: what it is, as the first of the scenarios gives it.
        asked_by: the scenario's own field, of an extra option; else file and line of the release
            table that makes perfgate write it; empty: neither does.
        scenarios: ids of the scenarios that need it.
    """

    mismatch: Mismatch
    asked_by: str
    scenarios: tuple[str, ...]


@dataclass(frozen=True)
class Conformance:
    """What was checked, and what does not fit.

    Attributes:
        scenarios: how many were rendered.
        calls: how many calls of programs were checked, one of several scenarios each time.
        files: how many YAML files were checked.
        drifts: what does not fit.
        unchecked: program → ids of scenarios that call it, where the definitions lack it.
        refused: scenario → why perfgate itself renders nothing for this release.
    """

    scenarios: int
    calls: int
    files: int
    drifts: tuple[Drift, ...]
    unchecked: dict[str, tuple[str, ...]]
    refused: dict[str, str]


def conformance(scenarios: Iterable[Scenario], definitions: Definitions) -> Conformance:
    """Render all scenarios for the definitions' release, and hold each call against them.

    Args:
        scenarios: of the definitions' engine.
        definitions: what the release accepts.

    Raises:
        InputError: no release table covers the version.
    """
    build = EngineBuild(definitions.engine, definitions.version, definitions.version)
    found: dict[tuple[str, str, str], list[str]] = {}
    first: dict[tuple[str, str, str], Mismatch] = {}
    asked: dict[tuple[str, str, str], str] = {}
    unchecked: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    checked = files = rendered = 0
    for scenario in scenarios:
        try:
            commands = commands_to_verify(scenario, build, _ON_PAPER)
        except InputError as error:
            refused[scenario.id] = f"{error.field}: {error.problem}"
            continue
        rendered += 1
        for command in commands:
            for call in calls(command.argv, _ON_PAPER):
                if call.page in definitions.programs:
                    checked += 1
                else:
                    _add(unchecked, call.page, scenario.id)
            if FILE in command.files and calls(command.argv, _ON_PAPER):
                if definitions.keys is None:
                    _add(unchecked, YAML, scenario.id)
                else:
                    files += 1
            for one in mismatches(command, definitions):
                kind = (one.program, one.place, one.problem)
                if kind not in first:
                    first[kind] = one
                    asked[kind] = command.asked_by.get(one.place) or told_by(
                        definitions.version, one
                    )
                _add(found, kind, scenario.id)
    return Conformance(
        scenarios=rendered,
        calls=checked,
        files=files,
        drifts=tuple(Drift(first[kind], asked[kind], tuple(ids)) for kind, ids in found.items()),
        unchecked={program: tuple(ids) for program, ids in unchecked.items()},
        refused=refused,
    )


def _add(groups: dict[Any, list[str]], key: object, scenario: str) -> None:
    ids = groups.setdefault(key, [])
    if scenario not in ids:
        ids.append(scenario)
