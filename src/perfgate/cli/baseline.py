"""`perfgate baseline`: the life of a baseline, from a run to its retirement.

A recorded run becomes a candidate in the machine's own store; only a person's `promote`, with name
and reason, moves a candidate into the suite's committed store. docs/baselines.md

Exit status: 0 done, 2 refused or wrong usage; what is refused changes nothing.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.cli import baseline_diff, baseline_history
from perfgate.cli.output import add_format, print_json, print_table

if TYPE_CHECKING:
    from perfgate.baselines import Baseline, Store
    from perfgate.baselines.promotion import Promotion


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this command's parser."""
    command = commands.add_parser(
        "baseline",
        help="list, show, compare, record, promote and retire baselines",
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

    verb = verbs.add_parser("record", help="make candidates of what runs measured")
    verb.add_argument(
        "folder",
        type=Path,
        nargs="+",
        help="a run folder; several, of one engine commit, are pooled",
    )
    add_format(verb)
    verb.set_defaults(execute=_record)

    verb = verbs.add_parser("promote", help="accept a candidate as baseline")
    verb.add_argument("file", type=Path, help="the candidate's file, as `record` printed it")
    _add_person(verb, "who accepts it", "why these numbers are right")
    verb.add_argument(
        "--accept-regression", metavar="REASON", help="why a loss that the run proved is accepted"
    )
    verb.add_argument(
        "--engine-repo",
        type=Path,
        metavar="DIR",
        help="a clone of the engine: compare with the nearest ancestor",
    )
    verb.add_argument("--dry-run", action="store_true", help="tell what would change, no more")
    add_format(verb)
    verb.set_defaults(execute=_promote)

    baseline_diff.add_diff(verbs)
    baseline_history.add_history(verbs)

    verb = verbs.add_parser("retire", help="compare nothing with a baseline any more")
    verb.add_argument("file", type=Path, help="the baseline's file, which stays in git")
    _add_person(verb, "who retires it", "why nothing should be compared with it")
    add_format(verb)
    verb.set_defaults(execute=_retire)

    verb = verbs.add_parser("anchor", help="pin a baseline that small losses add up against")
    verb.add_argument("file", type=Path, help="the baseline's file")
    _add_person(verb, "who pins it", "why this one")
    add_format(verb)
    verb.set_defaults(execute=_anchor)


def _add_person(verb: argparse.ArgumentParser, who: str, why: str) -> None:
    verb.add_argument("--by", required=True, metavar="NAME", help=who)
    verb.add_argument("--reason", required=True, metavar="WHY", help=why)


def _stores() -> "dict[str, Store]":
    from perfgate.baselines import candidate_store, own_store, suite_store

    return {"suite": suite_store(), "candidate": candidate_store(), "own": own_store()}


def _list(arguments: argparse.Namespace) -> int:
    from perfgate.baselines import NOBODY, read

    def state(baseline: "Baseline") -> str:
        if baseline.accepted_by == NOBODY:
            return "-"
        return "retired" if baseline.retired else baseline.change

    found = [(name, read(path)) for name, store in _stores().items() for path in store.list()]
    if arguments.format == "json":
        print_json([{"store": name, **_brief(baseline)} for name, baseline in found])
        return 0
    if not found:
        print("no baselines yet; `make local` measures this machine's own")
        return 0
    print_table(
        ("store", "hardware", "scenario", "engine", "probes (starts)", "change", "accepted"),
        [
            (
                name,
                baseline.hardware,
                baseline.scenario,
                f"{baseline.engine.name} {baseline.engine.version}",
                ", ".join(f"{label} ({len(e.runs)})" for label, e in baseline.entries.items()),
                state(baseline),
                f"{baseline.accepted_at[:10]} by {baseline.accepted_by}",
            )
            for name, baseline in found
        ],
    )
    return 0


def _brief(baseline: "Baseline") -> dict[str, object]:
    retired = baseline.retired
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
        "change": baseline.change,
        "regression": baseline.regression or None,
        "retired": f"{retired.at[:10]} by {retired.by}: {retired.reason}" if retired else None,
        "verdicts": dict(baseline.verdicts),
        "probes": {label: len(entry.runs) for label, entry in baseline.entries.items()},
    }


def _show(arguments: argparse.Namespace) -> int:
    from perfgate.baselines import read
    from perfgate.core.metrics import lookup
    from perfgate.reports.outcome_text import number

    baseline = read(arguments.file)
    values = {
        label: {metric: entry.values(metric) for metric in entry.metrics()}
        for label, entry in baseline.entries.items()
    }
    if arguments.format == "json":
        facts = {label: dict(entry.fingerprint) for label, entry in baseline.entries.items()}
        print_json({**_brief(baseline), "values": values, "facts": facts})
        return 0
    for name, value in _brief(baseline).items():
        if isinstance(value, dict):
            value = ", ".join(f"{label} {one}" for label, one in value.items())
        if value:
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
        told = sorted(baseline.entries[label].fingerprint.items())
        print("facts: " + ", ".join(f"{name} {value}" for name, value in told))
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from perfgate.baselines.promotion import record_candidates

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
    from perfgate.baselines.engine_repo import EngineRepo
    from perfgate.baselines.promotion import promote

    repo = EngineRepo(arguments.engine_repo) if arguments.engine_repo else None

    def promoted(*, dry_run: bool) -> "Promotion":
        return promote(
            arguments.file,
            by=arguments.by,
            reason=arguments.reason,
            accept_regression=arguments.accept_regression,
            dry_run=dry_run,
            repo=repo,
        )

    # What would change is on the screen before anything is written.
    told = promoted(dry_run=True)
    if arguments.format == "json":
        done = told if arguments.dry_run else promoted(dry_run=False)
        print_json(baseline_diff.plain_promotion(done))
        return 0
    baseline_diff.print_promotion(told)
    if arguments.dry_run:
        print(f"would write: {told.file}")
        return 0
    done = promoted(dry_run=False)
    print(f"baseline: {done.file}\ncommit this file for it to count elsewhere")
    return 0


def _retire(arguments: argparse.Namespace) -> int:
    from perfgate.baselines.promotion import retire

    path = retire(arguments.file, by=arguments.by, reason=arguments.reason)
    if arguments.format == "json":
        print_json({"retired": str(path)})
    else:
        print(f"retired: {path}\ncommit this file for it to count elsewhere")
    return 0


def _anchor(arguments: argparse.Namespace) -> int:
    from perfgate.baselines.promotion import pin_anchor

    path = pin_anchor(arguments.file, by=arguments.by, reason=arguments.reason)
    if arguments.format == "json":
        print_json({"anchor": str(path)})
    else:
        print(f"anchor: {path}\ncommit this file for it to count elsewhere")
    return 0
