"""`perfgate conformance`: does a release of TensorRT-LLM take what the scenarios start?

Reads the release's own sources, an unpacked archive or a wheel, without GPU, torch or TensorRT-LLM:
nothing of them is imported or run. Renders the scenarios for that release and holds every option,
choice and YAML key against what the sources declare.

Exit status: 0 all that was checked fits; 1 something does not, or a default moved; 2 wrong usage,
or sources of which nothing could be read or checked. docs/how-to/new_release.md
"""

import argparse
from pathlib import Path

from perfgate.cli.output import add_format, print_json, print_table
from perfgate.cli.scenario_choice import add_selection, load, selected
from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm.releases import release, uncovered
from perfgate.engines.tensorrt_llm.source.moved_defaults import MovedDefault, moved_defaults
from perfgate.engines.tensorrt_llm.source.reading import Reading, read_source
from perfgate.plan.conformance import Conformance, Drift, conformance

_ENGINE = "tensorrt-llm"
_FEW = 3  # scenarios that are named beside a drift; the rest is counted


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add_selection(command)
    command.add_argument(
        "--source",
        type=Path,
        required=True,
        metavar="DIR",
        help="unpacked sources of TensorRT-LLM, or its .whl file",
    )
    command.add_argument(
        "--engine-version",
        metavar="RELEASE",
        help="release whose table is used (default: as the sources say in version.py)",
    )
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    reading = read_source(arguments.source, arguments.engine_version)
    definitions = reading.definitions
    suite = load(arguments.scenarios)
    scenarios = [one for one in selected(arguments, suite) if one.engine.name == _ENGINE]
    found = conformance(scenarios, definitions)
    moved = moved_defaults(definitions, release(definitions.version))
    if not found.calls and not found.files:
        raise InputError(
            "nothing was checked",
            file=arguments.source,
            found=f"{found.scenarios} scenarios rendered, "
            f"{len(definitions.programs)} programs read",
            expected="a call of a scenario whose program the sources declare",
        )
    status = 1 if found.drifts or moved else 0
    if arguments.format == "json":
        print_json(_plain(reading, found, moved))
    else:
        _print(reading, found, moved)
    return status


def _plain(
    reading: Reading, found: Conformance, moved: tuple[MovedDefault, ...]
) -> dict[str, object]:
    definitions = reading.definitions
    return {
        "version": definitions.version,
        "read": {
            "programs": {name: len(options) for name, options in definitions.programs.items()},
            "keys": reading.keys,
            "unread": list(reading.unread),
            "absent": list(reading.absent),
        },
        "checked": {
            "scenarios": found.scenarios,
            "calls": found.calls,
            "files": found.files,
            "unchecked": {name: list(ids) for name, ids in found.unchecked.items()},
            "refused": found.refused,
        },
        "mismatches": [
            {**one.mismatch._asdict(), "asked_by": one.asked_by, "scenarios": list(one.scenarios)}
            for one in found.drifts
        ],
        "moved_defaults": [one._asdict() for one in moved],
        "table": uncovered(definitions.version),
    }


def _print(reading: Reading, found: Conformance, moved: tuple[MovedDefault, ...]) -> None:
    definitions = reading.definitions
    options = sum(len(known) for known in definitions.programs.values())
    print(
        f"TensorRT-LLM {definitions.version}, {definitions.source}\n"
        f"read: {len(definitions.programs)} programs with {options} options, {reading.keys} keys\n"
        f"checked: {found.scenarios} scenarios, {found.calls} calls, {found.files} YAML files"
    )
    unknown = uncovered(definitions.version)
    if unknown is not None:
        print(f"warning: {unknown}")
    for place in reading.unread:
        print(f"not read: {place}")
    for program, ids in found.unchecked.items():
        print(f"not checked: {program}, which the sources lack: {_named(ids)}")
    for scenario, why in found.refused.items():
        print(f"not rendered: {scenario}: {why}")
    for drift in found.drifts:
        _print_drift(drift)
    if moved:
        print("\ndefault moved:")
        print_table(
            ("program", "option or key", "sources", "release table", "declared at"),
            [tuple(one) for one in _in_columns(moved)],
        )
    told = f"{len(found.drifts)} mismatches, {len(moved)} defaults moved"
    print(f"\n{told if found.drifts or moved else 'all that was checked fits'}")


def _in_columns(moved: tuple[MovedDefault, ...]) -> list[tuple[str, str, str, str, str]]:
    return [(one.program, one.place, one.found, one.expected, one.known_at) for one in moved]


def _print_drift(drift: Drift) -> None:
    one = drift.mismatch
    declared = f" ({one.known_at})" if one.known_at else ""
    print(f"\n{one.program} {one.place}: {one.problem}")
    print(f"  found: {one.found}")
    print(f"  expected: {one.expected}{declared}")
    print(f"  written by: {drift.asked_by or 'no line of a release table'}")
    print(f"  needed by: {_named(drift.scenarios)}")


def _named(ids: tuple[str, ...]) -> str:
    more = len(ids) - _FEW
    return ", ".join(ids[:_FEW]) + (f" and {more} more" if more > 0 else "")
