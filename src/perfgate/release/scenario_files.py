"""Scenario files: what the suite was read from, and that it is as it was measured."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.input_files import read_input
from perfgate.core.json_text import LARGEST_OWN
from perfgate.release.pack_layout import SCENARIOS
from perfgate.release.pack_names import problem_of_name
from perfgate.release.pack_writer import Ingredient
from perfgate.release.release_check import ReleaseCheck
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.runs.ended_run import EndedRun
from perfgate.scenarios.documented import FOLDER, documented_file
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_limits import LARGEST_FILE


def scenario_files(places: Sequence[Path], scenarios: Iterable[Scenario]) -> list[Ingredient]:
    """The files that scenarios and claims were read from, whole, and the documented values.

    Those of the first place lie in ``scenarios/1``, and so on, as the suite names its folders.

    Args:
        places: files and folders that the suite was read from.
        scenarios: those whose documented values count.

    Raises:
        InputError: a file cannot be read, or has a name that no pack has.
    """
    found = [_ingredient(path, file, LARGEST_FILE) for path, file in _yaml_files(places)]
    for one in {one.id: one for one in scenarios}.values():
        file = documented_file(one)
        if file.is_file():
            found.append(_ingredient(f"{FOLDER}/{one.id}.json", file, LARGEST_OWN))
    return found


def require_same_scenarios(
    check: ReleaseCheck, runs: Sequence[EndedRun], scenarios: Mapping[str, Scenario]
) -> None:
    """Check that what shapes the measurements of required scenarios is as it was measured.

    Args:
        check: names the required tests, and the run of each.
        runs: their records have the hashes.
        scenarios: id → scenario, as the files have it now.

    Raises:
        ReleaseRefused: status INCOMPLETE: one changed since; naming all that did.
    """
    measured = {run.id: _recorded(run.records) for run in runs}
    changed: dict[str, None] = {}
    for one in check.tests:
        if one.result is None or one.scenario not in scenarios:
            continue
        recorded = measured.get(one.run, {}).get(one.scenario, {})
        now = {probe.label: probe.content_hash() for probe in all_probes(scenarios[one.scenario])}
        for label in [one.result.probe] if one.result.probe in recorded else recorded:
            if now.get(label) != recorded[label]:
                was = f"{recorded[label]} in run {one.run}"
                changed[f"{one.scenario}, {label}: {now.get(label, 'gone')}, {was}"] = None
    if changed:
        raise ReleaseRefused(
            ReleaseStatus.INCOMPLETE,
            "a scenario changed since it was measured, so its file is no evidence of that run",
            field="--scenarios",
            found="; ".join(changed),
            expected="the content that the run recorded",
            hint="check out the commit that the run was made with, or measure again",
        )


def _recorded(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Scenario → probe → hash of what was measured; of a group that did not end, by its lines."""
    found: dict[str, dict[str, str]] = {}
    for line in records:
        if line["record"] == "measurement" and not line["injected"]:
            content = line["fingerprint"].get("content")
            if content:
                found.setdefault(line["scenario"], {})[line["probe"]] = content
    for line in records:
        if line["record"] == "group":
            found.setdefault(line["scenario"], {}).update(line["content"])
    return found


def _yaml_files(places: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Path below `scenarios/`, and file, of every file that the suite is read from, each once."""
    seen: set[Path] = set()
    for number, place in enumerate(places, 1):
        files = [place]
        if place.is_dir():
            files = sorted(one for one in place.rglob("*") if one.suffix in (".yaml", ".yml"))
        for file in files:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                inside = file.relative_to(place).as_posix() if place.is_dir() else file.name
                yield f"{number}/{inside}", file


def _ingredient(inside: str, file: Path, limit: int) -> Ingredient:
    path = f"{SCENARIOS}/{inside}"
    if problem := problem_of_name(path):
        raise InputError(f"a file has {problem}", file=file, found=json.dumps(path))
    try:
        return Ingredient(path, "scenarios", read_input(file, limit, "scenario file"))
    except OSError as error:
        raise InputError("cannot be read", file=file, found=error.strerror) from error
