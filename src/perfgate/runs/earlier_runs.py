"""Earlier runs: what a folder of run folders keeps, newest first; what is no run is told and left.

Reads; judges nothing. A folder of runs is filled by other sessions, so no link in it is followed.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.redaction import visible
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.run_folder import RunFolder

MOST_RUNS = 200  # that are read: the newest, by name
_MOST_NOTES = 5


def earlier_runs(
    folder: Path, *, synthetic: bool, without: Collection[str] = ()
) -> tuple[tuple[EndedRun, ...], tuple[str, ...]]:
    """The runs in `folder` that may stand beside others, and what was left out, one line each.

    Left out are damaged ones, those that compared two builds or had something injected, and those
    that stand-ins made, or that they did not, where the others are of the other kind.

    Args:
        folder: its folders are run folders.
        synthetic: whether to take what stand-ins made, and nothing else.
        without: ids of runs that are left out without a word.

    Raises:
        InputError: `folder` is none that can be read.
    """
    root = Path(os.path.realpath(folder))  # a person may name a link; below it none is followed
    try:
        names = sorted((one.name for one in root.iterdir()), reverse=True)
    except OSError as error:
        raise InputError(
            "the folder of earlier runs cannot be read",
            field="--history",
            found=f"{folder}: {error.strerror}",
            expected="a folder of run folders",
        ) from error
    found: list[EndedRun] = []
    notes: list[str] = []
    for name in names:
        if name in without or name.startswith(".") or not _is_folder(root / name):
            continue
        if len(found) == MOST_RUNS:
            notes.append(f"more than {MOST_RUNS} runs in {visible(root.name)}: the newest are read")
            break
        try:
            run = _read(root / name)
        except (InputError, OSError, TypeError, ValueError, KeyError) as error:
            problem = error.problem if isinstance(error, InputError) else type(error).__name__
            notes.append(f"{visible(name)}: left out of the history: {problem}")
            continue
        why = _why_not(run.facts, synthetic=synthetic)
        if why:
            notes.append(f"{visible(name)}: left out of the history: {why}")
        else:
            found.append(run)
    return tuple(found), _some(notes)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _read(path: Path) -> EndedRun:
    folder = RunFolder(path)
    facts = folder.facts()
    if facts.get("id") != path.name:
        raise InputError("its run.json is of another run", found=str(facts.get("id")))
    records = tuple(folder.records())
    return EndedRun(path, facts, records)


def _why_not(facts: Mapping[str, Any], *, synthetic: bool) -> str:
    if facts.get("synthetic") is not synthetic:
        return "measured" if synthetic else "stand-ins made its numbers"
    if facts.get("ab"):
        return "it compared two builds"
    if facts.get("injected"):
        return "something was injected"
    return ""


def _some(notes: list[str]) -> tuple[str, ...]:
    if len(notes) <= _MOST_NOTES:
        return tuple(notes)
    rest = len(notes) - _MOST_NOTES
    return (*notes[:_MOST_NOTES], f"{rest} more were left out of the history")
