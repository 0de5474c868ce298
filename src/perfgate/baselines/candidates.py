"""Candidates: what was recorded and no person has accepted yet, gathered over sessions.

A first baseline is asked for from several sessions, made on other nights or nodes. Each adds its
starts to the candidate of the same build, content and machine facts; runs stay as they are.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from perfgate.baselines.baseline import MOST_RUNS, Baseline, BaselineRun, Entry
from perfgate.baselines.file import read
from perfgate.baselines.store import Store
from perfgate.core.errors import InputError
from perfgate.core.verdict import Verdict, counted, worst

_MACHINE_FACTS = ("cpu", "cores", "gpus", "driver", "boost_slider")  # as in `Machine.fingerprint`


def keep(store: Store, found: Sequence[Baseline], *, fresh: bool) -> tuple[list[Path], list[str]]:
    """Write candidates, each with the sessions that were recorded of the same before.

    Args:
        store: the store of candidates.
        found: what was recorded now, of at most one build a scenario.
        fresh: begin each again instead.

    Returns:
        their files, and which earlier sessions are not counted any more, and why.

    Raises:
        InputError: an earlier candidate is unusable, or the same measurement would count twice.
    """
    notes = []
    with store.changing():
        gathered = []
        for one in found:
            path = store.path(one.hardware, one.scenario, one.engine.commit)
            before = None if fresh or not path.is_file() else _read(path)
            unlike = mismatches_with(before, one) if before else ()
            if before is not None and unlike:
                counted_not = counted(before.sessions, "session")
                notes.append(
                    f"{one.scenario}: {counted_not} recorded before no longer counted, as facts "
                    f"differ: {'; '.join(unlike)}"
                )
                before = None
            gathered.append(joined(before, one) if before else one)
        # Written only when all of them are known to be right.
        return [store.save(one, merge=False) for one in gathered], notes


def gather(folder: Path, found: Sequence[Baseline], known: Sequence[Store]) -> Sequence[Path]:
    """Write candidates into a new store, each with the sessions that stores know of the same.

    Raises:
        InputError: as `keep`.
    """
    store = Store(folder)
    for other, candidate in product(known, found):
        path = other.path(candidate.hardware, candidate.scenario, candidate.engine.commit)
        if path.is_file():
            keep(store, [read(path)], fresh=False)
    paths, _ = keep(store, found, fresh=False)
    return paths


def joined(before: Baseline, now: Baseline) -> Baseline:
    """The candidate `now` with the sessions of the one before it, of equal facts.

    A run that is recorded again takes its own place; of a probe the newest `MOST_RUNS` starts stay.

    Raises:
        InputError: two runs hold the same measurement.
    """
    now = _named_apart(before, now)
    entries = dict(before.entries)
    verdicts = dict(before.verdicts)
    for label, entry in now.entries.items():
        again = {run.run for run in entry.runs}
        kept = [run for run in _runs(before, label) if run.run not in again]
        together = [(run.run, run) for run in (*kept, *entry.runs)]
        refuse_copies(f"{now.scenario}-{label}", together)
        runs = sorted((*kept, *entry.runs), key=lambda run: run.started)
        entries[label] = replace(entry, runs=tuple(runs[-MOST_RUNS:]))
        if not kept:
            verdicts.pop(label, None)
    for label, verdict in now.verdicts.items():
        known = (verdicts.get(label), verdict)
        verdicts[label] = worst(Verdict(one) for one in known if one is not None).value
    return replace(
        now, entries=entries, verdicts=verdicts, reason=recorded_from(entries), source=now.source
    )


def _named_apart(before: Baseline, now: Baseline) -> Baseline:
    """`now` with names of its runs that no other run has: a folder's name may be used again.

    Two runs of one name are the same if they have a start in common.
    """
    known, new = _starts(before), _starts(now)
    names = {
        name: f"{name}-{re.sub('[^0-9]', '', min(started))[:14]}"
        for name, started in new.items()
        if name in known and not known[name] & started
    }
    entries = {
        label: replace(
            entry,
            runs=tuple(replace(run, run=names.get(run.run, run.run)) for run in entry.runs),
        )
        for label, entry in now.entries.items()
    }
    return replace(now, entries=entries)


def _starts(baseline: Baseline) -> Mapping[str, set[str]]:
    """Name of a run → when its starts began."""
    found: dict[str, set[str]] = defaultdict(set)
    for entry in baseline.entries.values():
        for run in entry.runs:
            found[run.run].add(run.started)
    return found


def recorded_from(entries: Mapping[str, Entry]) -> str:
    """A candidate's reason: the runs that its starts come from, oldest first."""
    runs = sorted((run.started, run.run) for entry in entries.values() for run in entry.runs)
    names = list(dict.fromkeys(name for _, name in runs))
    return f"recorded from {'run' if len(names) == 1 else 'runs'} {', '.join(names)}"


def mismatches_with(before: Baseline, now: Baseline) -> tuple[str, ...]:
    """The facts in which a candidate differs from the one before it; empty: none."""
    if before.engine != now.engine:
        return (f"engine: measured {now.engine}, candidate {before.engine}",)
    found: dict[str, None] = {}
    for label, entry in now.entries.items():
        if label in before.entries:
            known = before.entries[label].differences(entry.fingerprint)
            found.update(dict.fromkeys(one.replace(", baseline ", ", candidate ") for one in known))
    return tuple(found) or unlike_machines({**before.entries, **now.entries})


def unlike_machines(entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """The facts of the machine in which the probes of one scenario differ; empty: none."""
    seen: dict[str, tuple[str, str]] = {}
    differing = []
    for label, entry in entries.items():
        for name in _MACHINE_FACTS:
            value = entry.fingerprint.get(name)
            if value is None:
                continue
            first, known = seen.setdefault(name, (label, value))
            if known != value:
                differing.append(f"{name}: {known} ({first}), {value} ({label})")
    return tuple(differing)


def _runs(baseline: Baseline, label: str) -> Sequence[BaselineRun]:
    return baseline.entries[label].runs if label in baseline.entries else ()


def _read(path: Path) -> Baseline:
    try:
        return read(path)
    except InputError as error:
        hint = "delete the candidate and record its runs again: perfgate baseline record RUN …"
        raise InputError(**{**error.arguments, "hint": hint}) from error


def refuse_copies(name: str, starts: Sequence[tuple[str, BaselineRun]]) -> None:
    """Refuse what counts twice because a run's folder was copied.

    Args:
        name: what was measured, for the message.
        starts: where each is from, and the start.

    Raises:
        InputError: two from different places are one measurement.
    """
    for number, (place, one) in enumerate(starts):
        for known, other in starts[:number]:
            same = (one.started, one.metrics) == (other.started, other.metrics)
            if same and place != known:
                raise InputError(
                    f"the same measurement of {name} is in two runs, and would count twice",
                    found=f"{known}, {place}",
                    expected="different runs, not a copy of one",
                )
