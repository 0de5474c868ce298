"""Candidates in words: how many sessions a first baseline lacks, and the next command. Pure."""

import shlex
from collections.abc import Iterator, Sequence

from perfgate.core.verdict import counted
from perfgate.runs.record import (
    CandidateRecord,
    NoiseKeptRecord,
    NotRecordedRecord,
    Record,
    records_of,
)

_NUMBERS = {1: "one", 2: "two"}
WHERE = "on another night or node"


def candidate_lines(records: Sequence[Record]) -> Iterator[str]:
    """A line for each candidate that the run recorded, what it did not record and why, and which
    files of the noise history it wrote.
    """
    for line in _latest(records):
        yield f"{line.scenario}: {progress(line)}"
    left_out = [line.reasons for line in records_of(NotRecordedRecord, records)]
    for reason in left_out[-1] if left_out else ():
        yield f"not recorded: {reason}"
    kept = [line.files for line in records_of(NoiseKeptRecord, records)]
    for file in kept[-1] if kept else ():
        yield f"noise: {file}"


def ready(records: Sequence[Record]) -> tuple[str, ...]:
    """The scenarios that the run recorded often enough for a baseline; none of a rehearsal's."""
    return tuple(
        line.scenario
        for line in _latest(records)
        if line.sessions >= line.wanted and not line.synthetic
    )


def _latest(records: Sequence[Record]) -> Sequence[CandidateRecord]:
    """The last record of each candidate."""
    return [*{line.file: line for line in records_of(CandidateRecord, records)}.values()]


def progress(candidate: CandidateRecord) -> str:
    """How far a candidate is and what comes next."""
    sessions, wanted = candidate.sessions, candidate.wanted
    missing = wanted - sessions
    if missing > 0:
        return (
            f"{sessions} of {counted(wanted, 'session')}; {_NUMBERS.get(missing, missing)} more: "
            f"{candidate.again}, {WHERE}"
        )
    rehearsal = "--rehearsal " if candidate.synthetic else ""
    file = shlex.quote(candidate.file)
    return (
        f"{counted(sessions, 'session')}, enough for a baseline: "
        f"perfgate baseline promote {rehearsal}{file} --by NAME --reason WHY"
    )
