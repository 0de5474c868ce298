"""Untrusted files: open what another program may have put in place, in folders that it may change.

No symbolic link is followed, in no part of the path: the caller resolves the folder that it starts
from once. Only regular files are opened: a FIFO would wait for ever, a device may act when opened.
Files that a person names are not for this module: a link among them is that person's own.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from perfgate.core.errors import InputError

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
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
_HINT = "find out who put it there and remove it; then measure anew in a new run folder"


class UntrustedFile(InputError):
    """What is there is not the file or folder that perfgate, or a program of it, would have left.

    A symbolic link, a FIFO, a device, a socket, or a second name (hard link) of another file.
    """


class FileTooLarge(InputError):
    """A file is larger than what is read of its kind."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it; nothing but the file's own content is read.

    Raises:
        FileNotFoundError: there is none.
        UntrustedFile: a part of the path is a link, or the file is not a regular one.
        OSError: it cannot be opened for another reason.
    """
    return os.fdopen(opened_regular(path, os.O_RDONLY), "rb")


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises:
        FileNotFoundError, UntrustedFile, OSError: as `open_regular`.
        FileTooLarge: it is larger; no more than the limit was read.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size  # as much would be allocated as is asked for
        content = file.read(min(size, limit) + 1)
        if len(content) <= limit:
            return content
        raise FileTooLarge(
            "the file is too large to be read",
            file=path,
            found=f"{max(os.fstat(file.fileno()).st_size, len(content))} bytes",
            expected=f"at most {limit} bytes",
            hint="see what the program wrote there; it is not a result of perfgate's programs",
        )


def opened_regular(path: Path, flags: int, mode: int = _NEW_FILE) -> int:
    """A descriptor of a regular file.

    Args:
        path: the file; a relative one starts at the working directory.
        flags: as of `os.open`. A file that is written to must have no other name.
        mode: of a file that is made.

    Raises:
        FileNotFoundError: there is none, and `flags` do not make one.
        UntrustedFile: a part of the path is a link, or the file is not a regular one.
        OSError: it cannot be opened for another reason.
    """
    writes = flags & (os.O_WRONLY | os.O_RDWR) != 0
    with _folder_of(path) as folder:
        # Looked at before it is opened, since opening alone can act on a device.
        with suppress(FileNotFoundError):
            _require_regular(path, _status(path, folder), writes=writes)
        # Truncated only when it is known to be what it should be.
        safe = (flags & ~os.O_TRUNC) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            handle = os.open(path.name, safe, mode, dir_fd=folder)
        except OSError:
            with suppress(FileNotFoundError):
                _require_regular(path, _status(path, folder), writes=writes)
            raise
    try:
        _require_regular(path, os.fstat(handle), writes=writes)
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
        UntrustedFile: a part of the path is a link, or what has the name is no regular file.
        FileExistsError: another process took the name at the same moment.
        OSError: it cannot be made for another reason.
    """
    with _folder_of(path) as folder:
        with suppress(FileNotFoundError):
            _require_regular(path, _status(path, folder), writes=False)
            os.unlink(path.name, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return os.open(path.name, flags, mode, dir_fd=folder)


def make_new_folder(path: Path) -> None:
    """Make one folder that only its owner may write to.

    Raises:
        UntrustedFile: a part of the path is a link, or the name is taken by what is no folder.
        FileExistsError: the folder is there already.
        OSError: it cannot be made for another reason.
    """
    with _folder_of(path) as folder:
        try:
            os.mkdir(path.name, _NEW_FOLDER, dir_fd=folder)
        except FileExistsError:
            _require_folder(path, _status(path, folder))
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
        UntrustedFile: a part of the path is a link, or it is no folder.
        OSError: it cannot be opened for another reason.
    """
    with _folder_of(path) as folder:
        _require_folder(path, _status(path, folder))
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path.name, flags, dir_fd=folder)


def kind_of(status: os.stat_result) -> str:
    """What kind of file it is, in words."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "a regular file")


def refuse_links(path: Path) -> None:
    """Check that no part of a path is a link, nor what is there already a special file.

    Raises:
        UntrustedFile: one is.
        OSError: a folder of the path is missing or cannot be entered.
    """
    with _folder_of(path) as folder, suppress(FileNotFoundError):
        status = _status(path, folder)
        if not stat.S_ISDIR(status.st_mode):
            _require_regular(path, status, writes=False)


@contextmanager
def _folder_of(path: Path) -> Iterator[int]:
    """The folder that holds `path`, entered part by part from the root."""
    whole = path.absolute()
    handle = os.open(whole.anchor, _FOLDER)
    try:
        for part in whole.parents[::-1][1:]:
            try:
                inner = os.open(part.name, _FOLDER, dir_fd=handle)
            except NotADirectoryError:
                status = _status(part, handle)
                if not stat.S_ISREG(status.st_mode):  # a file there is no more than a wrong path
                    _require_folder(part, status)
                raise
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _status(path: Path, folder: int) -> os.stat_result:
    return os.stat(path.name, dir_fd=folder, follow_symlinks=False)


def _require_regular(path: Path, status: os.stat_result, *, writes: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _untrusted(path, status, "a regular file")
    if writes and status.st_nlink > 1:
        raise UntrustedFile(
            "the file has a second name (a hard link), and would be changed under it too",
            file=path,
            found=f"{status.st_nlink} names",
            expected="a file with one name",
            hint=_HINT,
        )


def _require_folder(path: Path, status: os.stat_result) -> None:
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
