"""Ended run: what a run folder holds once a session has left it, and how that session ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.runs.folder_owner import require_own_folder
from perfgate.runs.record_lines import RecordLine
from perfgate.runs.records import RunFolder

Line = Mapping[str, Any]
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
class RunEnd:
    """How a session said that its run ended.

    Attributes:
        status: its exit status.
        gate: whether every selected test had to have a verdict.
        recording: whether it was to record what later runs are compared with.
        failed: tests, or files of tests, that failed though no verdict of theirs did it.
        bugs: those that ended in a bug of perfgate.
        unwritten: whether something could not be written at the end.
    """

    status: int
    gate: bool
    recording: bool
    failed: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    unwritten: bool = False


@dataclass(frozen=True)
class EndedRun:
    """A run as its folder has it.

    Attributes:
        folder: where it was read from.
        facts: content of ``run.json``.
        records: the lines that count.
        end: None: it was killed, is still going on, or is of a perfgate that did not write it down.
    """

    folder: Path
    facts: Line
    records: Sequence[Line]
    end: RunEnd | None

    @property
    def id(self) -> str:
        """The run's name."""
        return str(self.facts["id"])

    def lines(self, kind: str) -> list[Line]:
        """The lines of one kind."""
        return [line for line in self.records if line["record"] == kind]


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
        if not isinstance(facts.get(name), kind):
            raise InputError(
                "run.json is not whole",
                file=folder.path / "run.json",
                field=name,
                found=repr(facts.get(name))[:80],
                expected="what perfgate writes there",
            )
    records = folder.records()
    return EndedRun(folder.path, facts, records, end_of(records))


def end_of(records: Sequence[Line]) -> RunEnd | None:
    """How the run says that it ended; None: it does not.

    Raises:
        InputError: the record is damaged.
    """
    line = next((one for one in reversed(records) if one["record"] == "ended"), None)
    if line is None:
        return None
    status = line["status"]
    if not isinstance(status, int) or isinstance(status, bool):
        if isinstance(line, RecordLine):
            raise line.damaged("status", "an exit status")
        raise InputError("not an exit status", field="status", found=status)
    return RunEnd(
        status,
        gate=bool(line["gate"]),
        recording=bool(line["recording"]),
        failed=tuple(map(str, line["failed"])),
        bugs=tuple(map(str, line["bugs"])),
        unwritten=bool(line["unwritten"]),
    )
