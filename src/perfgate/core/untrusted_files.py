"""Untrusted files: open what another program may have put in place, in folders that it may change.

A symbolic link in the place of the file or folder itself is not followed; the folders above it are
trusted. Only regular files are read or written, so that nobody waits for a FIFO. Files that a
person names are not for this module: a link among them is that person's own.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from perfgate.core.errors import InputError

_NEW_FILE = 0o644
_NEW_FOLDER = 0o755  # writable by its owner alone, whatever the umask
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_HINT = "find out who put it there and remove it; then measure again in a new run folder"


class UntrustedFile(InputError):
    """What is there is not the file or folder that perfgate, or a program of it, would have left.

    A symbolic link, a FIFO, a device or a socket.
    """


class FileTooLarge(InputError):
    """A file is larger than what is read of its kind."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it; nothing but the file's own content is read.

    Raises:
        FileNotFoundError: there is none.
        UntrustedFile: it is a link, or not a regular file.
        OSError: it cannot be opened for another reason.
    """
    return os.fdopen(opened_regular(path, os.O_RDONLY), "rb")


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises:
        FileNotFoundError, UntrustedFile, OSError: as `open_regular`.
        FileTooLarge: it is larger.
    """
    hint = "see what the program wrote there; it is not a result of perfgate's programs"
    with open_regular(path) as file:
        return read_within(file, path, limit, "the file is too large to be read", hint=hint)


def read_within(
    file: BinaryIO, path: Path, limit: int, problem: str, why: str = "", hint: str | None = None
) -> bytes:
    """The content of an open file of at most `limit` bytes; a larger one is not read.

    Args:
        file, path: the file.
        limit: the most that is read.
        problem: what is wrong where it is larger.
        why: follows the limit in the message.
        hint: the next step then.

    Raises:
        FileTooLarge: it is larger.
    """
    size = file.seek(0, os.SEEK_END)  # as much would be allocated as is asked for
    file.seek(0)
    content = file.read(size + 1) if size <= limit else b""
    if max(size, len(content)) <= limit:
        return content
    raise FileTooLarge(
        problem,
        file=path,
        found=f"{max(size, len(content))} bytes",
        expected=f"at most {limit} bytes{why}",
        hint=hint,
    )


def opened_regular(path: Path, flags: int, mode: int = _NEW_FILE) -> int:
    """A descriptor of a regular file.

    Args:
        path: the file.
        flags: as of `os.open`.
        mode: of a file that is made.

    Raises:
        FileNotFoundError: there is none, and `flags` do not make one.
        UntrustedFile: it is a link, or not a regular file.
        OSError: it cannot be opened for another reason.
    """
    # Truncated only when it is known to be what it should be.
    safe = (flags & ~os.O_TRUNC) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, safe, mode)
    except OSError:
        refuse_special(path)
        raise
    try:
        _require_regular(path, os.fstat(handle))
        os.set_blocking(handle, True)  # programs inherit it
        if flags & os.O_TRUNC:
            os.ftruncate(handle, 0)
    except BaseException:
        os.close(handle)
        raise
    return handle


def created_regular(path: Path, mode: int = _NEW_FILE) -> int:
    """A descriptor of a new, empty file to write to; a regular file of its name is removed first.

    Raises:
        UntrustedFile: what has the name is no regular file.
        FileExistsError: another process took the name at the same moment.
        OSError: it cannot be made for another reason.
    """
    refuse_special(path)
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def make_new_folder(path: Path) -> None:
    """Make one folder that only its owner may write to.

    Raises:
        UntrustedFile: the name is taken by a link, or by what is no folder.
        FileExistsError: the folder is there already.
        OSError: it cannot be made for another reason.
    """
    try:
        path.mkdir(_NEW_FOLDER)
    except FileExistsError:
        _require_folder(path)
        raise


def make_new_folders(path: Path) -> None:
    """Make a folder as `make_new_folder` does, and those above it that are missing.

    Raises:
        UntrustedFile, FileExistsError, OSError: as `make_new_folder`.
    """
    try:
        make_new_folder(path)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process made it meanwhile
            make_new_folders(path.parent)
        make_new_folder(path)


def opened_folder(path: Path) -> int:
    """A descriptor of a folder, to lock it or to look into it.

    Raises:
        FileNotFoundError: there is none.
        UntrustedFile: it is a link, or no folder.
        OSError: it cannot be opened for another reason.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        with suppress(NotADirectoryError):  # a file above it is no more than a wrong path
            _require_folder(path)
        raise


def kind_of(status: os.stat_result) -> str:
    """What kind of file it is, in words."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "a regular file")


def refuse_special(path: Path) -> None:
    """Check that what is at a path, if anything, is a regular file.

    Raises:
        UntrustedFile: it is a link, a folder or a special file.
    """
    with suppress(OSError):
        _require_regular(path, path.lstat())


def _require_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _untrusted(path, status, "a regular file")


def _require_folder(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise _untrusted(path, status, "a folder")


def _untrusted(path: Path, status: os.stat_result, expected: str) -> UntrustedFile:
    found = kind_of(status)
    if stat.S_ISLNK(status.st_mode):
        with suppress(OSError):
            found += f" to {str(path.readlink())!a}"
    return UntrustedFile(
        f"not {expected}, so it is not opened",
        file=path,
        found=found,
        expected=expected,
        hint=_HINT,
    )
