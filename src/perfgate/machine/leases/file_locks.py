"""File locks: flock(2) on small files of one folder, the same for all users of the machine.

A lock belongs to the opening of a file: the kernel drops it when the last copy of the descriptor is
closed, however its owners ended. Nothing here unlocks, so a warden that inherited a descriptor
(`kept_open`) keeps the lock until everything below it has ended.
"""

import fcntl
import json
import math
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from perfgate.core.errors import InputError, RunError
from perfgate.core.files import json_text
from perfgate.core.files.durable_files import write_errors_named
from perfgate.core.files.untrusted_files import opened_regular, read_regular, user_name
from perfgate.core.redaction import escaped

SETTING = "PERFGATE_LEASES"
# The same for every user, so neither TMPDIR nor whether /run/lock happens to be writable counts.
DEFAULT = Path("/tmp/perfgate-leases")  # noqa: S108 - every file in it is opened without following
TELL_EVERY_S = 60.0
_PAUSES_S = (0.05, 1.0)  # between two tries: the first, and the longest
_SETTLE_S = 0.1  # another user makes the folder or a file just now, and opens it to all next
_LARGEST_NOTE = 65536  # bytes
_LONGEST_WORD = 120  # characters; anybody may have written the note

_Taken = TypeVar("_Taken")
_guard = threading.Lock()
_held: set[int] = set()  # descriptors of this process's locks, for its wardens


class Busy(Exception):
    """Others have what is needed, in words.

    Attributes:
        patience_s: how long it may be so without a break; then waiting longer will not help.
    """

    def __init__(self, why: str, *, patience_s: float = math.inf) -> None:
        super().__init__(why)
        self.patience_s = patience_s


@dataclass(frozen=True)
class FileLock:
    """A lock that this process holds: its file, and the open descriptor."""

    path: Path
    descriptor: int

    def write(self, **fields: object) -> None:
        """Set fields of the file's note, as far as the disk has room: it is only for messages."""
        text = json.dumps(note_in(self.path) | fields) + "\n"
        with suppress(OSError):
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, text.encode(), 0)


def lock_folder(environ: Mapping[str, str]) -> Path:
    """The machine's folder of locks: ``PERFGATE_LEASES``, which must exist, else the default.

    Raises:
        InputError: it is no folder.
    """
    setting = environ.get(SETTING)
    folder = Path(setting).resolve() if setting else DEFAULT.parent.resolve() / DEFAULT.name
    with _usable(folder):
        if not setting:
            with suppress(FileExistsError):
                folder.mkdir()
                folder.chmod(0o1777)  # whatever the umask; sticky: nobody deletes another's lock
        os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
    return folder


def take(
    files: Mapping[Path, str], count: int, run: str, *, shared: bool = False
) -> tuple[FileLock, ...]:
    """The first `count` of the locks that are free: all of them at once, or none.

    Args:
        files: the files, in the order that all processes take them in → what each stands for.
        count: how many are needed.
        run: who asks, for the messages of others.
        shared: others may hold them, too, who also share them.

    Raises:
        Busy: too few are free; with who has the others.
        InputError: a file cannot be used.
        RunError: the disk is full (class ``disk_full``).
    """
    taken: list[FileLock] = []
    busy: dict[str, list[str]] = {}
    with ExitStack() as stack:
        for path, label in files.items():
            if len(taken) == count:
                break
            descriptor = _locked(path, shared=shared)
            if descriptor is None:
                busy.setdefault(_holder(path), []).append(label)
            else:
                stack.callback(os.close, descriptor)
                taken.append(FileLock(path, descriptor))
        if len(taken) < count:
            raise Busy("; ".join(f"{', '.join(what)} held by {who}" for who, what in busy.items()))
        stack.pop_all()
    for lock in taken:
        lock.write(pid=os.getpid(), user=user_name(os.geteuid()), run=run)
    return tuple(taken)


def let_go(locks: Collection[FileLock]) -> None:
    """Close the locks; processes that inherited them keep them."""
    with _guard:
        for lock in locks:
            _held.discard(lock.descriptor)
            os.close(lock.descriptor)


def delete_unused(path: Path) -> None:
    """Delete the file of a lock that nobody needs again, unless a process still holds it."""
    descriptor = _locked(path, shared=False)
    if descriptor is not None:
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def holding(locks: Collection[FileLock]) -> Iterator[None]:
    """Hand locks on to the wardens that are started while the block runs, then let go of them."""
    with _guard:
        _held.update(lock.descriptor for lock in locks)
    try:
        yield
    finally:
        let_go(locks)


@contextmanager
def kept_open() -> Iterator[tuple[int, ...]]:
    """Descriptors of all locks that this process holds, for `pass_fds` of a warden; copies."""
    with ExitStack() as stack:
        with _guard:
            copies = tuple(os.dup(descriptor) for descriptor in _held)
        for copy in copies:
            stack.callback(os.close, copy)
        yield copies


def wait_until_free(
    take: Callable[[], _Taken],
    what: str,
    wait_s: float,
    tell: Callable[[str], None],
    *,
    failure: str = "gpus_busy",
    hint: str | None = None,
) -> _Taken:
    """What `take` answers as soon as it raises `Busy` no more.

    Args:
        take: takes all locks, or none.
        what: is waited for, in words.
        wait_s: how long to wait, in seconds; 0: not at all.
        tell: says now and then who has them.
        failure: class of the failure when that is over.
        hint: what to do then; None: as the class says.

    Raises:
        RunError: others had them all the time.
    """
    began, reported, pause_s = time.monotonic(), -math.inf, _PAUSES_S[0]
    hopeful = began  # when it last was so that waiting helps
    while True:
        try:
            return take()
        except Busy as error:
            busy = error
        now = time.monotonic()
        hopeful = now if busy.patience_s == math.inf else hopeful
        waited = now - began
        if waited >= wait_s or now - hopeful >= busy.patience_s:
            late = f"{what} did not become free in {waited:.0f} s: {busy}"
            raise RunError(failure, late, hint=hint)
        if waited - reported >= TELL_EVERY_S:
            reported = waited
            tell(f"waiting for {what}: {busy}")
        time.sleep(min(pause_s, wait_s - waited))
        pause_s = min(1.5 * pause_s, _PAUSES_S[1])


def note_in(path: Path) -> dict[str, Any]:
    """The note in a lock's file; empty where there is none. Anybody may have written it."""
    try:
        text = read_regular(path, _LARGEST_NOTE).decode(errors="replace")
        note: dict[str, Any] = json_text.parse_object(text)
    except (OSError, InputError, json_text.JsonError):
        return {}
    return note


def _holder(path: Path) -> str:
    """Who holds a lock, or took it last where several share it: by its note, for messages."""
    note = note_in(path)
    if not note.get("run"):
        return "an unknown process"
    run, pid, user = (
        escaped(str(note.get(name, "unknown"))[:_LONGEST_WORD]) for name in ("run", "pid", "user")
    )
    return f"run {run} (pid {pid}, {user})"


def _locked(path: Path, *, shared: bool) -> int | None:
    """A descriptor that has the file locked; None: another process has."""
    with _usable(path), write_errors_named(path, only_full=True), ExitStack() as stack:
        try:
            descriptor = _opened(path)
        except PermissionError:
            time.sleep(_SETTLE_S)
            descriptor = _opened(path)
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if os.fstat(descriptor).st_nlink == 0:  # deleted meanwhile: not the file of that name
            return None
        stack.pop_all()
        return descriptor


def _opened(path: Path) -> int:
    """The file, made for all users if it is missing.

    Never with O_CREAT on a file that exists: in a sticky folder the kernel refuses that for files
    of other users, even to root (proc_sys_fs(5), protected_regular).
    """
    with suppress(FileExistsError):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o666)
        os.fchmod(descriptor, 0o666)  # whatever the umask
        return descriptor
    return opened_regular(path, os.O_RDWR)


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Turn what keeps a lock or its folder from being used into an error that says so."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot be used for the machine's locks: {error.strerror}",
            field=SETTING,
            found=path,
            expected="a folder on a disk of this machine that all of its users may write to",
            hint="`mkdir -m 1777 FOLDER`, the same for all users; a file in it that belongs to "
            "another user is removed by its owner or root",
        ) from error
