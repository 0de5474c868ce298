"""The folder of the locks: one for the machine, usable by all of its users.

A lock is an flock(2) on an open file: the kernel drops it when the last descriptor of that opening
is closed, however its processes end. The files stay; only tickets are deleted.

Any user may have put anything into the folder, and may own it. It is opened once, and everything in
it by that descriptor, so that nobody can put another folder in its place.
"""

import errno
import fcntl
import os
import stat
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from perfgate.core.durable_files import disk_errors_named
from perfgate.core.errors import InputError
from perfgate.core.lock_owners import who_locks
from perfgate.core.ownership import user_name

SETTING = "PERFGATE_LEASES"
# The same for every user, so neither TMPDIR nor whether /run/lock happens to be writable counts.
DEFAULT = Path("/tmp/perfgate-leases")  # noqa: S108 - every file in it is opened without following
_NETWORK = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs"),
    *("panfs", "wekafs", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "fuse.ceph", "ocfs2", "gfs2"),
)
_LONGEST_TEXT = 65536  # bytes
_AT_ONCE_S = 0.005  # between two tries for the guard, which is held for about a millisecond


class LockFile:
    """An open file that can be locked, with a text for messages."""

    def __init__(self, folder: "LockFolder", name: str, *, make: bool = True) -> None:
        self.path = folder.path / name
        self._folder = folder  # which stays open as long as this is in use
        self.descriptor = _open(folder.descriptor, name, make=make)

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
        """Replace the text, as far as the disk has room: it is only for messages.

        Not that of a file which has another name elsewhere, where it may be of use to somebody.
        """
        with suppress(OSError):
            if os.fstat(self.descriptor).st_nlink == 1:
                os.ftruncate(self.descriptor, 0)  # the holder before must not be named for us
                os.pwrite(self.descriptor, text.encode(errors="backslashreplace"), 0)

    def read(self) -> str:
        """The text, or its beginning."""
        return os.pread(self.descriptor, _LONGEST_TEXT, 0).decode(errors="replace")

    def is_in_the_folder(self) -> bool:
        """Whether the name still means this file; a cleaner of old files may have deleted it."""
        try:
            there = os.lstat(self.path.name, dir_fd=self._folder.descriptor)
        except FileNotFoundError:
            return False
        here = os.fstat(self.descriptor)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def delete(self) -> None:
        """Take its name out of the folder."""
        with suppress(FileNotFoundError):
            os.unlink(self.path.name, dir_fd=self._folder.descriptor)


class LockFolder:
    """The folder, open; made by `open_folder`, closed when nobody uses it any more.

    Attributes:
        path: its path, for messages.
        descriptor: the open folder.
        note: what a person should know of it; empty: nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(path, flags)
        weakref.finalize(self, os.close, self.descriptor)
        seen = os.fstat(self.descriptor)
        self.is_for_all = bool(seen.st_mode & stat.S_IWOTH)
        self.is_sticky = bool(seen.st_mode & stat.S_ISVTX)
        is_anothers = self.is_for_all and seen.st_uid not in (0, os.geteuid())
        self.note = (
            f"the folder of the locks, {path}, belongs to {user_name(seen.st_uid)}, "
            "who can delete others' locks; root can take it over"
            if is_anothers
            else ""
        )

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
            InputError: this user may not make it, or not open it, or it is no file.
            RunError: the disk is full (class ``disk_full``).
        """
        path = self.path / name
        try:
            with disk_errors_named(path):
                return LockFile(self, name)
        except OSError as error:
            raise self._in_the_way(name, error) from error

    @contextmanager
    def existing(self, name: str) -> Iterator[LockFile | None]:
        """The lock file `name`; None: it is gone, or whatever it is, no session made it."""
        try:
            file = LockFile(self, name, make=False)
        except OSError:
            yield None
            return
        try:
            yield file
        finally:
            file.close()

    def _in_the_way(self, name: str, error: OSError) -> InputError:
        why = f"{name} cannot be opened: {error.strerror}"
        try:
            seen = os.lstat(name, dir_fd=self.descriptor)
        except OSError:
            return _unusable(self.path, why)
        return _unusable(
            self.path,
            f"{why}; it belongs to {user_name(seen.st_uid)}",
            hint=f"have its owner or root remove it: rm -r {self.path / name}",
        )

    @contextmanager
    def guarded(self, until: float) -> Iterator[None]:
        """A block that one process at a time is in, for the milliseconds of taking locks.

        Args:
            until: the monotonic time after which it is given up.

        Raises:
            TimeoutError: somebody is stuck inside; with who.
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
                    raise TimeoutError(
                        f"{guard.path}, which a session locks for milliseconds, is kept locked by "
                        f"{who_locks(guard.descriptor)}; its user or root must end that process"
                    )
            time.sleep(_AT_ONCE_S)

    def names(self, prefix: str) -> list[str]:
        """Names of the lock files that begin with `prefix`, sorted."""
        names = os.listdir(self.descriptor)  # noqa: PTH208 - by the descriptor
        return sorted(name for name in names if name.startswith(prefix))

    def delete(self, name: str) -> None:
        """Delete a file, if this user may."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self.descriptor)

    def is_held(self, name: str) -> tuple[bool, str]:
        """Whether somebody holds the lock `name` alone, and its text if so. Only when guarded."""
        with self.existing(name) as file:
            if file is None:
                return False, ""
            if file.try_lock(shared=True):
                file.unlock()
                return False, ""
            return True, file.read()


def open_folder(environ: Mapping[str, str]) -> LockFolder:
    """The machine's folder of locks: ``PERFGATE_LEASES``, which must exist, else the default.

    Raises:
        InputError: it is missing, no folder, not writable, one in which everybody may delete
            others' locks, or on a network file system.
    """
    setting = environ.get(SETTING)
    if setting:
        path = Path(setting).resolve()
        if not path.is_dir():
            raise _unusable(path, "no such folder")
    else:
        path = DEFAULT
        try:
            path.mkdir()
            path.chmod(0o1777)  # sticky: nobody deletes another's lock
        except FileExistsError:
            if path.is_symlink() or not path.is_dir():
                raise _unusable(path, "it is not a folder") from None
        except OSError as error:
            raise _unusable(path, f"it cannot be created: {error.strerror}") from error
    kind = _file_system(path)
    if kind in _NETWORK:
        raise _unusable(
            path, f"it is on a network file system ({kind}): other nodes' locks would count here"
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise _unusable(path, "this user may not write to it")
    try:
        folder = LockFolder(path)
    except OSError as error:
        raise _unusable(path, f"it cannot be opened: {error.strerror}") from error
    if folder.is_for_all and not folder.is_sticky:
        raise _unusable(
            path,
            "everybody may delete others' locks in it: it has no sticky bit",
            hint=f"have its owner or root set it: chmod +t {path}",
        )
    return folder


def _unusable(folder: Path, why: str, hint: str | None = None) -> InputError:
    return InputError(
        f"cannot be the folder of the machine's locks: {why}",
        field=SETTING,
        found=folder,
        expected="a folder on a disk of this machine that all of its users may write to",
        hint=hint
        or f"mkdir -m 1777 {folder}, or name another folder in {SETTING}, the same for all users",
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


def _open(folder: int, name: str, *, make: bool) -> int:
    """Open the file `name` to read and write; with `make`, make it for all users if it is missing.

    Never with O_CREAT on a file that exists: in a sticky folder the kernel refuses that for files
    of other users, even to root (proc_sys_fs(5), protected_regular).
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        try:
            _require_file(os.lstat(name, dir_fd=folder))  # before it: to open a device may do harm
            descriptor = os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise
            _make(folder, name)
            continue
        try:
            _require_file(os.fstat(descriptor))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor


def _require_file(seen: os.stat_result) -> None:
    if not stat.S_ISREG(seen.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def _make(folder: int, name: str) -> None:
    """Make an empty file that everybody may write to, whole or not at all."""
    draft = f".{name}.{uuid.uuid4().hex}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o666, dir_fd=folder)
    try:
        os.fchmod(descriptor, 0o666)  # whatever the umask
        with suppress(FileExistsError):
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        raise OSError(error.errno, "its file system knows no hard links") from error
    finally:
        os.close(descriptor)
        os.unlink(draft, dir_fd=folder)
