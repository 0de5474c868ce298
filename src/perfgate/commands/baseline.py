"""`perfgate baseline`: list and show baselines, record candidates from a run, promote them.

A recorded run becomes a candidate in the machine's own store; only a person's `promote`, with name
and reason, moves a candidate into the suite's committed store.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.commands.output import add_format, print_json, print_table

if TYPE_CHECKING:
    from perfgate.baselines import Baseline, Store


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this command's parser."""
    command = commands.add_parser(
        "baseline",
        help="list, show, record and promote baselines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = command.add_subparsers(required=True, metavar="VERB")

    verb = verbs.add_parser("list", help="one line per baseline, of all stores")
    add_format(verb)
    verb.set_defaults(execute=_list)

    verb = verbs.add_parser("show", help="one baseline file")
    verb.add_argument("file", type=Path)
    add_format(verb)
    verb.set_defaults(execute=_show)

    verb = verbs.add_parser("record", help="make candidates of what a run measured")
    verb.add_argument("folder", type=Path, help="the run folder")
    add_format(verb)
    verb.set_defaults(execute=_record)

    verb = verbs.add_parser("promote", help="accept a candidate as baseline")
    verb.add_argument("file", type=Path, help="the candidate's file, as `record` printed it")
    verb.add_argument("--by", required=True, help="the person who accepts it")
    verb.add_argument("--reason", required=True, help="why these numbers are right")
    add_format(verb)
    verb.set_defaults(execute=_promote)


def _stores() -> "dict[str, Store]":
    from perfgate.baselines import candidate_store, own_store, suite_store

    return {"suite": suite_store(), "candidate": candidate_store(), "own": own_store()}


def _list(arguments: argparse.Namespace) -> int:
    from perfgate.baselines import read

    found = [(name, read(path)) for name, store in _stores().items() for path in store.list()]
    if arguments.format == "json":
        print_json([{"store": name, **_brief(baseline)} for name, baseline in found])
        return 0
    if not found:
        print("no baselines yet; `make local` measures this machine's own")
        return 0
    print_table(
        ("store", "hardware", "scenario", "engine", "probes (starts)", "accepted"),
        [
            (
                name,
                baseline.hardware,
                baseline.scenario,
                f"{baseline.engine.name} {baseline.engine.version}",
                ", ".join(f"{label} ({len(e.runs)})" for label, e in baseline.entries.items()),
                f"{baseline.accepted_at[:10]} by {baseline.accepted_by}",
            )
            for name, baseline in found
        ],
    )
    return 0


def _brief(baseline: "Baseline") -> dict[str, object]:
    return {
        "file": str(baseline.file),
        "hardware": baseline.hardware,
        "scenario": baseline.scenario,
        "engine": baseline.engine.name,
        "version": baseline.engine.version,
        "commit": baseline.engine.commit,
        "accepted_by": baseline.accepted_by,
        "accepted_at": baseline.accepted_at,
        "reason": baseline.reason,
        "probes": {label: len(entry.runs) for label, entry in baseline.entries.items()},
    }


def _show(arguments: argparse.Namespace) -> int:
    from perfgate.baselines import read
    from perfgate.metrics import lookup
    from perfgate.reports.outcome_text import number

    baseline = read(arguments.file)
    values = {
        label: {metric: entry.values(metric) for metric in sorted(entry.runs[0].metrics)}
        for label, entry in baseline.entries.items()
    }
    if arguments.format == "json":
        print_json({**_brief(baseline), "values": values})
        return 0
    for name, value in _brief(baseline).items():
        print(f"{name}: {value}")
    for label, metrics in values.items():
        print(f"\n{label}")
        print_table(
            ("metric", "unit", "one value per fresh start"),
            [
                (metric, lookup(metric).unit, ", ".join(number(value) for value in found))
                for metric, found in metrics.items()
            ],
        )
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from perfgate.promotion import record_candidates

    paths, left_out = record_candidates(arguments.folder)
    if arguments.format == "json":
        print_json({"candidates": [str(path) for path in paths], "left_out": left_out})
    else:
        for probe in left_out:
            print(f"left out: {probe}")
        for path in paths:
            print(f"candidate: {path}")
        print(
            "look at it with `perfgate baseline show`, accept it with `perfgate baseline promote`"
        )
    return 0


def _promote(arguments: argparse.Namespace) -> int:
    from perfgate.promotion import promote

    path, changes = promote(arguments.file, by=arguments.by, reason=arguments.reason)
    if arguments.format == "json":
        print_json({"baseline": str(path), "changes": changes})
    else:
        for change in changes:
            print(change)
        print(f"baseline: {path}\ncommit this file for it to count elsewhere")
    return 0
