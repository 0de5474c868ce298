"""The verbs of `perfgate baseline`; what runs the short ones."""

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
from perfgate.baselines.noise_history import keep_noise
from perfgate.baselines.recording import record_candidates
from perfgate.cli.baseline import diff, history, promote
from perfgate.cli.output import add_format, answer, table, verb_maker
from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.core.plain import to_plain
from perfgate.core.verdict import counted
from perfgate.reports.candidates import ready
from perfgate.reports.figures import number
from perfgate.runs.ended_run import read_run


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's verbs."""
    make = verb_maker(command)

    def add_verb(
        name: str, execute: Callable[[argparse.Namespace], int], summary: str
    ) -> Callable[..., argparse.Action]:
        verb = make(name, summary, execute)
        add_format(verb)
        return verb.add_argument

    add_verb("list", _list, "list the baselines of all stores")

    add = add_verb("show", _show, "show a baseline file")
    add("file", type=Path, help="the baseline's file")

    add = add_verb("record", _record, "make candidates from runs")
    several = "run folder; several of one engine commit are pooled"
    add("folder", type=Path, nargs="+", help=several)
    rehearsed = "accept results of mocks, for rehearsals"
    add("--rehearsal", action="store_true", help=rehearsed)
    add("--fresh", action="store_true", help="discard earlier sessions of the build")

    summary = "accept a candidate, or make a branch or patch of runs"
    promote.add_options(make("promote", summary))

    add = add_verb("ready", _ready, "list scenarios that runs recorded often enough")
    add("folder", type=Path, nargs="+", metavar="RUN", help="a run folder")

    diff.add_options(make("diff", "show what moved between two baselines"))
    history.add_options(make("history", "list all baselines of a scenario, oldest first"))

    add = add_verb("retire", _retire, "stop comparing with a baseline")
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
    columns = ("store", "hardware", "scenario", "engine", "probes (starts)", "change", "accepted")
    return answer(
        arguments,
        [{"store": name, **_brief(baseline)} for name, baseline in found],
        table(columns, [(name, *_row(baseline)) for name, baseline in found])
        if found
        else "no baselines yet; `make local` measures this machine's own",
    )


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
    retired, engine = baseline.retired, baseline.engine
    alike = ("accepted_by", "accepted_at", "reason", "change")
    return {
        "file": str(baseline.file),
        "hardware": baseline.hardware,
        "scenario": baseline.scenario,
        **{"engine": engine.name, "version": engine.version, "commit": engine.commit},
        "synthetic": baseline.synthetic,
        "source": _source(baseline),
        **{name: getattr(baseline, name) for name in alike},
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
    facts = {label: dict(entry.fingerprint) for label, entry in baseline.entries.items()}
    brief = _brief(baseline)
    texts = [f"{name}: {_in_a_line(value)}" for name, value in brief.items() if value]
    for label, metrics in values.items():
        rows = [
            (metric, lookup(metric).unit, ", ".join(number(value) for value in found))
            for metric, found in metrics.items()
        ]
        texts += [f"\n{label}", table(("metric", "unit", "one value per fresh start"), rows)]
        texts.append(f"facts: {_in_a_line(dict(sorted(facts[label].items())))}")
    return answer(arguments, {**brief, "values": values, "facts": facts}, *texts)


def _in_a_line(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return ", ".join(f"{name} {one}" for name, one in value.items())


def _record(arguments: argparse.Namespace) -> int:
    try:
        paths, left_out = record_candidates(
            arguments.folder, rehearsal=arguments.rehearsal, fresh=arguments.fresh
        )
    except InputError:
        # Starts of a run that proves nothing are as noisy as any.
        for file in _kept_noise(arguments, needed=False):
            print(f"noise: {file}")
        raise
    noise = _kept_noise(arguments, needed=True)
    sessions = {str(path): read(path).sessions for path in paths}
    texts = [f"left out: {probe}" for probe in left_out] + [f"noise: {file}" for file in noise]
    for path, held in sessions.items():
        enough = few_sessions(held) or f"{counted(held, 'session')}, enough for a baseline"
        texts += [f"candidate: {path}", enough]
    option = " --rehearsal" if arguments.rehearsal else ""
    look, accept = "`perfgate baseline show`", f"`perfgate baseline promote{option}`"
    plain = {"candidates": [*sessions], "left_out": left_out, "sessions": sessions}
    return answer(
        arguments,
        {**plain, "noise": [str(file) for file in noise]},
        *texts,
        f"look at it with {look}, accept it with {accept}",
    )


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
    """What `promote --scenario` takes; nothing where no scenario has enough sessions."""
    runs = [read_run(folder) for folder in arguments.folder]
    scenarios = sorted({scenario for run in runs for scenario in ready(run.records)})
    return answer(arguments, scenarios, *scenarios)


def _retire(arguments: argparse.Namespace) -> int:
    return _decide(arguments, "retired", retire)


def _anchor(arguments: argparse.Namespace) -> int:
    return _decide(arguments, "anchor", pin_anchor)


def _decide(arguments: argparse.Namespace, what: str, decision: Callable[..., Path]) -> int:
    path = decision(arguments.file, by=arguments.by, reason=arguments.reason)
    use = (
        []
        if read(arguments.file).synthetic
        else ["commit this file so that it is used elsewhere too"]
    )
    return answer(arguments, {what: str(path)}, f"{what}: {path}", *use)
