"""Candidates in words: how many sessions a first baseline lacks, and the next command. Pure."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfgate.core.verdict import counted

_NUMBERS = {1: "one", 2: "two"}
WHERE = "on another night or node"


def candidate_lines(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each candidate that the run recorded, what it did not record and why, and which
    files of the noise history it wrote.
    """
    for line in _latest(records):
        yield f"{line['scenario']}: {progress(line)}"
    left_out = [line["reasons"] for line in records if line["record"] == "not_recorded"]
    for reason in left_out[-1] if left_out else ():
        yield f"not recorded: {reason}"
    kept = [line["files"] for line in records if line["record"] == "noise_kept"]
    for file in kept[-1] if kept else ():
        yield f"noise: {file}"


def ready(records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The scenarios that the run recorded often enough for a baseline; none of a rehearsal's."""
    return tuple(
        line["scenario"]
        for line in _latest(records)
        if line["sessions"] >= line["wanted"] and not line["synthetic"]
    )


def _latest(records: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The last line of each candidate."""
    found = {line["file"]: line for line in records if line["record"] == "candidate"}
    return [*found.values()]


def progress(candidate: Mapping[str, Any]) -> str:
    """How far a candidate is and what comes next.

    Args:
        candidate: its `file`, how many `sessions` it has and how many are `wanted`; `again`: the
            command that makes another; `synthetic`: mocks made its numbers.
    """
    sessions, wanted = candidate["sessions"], candidate["wanted"]
    missing = wanted - sessions
    if missing > 0:
        return (
            f"{sessions} of {counted(wanted, 'session')}; {_NUMBERS.get(missing, missing)} more: "
            f"{candidate['again']}, {WHERE}"
        )
    rehearsal = "--rehearsal " if candidate["synthetic"] else ""
    file = shlex.quote(str(candidate["file"]))
    return (
        f"{counted(sessions, 'session')}, enough for a baseline: "
        f"perfgate baseline promote {rehearsal}{file} --by NAME --reason WHY"
    )
