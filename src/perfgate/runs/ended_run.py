"""Ended run: what a run folder holds once a session has left it, and how that session ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.runs.folder_owner import require_own_folder
from perfgate.runs.record import EndedRecord, R, Record, records_of
from perfgate.runs.run_folder import RunFolder

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
    return next((one for one in reversed(records) if isinstance(one, EndedRecord)), None)


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
    return EndedRun(folder.path, facts, folder.records())
