"""`perfgate baseline`: the life of a baseline, from a run to its retirement.

A recorded run becomes a candidate in the machine's own store; only a person's `promote`, with name
and reason, moves a candidate into the suite's committed store. docs/how-to/baselines.md

Exit status: 0 done, 2 refused or wrong usage; what is refused changes nothing, but that starts of a
run that proves nothing are still noted in the noise history.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from perfgate.baselines import (
    NOBODY,
    Baseline,
    candidate_store,
    own_store,
    read,
    rehearsal_candidate_store,
    rehearsal_store,
    suite_store,
)
from perfgate.baselines.baseline import few_sessions
from perfgate.baselines.decisions import pin_anchor, retire
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import question_files
from perfgate.baselines.noise_history import keep_noise
from perfgate.baselines.recording import record_candidates
from perfgate.cli import baseline_diff, baseline_history, baseline_propose
from perfgate.cli.output import add_format, print_json, print_table
from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.core.plain import to_plain
from perfgate.core.verdict import counted
from perfgate.judging.acceptance.promotion import Promotion, promote
from perfgate.reports.candidates import ready
from perfgate.reports.figures import number
from perfgate.runs.ended_run import read_run


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's verbs."""
    verbs = command.add_subparsers(required=True, metavar="VERB")

    def add_verb(
        name: str, execute: Callable[[argparse.Namespace], int], summary: str
    ) -> Callable[..., argparse.Action]:
        verb = verbs.add_parser(name, help=summary)
        add_format(verb)
        verb.set_defaults(execute=execute)
        return verb.add_argument

    add_verb("list", _list, "one line per baseline, of all stores")

    add = add_verb("show", _show, "one baseline file")
    add("file", type=Path, help="the baseline's file")

    add = add_verb("record", _record, "make candidates from the measurements of runs")
    several = "a run folder; several, of one engine commit, are pooled"
    add("folder", type=Path, nargs="+", help=several)
    rehearsed = "what stand-ins made, for rehearsals alone: never read by another session"
    add("--rehearsal", action="store_true", help=rehearsed)
    add("--anew", action="store_true", help="without what was recorded before of the build")

    add = add_verb("promote", _promote, "accept a candidate as baseline")
    add("file", type=Path, help="the candidate's file, as `record` printed it")
    add("--by", required=True, metavar="NAME", help="who accepts it")
    add("--reason", required=True, metavar="WHY", help="why these numbers are right")
    why = "why a loss that the run proved is accepted"
    add("--accept-regression", metavar="REASON", help=why)
    clone = "a clone of the engine: compare with the nearest ancestor"
    add("--engine-repo", type=Path, metavar="DIR", help=clone)
    add("--dry-run", action="store_true", help="show what would change, write nothing")
    add("--rehearsal", action="store_true", help=rehearsed)

    add = add_verb("ready", _ready, "scenarios that runs recorded often enough, one per line")
    add("folder", type=Path, nargs="+", metavar="RUN", help="a run folder")

    summary = "new baselines as a branch or a patch, with their evidence"
    baseline_propose.add_options(verbs.add_parser("propose", help=summary))

    baseline_diff.add_options(verbs.add_parser("diff", help="what moved between two baselines"))
    baseline_history.add_options(
        verbs.add_parser("history", help="all baselines of a scenario, oldest first")
    )

    add = add_verb("retire", _retire, "no longer compare with a baseline")
    add("file", type=Path, help="the baseline's file, which stays in git")
    add("--by", required=True, metavar="NAME", help="who retires it")
    add("--reason", required=True, metavar="WHY", help="why nothing should be compared with it")

    add = add_verb("anchor", _anchor, "pin the baseline that accumulated losses are judged against")
    add("file", type=Path, help="the baseline's file")
    add("--by", required=True, metavar="NAME", help="who pins it")
    add("--reason", required=True, metavar="WHY", help="why this one")


def _list(arguments: argparse.Namespace) -> int:
    stores = {
        "suite": suite_store(),
        "candidate": candidate_store(),
        "own": own_store(),
        "rehearsal": rehearsal_store(),
        "rehearsal candidate": rehearsal_candidate_store(),
    }
    found = [(name, read(path)) for name, store in stores.items() for path in store.list()]
    if arguments.format == "json":
        print_json([{"store": name, **_brief(baseline)} for name, baseline in found])
    elif not found:
        print("no baselines yet; `make local` measures this machine's own")
    else:
        print_table(
            ("store", "hardware", "scenario", "engine", "probes (starts)", "change", "accepted"),
            [(name, *_row(baseline)) for name, baseline in found],
        )
    return 0


def _row(baseline: Baseline) -> tuple[str, ...]:
    change = "retired" if baseline.retired else baseline.change
    return (
        baseline.hardware,
        baseline.scenario,
        f"{baseline.engine.name} {baseline.engine.version}",
        ", ".join(f"{label} ({len(e.runs)})" for label, e in baseline.entries.items()),
        "-" if baseline.accepted_by == NOBODY else change,
        f"{baseline.accepted_at[:10]} by {baseline.accepted_by}",
    )


def _brief(baseline: Baseline) -> dict[str, object]:
    retired = baseline.retired
    return {
        "file": str(baseline.file),
        "hardware": baseline.hardware,
        "scenario": baseline.scenario,
        "engine": baseline.engine.name,
        "version": baseline.engine.version,
        "commit": baseline.engine.commit,
        "synthetic": baseline.synthetic,
        "source": _source(baseline),
        "accepted_by": baseline.accepted_by,
        "accepted_at": baseline.accepted_at,
        "reason": baseline.reason,
        "change": baseline.change,
        "regression": baseline.regression or None,
        "retired": f"{retired.at[:10]} by {retired.by}: {retired.reason}" if retired else None,
        "verdicts": dict(baseline.verdicts),
        "probes": {label: len(entry.runs) for label, entry in baseline.entries.items()},
    }


def _source(baseline: Baseline) -> dict[str, object] | None:
    """How its build was started, as far as that was told."""
    if baseline.source is None:
        return None
    return {name: told for name, told in to_plain(baseline.source).items() if told}


def _show(arguments: argparse.Namespace) -> int:
    baseline = read(arguments.file, allow_sample=True)
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
        fingerprint = sorted(baseline.entries[label].fingerprint.items())
        print("facts: " + ", ".join(f"{name} {value}" for name, value in fingerprint))
    return 0


def _record(arguments: argparse.Namespace) -> int:
    try:
        paths, left_out = record_candidates(
            arguments.folder, rehearsal=arguments.rehearsal, anew=arguments.anew
        )
    except InputError:
        # Starts of a run that proves nothing are as noisy as any.
        for file in _kept_noise(arguments, needed=False):
            print(f"noise: {file}")
        raise
    noise = _kept_noise(arguments, needed=True)
    sessions = {str(path): read(path).sessions for path in paths}
    if arguments.format == "json":
        print_json(
            {
                "candidates": [*sessions],
                "left_out": left_out,
                "sessions": sessions,
                "noise": [str(file) for file in noise],
            }
        )
    else:
        for probe in left_out:
            print(f"left out: {probe}")
        for file in noise:
            print(f"noise: {file}")
        for path, held in sessions.items():
            print(f"candidate: {path}")
            print(few_sessions(held) or f"{counted(held, 'session')}, enough for a baseline")
        print(
            "look at it with `perfgate baseline show`, accept it with `perfgate baseline promote"
            + (" --rehearsal`" if arguments.rehearsal else "`")
        )
    return 0


def _kept_noise(arguments: argparse.Namespace, *, needed: bool) -> list[Path]:
    """The files of the noise history that the runs made; none of a rehearsal's."""
    if arguments.rehearsal:
        return []
    try:
        return keep_noise(arguments.folder)
    except InputError:
        if needed:
            raise
        return []  # why the runs are no use is told already


def _ready(arguments: argparse.Namespace) -> int:
    """What `propose --scenario` takes; nothing where no scenario has enough sessions."""
    runs = [read_run(folder) for folder in arguments.folder]
    scenarios = sorted({scenario for run in runs for scenario in ready(run.records)})
    if arguments.format == "json":
        print_json(scenarios)
    else:
        for scenario in scenarios:
            print(scenario)
    return 0


def _promote(arguments: argparse.Namespace) -> int:
    repo = EngineRepo(arguments.engine_repo) if arguments.engine_repo else None

    def promoted(*, dry_run: bool) -> Promotion:
        return promote(
            arguments.file,
            by=arguments.by,
            reason=arguments.reason,
            accept_regression=arguments.accept_regression,
            dry_run=dry_run,
            repo=repo,
            rehearsal=arguments.rehearsal,
        )

    # What would change is on the screen before anything is written.
    proposed = promoted(dry_run=True)
    if arguments.format == "json":
        done = proposed if arguments.dry_run else promoted(dry_run=False)
        print_json(baseline_diff.plain_promotion(done))
        return 0
    baseline_diff.print_promotion(proposed)
    if arguments.dry_run:
        print(f"would write: {proposed.file}")
        return 0
    file = promoted(dry_run=False).file
    beside = question_files(read(file), file.parents[2])
    for path in beside:
        print(f"questions: {path}")
    _print_written(arguments, "baseline", file, are_several=bool(beside))
    return 0


def _retire(arguments: argparse.Namespace) -> int:
    path = retire(arguments.file, by=arguments.by, reason=arguments.reason)
    _print_written(arguments, "retired", path)
    return 0


def _anchor(arguments: argparse.Namespace) -> int:
    path = pin_anchor(arguments.file, by=arguments.by, reason=arguments.reason)
    _print_written(arguments, "anchor", path)
    return 0


def _print_written(
    arguments: argparse.Namespace, what: str, path: Path, *, are_several: bool = False
) -> None:
    if arguments.format == "json":
        print_json({what: str(path)})
    else:
        print(f"{what}: {path}")
        if not read(arguments.file).synthetic:
            these = "these files so that they are" if are_several else "this file so that it is"
            print(f"commit {these} used elsewhere too")
