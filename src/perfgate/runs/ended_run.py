"""Ended runs: what a run folder, or a folder of them, holds once its session has left it.

Reads; judges nothing. A folder of runs is filled by other sessions, so no link in it is followed.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from perfgate.core.errors import InputError
from perfgate.core.redaction import one_line, visible
from perfgate.runs.record import EndedRecord, R, Record, records_of
from perfgate.runs.run_folder import RunFolder, require_own_folder

T = TypeVar("T")
MOST_RUNS = 366  # that are read, a year of nights: the newest, by name
_MOST_NOTES = 5
# What reports need of run.json, and its types.
_FACTS = {
    "id": str,
    "started": str,
    "machine": dict,
    "versions": dict,
    "arguments": list,
    "git": dict,
}


@dataclass(frozen=True)
class EndedRun:
    """A run as its folder has it.

    Attributes:
        folder: where it was read from.
        facts: content of ``run.json``.
        records: those that count.
    """

    folder: Path
    facts: Mapping[str, Any]
    records: Sequence[Record]

    @cached_property
    def end(self) -> EndedRecord | None:
        """How the run says that it ended; None: it was killed, or is still going on."""
        return end_of(self.records)

    @property
    def id(self) -> str:
        """The run's name."""
        return str(self.facts["id"])

    def records_of(self, kind: type[R]) -> list[R]:
        """The records of one kind."""
        return records_of(kind, self.records)


def end_of(records: Sequence[Record]) -> EndedRecord | None:
    """How a run says that it ended: its last such record counts; None: it does not."""
    return next((record for record in reversed(records) if isinstance(record, EndedRecord)), None)


def read_run(path: Path) -> EndedRun:
    """Read a run.

    Args:
        path: its folder.

    Raises:
        InputError: no run is there, it could be another user's work, a record of it is damaged, was
            changed, or a link is in the way.
    """
    folder = RunFolder(path.absolute())
    facts = folder.facts()
    require_own_folder(folder.path, "RUN")
    for name, kind in _FACTS.items():
        value = facts.get(name)
        # An id is printed, named in reports and made a part of paths.
        if not isinstance(value, kind) or (name == "id" and value != one_line(value)):
            raise InputError(
                "run.json is not whole",
                file=folder.path / "run.json",
                field=name,
                found=repr(value)[:80],
                expected="what perfgate writes there",
            )
    return EndedRun(folder.path, facts, folder.records())


def earlier_runs(
    folder: Path,
    take: Callable[[EndedRun], T],
    *,
    synthetic: bool,
    without: Collection[str] = (),
) -> tuple[tuple[T, ...], tuple[str, ...]]:
    """What `take` makes of each run in `folder` that may stand beside others, and what was left
    out, one line each.

    A run is let go of before the next is read: a folder may hold a year of nights.

    Left out are damaged ones, those that compared two builds or had something injected, and those
    that mock programs made, or that they did not, where the others are of the other kind.

    Args:
        folder: its folders are run folders.
        take: may raise InputError, or KeyError of a fact that a run lacks: the run is left out.
        synthetic: whether to take what mock programs made, and nothing else.
        without: ids of runs that are left out without a word.

    Raises:
        InputError: `folder` is none that can be read.
    """
    root = Path(os.path.realpath(folder))  # a person may name a link; below it none is followed
    try:
        paths = sorted(root.iterdir(), reverse=True)
    except OSError as error:
        raise InputError(
            "the folder of earlier runs cannot be read",
            field="--history",
            found=f"{folder}: {error.strerror}",
            expected="a folder of run folders",
        ) from error
    found: list[T] = []
    notes: list[str] = []
    for path in paths:
        is_hidden = path.name in without or path.name.startswith(".")
        if is_hidden or path.is_symlink() or not path.is_dir():
            continue
        if len(found) == MOST_RUNS:
            notes.append(f"more than {MOST_RUNS} runs in {visible(root.name)}: the newest are read")
            break
        try:
            found.append(take(_comparable(RunFolder(path), synthetic)))
        except (InputError, OSError, KeyError, TypeError, ValueError) as error:
            problem = error.problem if isinstance(error, InputError) else type(error).__name__
            if isinstance(error, KeyError):
                problem = f"run.json lacks {error}"
            notes.append(f"{visible(path.name)}: left out of the history: {problem}")
    more = len(notes) - _MOST_NOTES
    if more > 0:
        notes[_MOST_NOTES:] = [f"{more} more were left out of the history"]
    return tuple(found), tuple(notes)


def _comparable(folder: RunFolder, synthetic: bool) -> EndedRun:
    """A run that may stand beside others; InputError says why it may not."""
    facts = folder.facts()
    if facts.get("id") != folder.id:
        raise InputError("its run.json is of another run", found=str(facts.get("id")))
    if facts.get("synthetic") is not synthetic:
        raise InputError("measured" if synthetic else "mock programs made its numbers")
    for fact, problem in (("ab", "it compared two builds"), ("injected", "something was injected")):
        if facts.get(fact):
            raise InputError(problem)
    return EndedRun(folder.path, facts, folder.records(is_short=True))
