"""Told file: what was told last of each series, so that no change is told twice.

What is about to be told is written down before it is posted: whoever is killed between both has
told it, as far as the next call knows. One call at a time has the file.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perfgate.core.durable_files import make_folder, read_json, write_errors_named, write_json
from perfgate.core.errors import InputError
from perfgate.core.flock import lock_within
from perfgate.core.ownership import doubt
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.untrusted_files import opened_regular
from perfgate.reports.series import SeriesState

SCHEMA_VERSION = 1
WAIT_S = 60.0  # a call has it for some 10 s at most
_HINT = "name the file that perfgate notify wrote, or a new one"


@dataclass(frozen=True)
class Sending:
    """A message that was about to be posted.

    Attributes:
        what: in words.
        before: series that it tells of → the state before, None where there was none.
    """

    what: str
    before: Mapping[str, SeriesState | None]


@dataclass(frozen=True)
class Told:
    """The content of the file.

    Attributes:
        schema_version: of this form.
        series: name → the state that was told last, or needed no telling.
        sending: what was about to be posted; None: nothing is.
    """

    schema_version: int = SCHEMA_VERSION
    series: dict[str, SeriesState] = field(default_factory=dict)
    sending: Sending | None = None


class ToldFile:
    """The file, held by one process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Told:
        """What was told; nothing where the file is not there.

        Raises:
            InputError: it is no such file, of an unknown schema version, or could be another
                user's.
        """
        if not os.path.lexists(self._path):
            return Told()
        found = doubt(self._path)
        if found and not self._path.is_symlink():  # a link is refused by who reads it
            raise InputError(
                "others could have changed what was told",
                file=self._path,
                field="--state",
                found=found,
                expected="a file of yours that nobody else may write to",
                hint=f"take it over (chown, chmod go-w), or {_HINT}",
            )
        plain = read_json(self._path, what="state of notifications", hint=_HINT, is_named=False)
        version = plain.get("schema_version") if isinstance(plain, dict) else None
        if version != SCHEMA_VERSION:
            raise InputError(
                "not a state of notifications of a known schema version",
                file=self._path,
                field="--state",
                found=repr(version),
                expected=str(SCHEMA_VERSION),
                hint=_HINT,
            )
        try:
            return from_plain(Told, plain)
        except InputError as error:
            raise InputError(
                error.problem, file=self._path, field=error.field, hint=_HINT
            ) from error

    def write(self, told: Told) -> None:
        """Write it whole; it is on disk when this returns.

        Raises:
            RunError: it cannot be written.
        """
        write_json(self._path, to_plain(told))


@contextmanager
def held(path: Path) -> Iterator[ToldFile]:
    """The file for this process alone; made with its folder where it is missing.

    A file `.NAME.lock` beside it is what is locked, and stays.

    Args:
        path: the file; its folder may be reached by links, the file itself must be none.

    Raises:
        InputError: another call has it for a minute; something else is in its place.
        RunError: it cannot be written there.
    """
    with write_errors_named(path.parent):
        make_folder(path.parent)
    whole = path.parent.resolve() / path.name
    with write_errors_named(whole):
        lock = opened_regular(whole.with_name(f".{whole.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(lock, whole)
        yield ToldFile(whole)
    finally:
        os.close(lock)


def _lock(descriptor: int, path: Path) -> None:
    problem = "another call of perfgate notify has the file"
    lock_within(descriptor, WAIT_S, problem, file=path, field="--state", undone="nothing was told")
