"""The run folder: what a session writes down, line by line, so that a kill loses nothing finished.

``run.json`` holds the facts of the session, ``records.jsonl`` one line per finished measurement and
per verdict, ``<scenario>/start-N-<role>/`` the commands, logs and raw results of each fresh start.

perfgate often runs as root. What it writes into a folder of others, or goes on with there, would be
theirs to choose: a run folder is one that nobody else can have changed, or will.
"""

import datetime
import errno
import fcntl
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, Self

from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import (
    append_line,
    cannot_write,
    make_folder,
    read_json,
    require_version,
    sync_folder,
    write_errors_named,
    write_json,
    write_text,
)
from perfgate.core.files.untrusted_files import (
    doubt,
    make_new_folder,
    opened_folder,
    opened_regular,
    refuse_special,
    user_name,
)
from perfgate.core.plain import to_plain
from perfgate.core.programs.environment_variables import recorded
from perfgate.core.redaction import mask_arguments
from perfgate.machine.hardware import Machine
from perfgate.runs.record import (
    SCHEMA_VERSION,
    R,
    Record,
    SetAsideRecord,
    as_line,
    effective,
    read_records,
    records_of,
)

REFERENCES = "references"
CANDIDATES = "candidates"

_FACTS, _RECORDS, _SUMMARY = "run.json", "records.jsonl", "summary.md"
_LOCK, _WORKERS_LOCK = "run.lock", "workers.lock"
PROGRESS = "progress.jsonl"
_OWN_FILES = (_FACTS, _RECORDS, _SUMMARY, _LOCK, _WORKERS_LOCK, PROGRESS)
_WORKERS_END_S = 60.0  # workers of a killed session are ended by execnet after 15 s at the latest
_NO_FOLDER = (errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL)
_LOCKS_MISSING = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
_NO_LOCKS = (
    "its file system has no locks (flock(2)), as some NFS mounts: choose a folder on another one "
    "with --run-dir"
)


def now() -> str:
    """The time as stored everywhere: ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


class RunFolder:
    """One session's folder, held by one session at a time."""

    def __init__(self, path: Path) -> None:
        # A person may name a link; below the folder itself none is followed.
        self.path = Path(os.path.realpath(path))
        self._held: list[int] = []  # descriptors with a lock of this process

    @property
    def id(self) -> str:
        """The run's name: its folder's."""
        return self.path.name

    @classmethod
    def create(cls, path: Path, facts: Mapping[str, object]) -> Self:
        """Make a new run folder and hold it until `close`.

        Raises:
            InputError: no folder can be there, another run is writing there now, or it already
                holds a run.
            RunError: it cannot be written: the disk is full (class ``disk_full``) or read-only, has
                no locks, or this user may not (``unwritable``).
        """
        folder = cls(path)
        with ExitStack() as on_error:
            on_error.callback(folder.close)
            folder._hold("--run-dir")
            if os.path.lexists(folder.path / _FACTS):
                raise InputError(
                    "the folder already holds a run",
                    field="--run-dir",
                    found=path,
                    expected="a new or empty folder",
                    hint="name another folder, or move this one away",
                )
            plain = {"schema_version": SCHEMA_VERSION, "id": folder.id, **facts}
            write_json(folder.path / _FACTS, plain)
            on_error.pop_all()
        return folder

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Hold the folder of an earlier session again, to go on with its run, until `close`.

        Workers of that session that are still ending are waited for.

        Raises:
            InputError: no run is there, one of another schema version, a living session is writing
                to it, or others could have changed it.
        """
        folder = cls(path)
        folder.facts()
        require_own_folder(folder.path, "--resume")
        require_own_files(folder.path, _OWN_FILES)
        with ExitStack() as on_error:
            on_error.callback(folder.close)
            folder._hold("--resume")
            folder._wait_for_workers()
            on_error.pop_all()
        return folder

    def _wait_for_workers(self) -> None:
        """Wait until no worker of a killed session writes any more."""
        deadline = time.monotonic() + _WORKERS_END_S
        with _closed(_lock_file(self.path / _WORKERS_LOCK)) as workers:
            while not _locked(workers):
                if time.monotonic() > deadline:
                    raise InputError(
                        "workers of the previous session are still writing to this folder",
                        field="--resume",
                        found=self.path,
                        hint="end them, or wait until they have ended",
                    )
                time.sleep(0.2)

    def join(self) -> None:
        """Tell whoever would resume the run that this worker is writing to it, until `close`."""
        self._held.append(_lock_file(self.path / _WORKERS_LOCK))
        fcntl.flock(self._held[-1], fcntl.LOCK_SH)

    def begin_group(self, scenario: str) -> None:
        """Make the folder of a scenario's starts, for this process alone until `close`.

        What an ended process left of it is moved aside, and its measurements count no more.

        Raises:
            InputError: another worker of this session measures the scenario.
            RunError: it cannot be made (class ``disk_full`` or ``unwritable``).
        """
        folder = self.path / scenario
        with suppress(FileNotFoundError), _closed(opened_folder(folder)) as left:
            if not _locked(left):
                raise InputError(
                    f"another worker of this session measures {scenario}",
                    field="--dist",
                    expected="one worker for all tests of a scenario",
                    hint="leave out --dist: perfgate distributes the tests itself",
                )
            names = (folder.with_name(f"{scenario}.broken-{number}") for number in count(1))
            aside = next(path for path in names if not os.path.lexists(path))
            self.record(SetAsideRecord(scenario=scenario, folder=aside.name))
            with write_errors_named(aside):
                folder.rename(aside)
        with write_errors_named(folder):
            make_new_folder(folder)
            sync_folder(self.path)
            self._held.append(opened_folder(folder))
            fcntl.flock(self._held[-1], fcntl.LOCK_EX)

    def _hold(self, option: str) -> None:
        """Make the folder, and lock it until `close`."""
        try:
            if not self.path.exists():
                make_folder(self.path.parent)
                with suppress(FileExistsError):
                    make_new_folder(self.path)
                sync_folder(self.path.parent)
            require_own_folder(self.path, option)
            self._held.append(_lock_file(self.path / _LOCK))
            fcntl.flock(self._held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "another run is writing to this folder",
                field=option,
                found=self.path,
                expected="a folder of its own for each run",
                hint="wait for that run, or name another folder",
            ) from None
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                hint = _NO_LOCKS if error.errno in _LOCKS_MISSING else None
                raise cannot_write(self.path, error, hint) from error
            raise InputError(
                f"cannot be a run folder: {error.strerror}",
                field=option,
                found=self.path,
                expected="a folder that this user may write to",
            ) from error

    def discard(self) -> None:
        """Take away the folder of a run that recorded nothing, and let go of it."""
        shutil.rmtree(self.path)
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        while self._held:
            os.close(self._held.pop())

    def record(self, record: Record) -> None:
        """Append one record; it is on disk when this returns."""
        append_line(self.path / _RECORDS, as_line(record, now()), base=self.path / _FACTS)

    def records(self, *, is_short: bool = False) -> list[Record]:
        """The records so far that count; a line cut by a kill is left out.

        What a resumed session measures again, or a replaced worker, counts once.

        Args:
            is_short: read what histories need of them, as `read_records`.

        Raises:
            InputError: a line is damaged, or was changed since it was written; or as `facts`.
        """
        if not os.path.lexists(self.path / _RECORDS):
            return []
        is_rehearsal = bool(self.facts().get("synthetic"))
        files = (self.path / _RECORDS, self.path / _FACTS)
        return effective(read_records(*files, is_rehearsal=is_rehearsal, is_short=is_short))

    def records_of(self, kind: type[R]) -> list[R]:
        """Those of one kind; errors as of `records`."""
        return records_of(kind, self.records())

    def facts(self) -> dict[str, Any]:
        """The content of ``run.json``.

        Raises:
            InputError: it is missing, damaged, or of another schema version.
        """
        hint = "name a folder that a perfgate run wrote"
        plain = read_json(self.path / _FACTS, what="run", hint=hint, is_named=False)
        require_version(self.path / _FACTS, plain, what="run", version=SCHEMA_VERSION, hint=hint)
        return dict(plain)

    def day(self) -> datetime.date:
        """The day on which the run started, in UTC: one for all its processes.

        Raises:
            InputError: as `facts`.
        """
        return datetime.datetime.fromisoformat(self.facts()["started"]).date()

    def write_summary(self, text: str) -> None:
        """Write ``summary.md``."""
        write_text(self.path / _SUMMARY, text)


def _lock_file(path: Path) -> int:
    return opened_regular(path, os.O_RDWR | os.O_CREAT)


@contextmanager
def _closed(handle: int) -> Iterator[int]:
    """A descriptor that is closed at the end of the block."""
    try:
        yield handle
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Whether the lock could be had at once."""
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def require_own_folder(folder: Path, option: str) -> None:
    """Check that a folder belongs to this user, and that no other may write to it.

    Args:
        folder: it is there.
        option: the option that named it.

    Raises:
        InputError: it is another user's, or others may write to it.
        OSError: it cannot be looked at, or is no folder.
    """
    status = folder.stat(follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    found = doubt(folder)
    if found and status.st_uid != os.geteuid() and status.st_uid == _owner_of_new_files(folder):
        found = _writable(status)
    if found:
        raise InputError(
            "others could have put there what a run writes to, or goes on with",
            field=option,
            found=f"{folder}: {found}",
            expected=f"a folder of {user_name(os.geteuid())}, writable by nobody else",
            hint="run perfgate as its owner, or name another folder; if you trust what is in it: "
            f"chmod go-w {folder}, or a copy of your own (cp -r FOLDER COPY)",
        )


def require_own_files(folder: Path, names: Sequence[str]) -> None:
    """Check perfgate's own files in a run folder, those that are there: regular, nobody else's.

    Args:
        folder: the run folder.
        names: of the files.

    Raises:
        InputError: one is a link or a special file, another user's, or others may write to it.
    """
    owner = folder.stat().st_uid
    for path in (folder / name for name in names if os.path.lexists(folder / name)):
        refuse_special(path)
        status = path.lstat()
        mapped = status.st_uid == owner != os.geteuid()
        if found := _writable(status) if mapped else doubt(path):
            raise InputError(
                "others could have changed it",
                file=path,
                field="--resume",
                found=found,
                expected=f"a file of {user_name(owner)}, writable by nobody else",
                hint="find out who did that; then measure again in a new run folder",
            )


def _writable(status: os.stat_result) -> str | None:
    """That others than its owner may write to something; None: they may not."""
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _owner_of_new_files(folder: Path) -> int | None:
    """Whose files are that this process makes there; None: it cannot make any.

    A network file system can map root to another user, whose folders are then its own.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            return os.fstat(probe.fileno()).st_uid
    except OSError:
        return None


def session_facts(
    machine: Machine, arguments: Sequence[str], git: Mapping[str, object]
) -> dict[str, object]:
    """What a run's meaning depends on: machine, versions, git state, arguments, environment."""
    return {
        "started": now(),
        "arguments": mask_arguments(arguments),
        "environment": recorded(os.environ),
        "machine": to_plain(machine),
        "git": git,
        "versions": {name: version(name) for name in ("perfgate", "pytest", "pytest-benchmark")},
        "interpreter": sys.executable,
    }
