"""The folder of the locks: one for the machine, usable by all of its users.

A lock is an flock(2) on an open file: the kernel drops it when the last descriptor of that opening
is closed, however its processes end. The files stay; only tickets are deleted.
"""

import errno
import fcntl
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from perfgate.core.durable_files import disk_errors_named
from perfgate.core.errors import InputError

SETTING = "PERFGATE_LEASES"
# The same for every user, so neither TMPDIR nor whether /run/lock happens to be writable counts.
DEFAULT = Path("/tmp/perfgate-leases")  # noqa: S108 - every file in it is opened without following
_NETWORK = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs"),
    *("panfs", "wekafs", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "fuse.ceph", "ocfs2", "gfs2"),
)
_AT_ONCE_S = 0.005  # between two tries for the guard, which is held for about a millisecond


class LockFile:
    """An open file that can be locked, with a text for messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = _open(path)

    def try_lock(self, *, shared: bool = False) -> bool:
        """Lock it now, or not at all. False also if the file was deleted meanwhile.

        Raises:
            InputError: its file system has no locks.
        """
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self.descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise _unusable(
                self.path.parent, f"{self.path.name} cannot be locked: {error.strerror}"
            ) from error
        if self.is_in_the_folder():
            return True
        self.unlock()
        return False

    def unlock(self) -> None:
        """Unlock it for whoever else has inherited the descriptor, too."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of it; who has inherited the descriptor keeps the lock."""
        os.close(self.descriptor)

    def write(self, text: str) -> None:
        """Replace the text, as far as the disk has room: it is only for messages."""
        with suppress(OSError):
            os.ftruncate(self.descriptor, 0)  # the holder before must not be named for us
            os.pwrite(self.descriptor, text.encode(errors="backslashreplace"), 0)

    def read(self) -> str:
        """The text."""
        return os.pread(self.descriptor, 65536, 0).decode(errors="replace")

    def is_in_the_folder(self) -> bool:
        """Whether the name still means this file; a cleaner of old files may have deleted it."""
        try:
            there = self.path.lstat()
        except FileNotFoundError:
            return False
        here = os.fstat(self.descriptor)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


class LockFolder:
    """The folder; made by `open_folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def file(self, name: str) -> Iterator[LockFile]:
        """The lock file `name`, made if there is none, closed at the end of the block."""
        file = self.open(name)
        try:
            yield file
        finally:
            file.close()

    def open(self, name: str) -> LockFile:
        """The lock file `name`, made if there is none.

        Raises:
            InputError: this user may not make it, or not open it.
            RunError: the disk is full (class ``disk_full``).
        """
        path = self.path / name
        try:
            with disk_errors_named(path):
                return LockFile(path)
        except OSError as error:
            raise _unusable(self.path, f"{name} cannot be opened: {error.strerror}") from error

    @contextmanager
    def guarded(self, until: float) -> Iterator[None]:
        """A block that one process at a time is in, for the milliseconds of taking locks.

        Args:
            until: the monotonic time after which it is given up.

        Raises:
            TimeoutError: somebody is stuck inside.
        """
        while True:
            with self.file("guard.lock") as guard:
                if guard.try_lock():
                    try:
                        yield
                    finally:
                        # Not left to closing: a program that is being started has, for a moment,
                        # a copy of every descriptor.
                        guard.unlock()
                    return
            if time.monotonic() > until:
                raise TimeoutError(f"another process has kept {self.path}/guard.lock locked")
            time.sleep(_AT_ONCE_S)

    def names(self, prefix: str) -> list[str]:
        """Names of the lock files that begin with `prefix`, sorted."""
        return sorted(name for name in os.listdir(self.path) if name.startswith(prefix))  # noqa: PTH208

    def is_held(self, name: str) -> tuple[bool, str]:
        """Whether somebody holds the lock `name` alone, and its text if so. Only when guarded."""
        with self.file(name) as file:
            if file.try_lock(shared=True):
                file.unlock()
                return False, ""
            return True, file.read()


def open_folder(environ: Mapping[str, str]) -> LockFolder:
    """The machine's folder of locks: ``PERFGATE_LEASES``, which must exist, else the default.

    Raises:
        InputError: it is missing, no folder, not writable, or on a network file system.
    """
    setting = environ.get(SETTING)
    if setting:
        folder = Path(setting).resolve()
        if not folder.is_dir():
            raise _unusable(folder, "no such folder")
    else:
        folder = DEFAULT
        try:
            folder.mkdir()
            folder.chmod(0o1777)  # sticky: nobody deletes another's lock
        except FileExistsError:
            if folder.is_symlink() or not folder.is_dir():
                raise _unusable(folder, "it is not a folder") from None
        except OSError as error:
            raise _unusable(folder, f"it cannot be created: {error.strerror}") from error
    kind = _file_system(folder)
    if kind in _NETWORK:
        raise _unusable(
            folder, f"it is on a network file system ({kind}): other nodes' locks would count here"
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise _unusable(folder, "this user may not write to it")
    return LockFolder(folder)


def _unusable(folder: Path, why: str) -> InputError:
    return InputError(
        f"cannot be the folder of the machine's locks: {why}",
        field=SETTING,
        found=folder,
        expected="a folder on a disk of this machine that all of its users may write to",
        hint=f"mkdir -m 1777 {folder}, or name another folder in {SETTING}, the same for all users",
    )


def _file_system(folder: Path) -> str:
    """The kind of file system that `folder` is on; empty: unknown."""
    place = folder.resolve()
    found, depth = "", -1
    for partition in psutil.disk_partitions(all=True):
        mount = Path(partition.mountpoint)
        if len(mount.parts) >= depth and place.is_relative_to(mount):
            found, depth = partition.fstype, len(mount.parts)
    return found


def _open(path: Path) -> int:
    """Open `path` to read and write; make it, for all users, if there is none.

    Never with O_CREAT on a file that exists: in a sticky folder the kernel refuses that for files
    of other users, even to root (proc_sys_fs(5), protected_regular).
    """
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            _make(path)


def _make(path: Path) -> None:
    """Make an empty file that everybody may write to, whole or not at all."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o666)
    try:
        os.fchmod(descriptor, 0o666)  # whatever the umask
        with suppress(FileExistsError):
            os.link(draft, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        raise OSError(error.errno, "its file system knows no hard links") from error
    finally:
        os.close(descriptor)
        draft.unlink()
