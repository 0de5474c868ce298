"""Untrusted files: open what another program may have put in place, or a person names; who else
could have written what was found.

Only regular files are read or written: a FIFO would wait for ever, a device never ends. In folders
that programs may change, a symbolic link in the place of the file or folder itself is not followed
(`open_regular`); the folders above it are trusted. A link among the files that a person names, or a
pull request brings, is that person's own (`open_input`). What perfgate finds rather than is told
may start programs as the user, so `doubt` looks at its owner and mode, by stat(2) alone; access
control lists are not looked at.
"""

import errno
import io
import os
import re
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

from perfgate.core.errors import InputError

_ROOT = 0
_NEW_FILE = 0o644
_NEW_FOLDER = 0o755  # writable by its owner alone, whatever the umask
_FILE, _FOLDER = "a regular file", "a folder"
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFREG: _FILE,
    stat.S_IFDIR: _FOLDER,
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
        flags: as of `os.open`; never O_TRUNC, as what is there is looked at when it is open.
        mode: of a file that is made.

    Raises:
        FileNotFoundError: there is none, and `flags` do not make one.
        UntrustedFile: it is a link, or not a regular file.
        OSError: it cannot be opened for another reason.
    """
    safe = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, safe, mode)
    except OSError:
        refuse_special(path)
        raise
    return _checked(handle, path, _require_own)


def _checked(handle: int, path: Path, require: Callable[[Path, os.stat_result], None]) -> int:
    """The descriptor of a file that is what it should be."""
    try:
        require(path, os.fstat(handle))
        os.set_blocking(handle, True)  # programs inherit it
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
        _require_own(path, path.lstat(), _FOLDER)
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
            _require_own(path, path.lstat(), _FOLDER)
        raise


def _kind_of(status: os.stat_result) -> str:
    """What kind of file it is, in words."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")


def refuse_special(path: Path) -> None:
    """Check that what is at a path, if anything, is a regular file.

    Raises:
        UntrustedFile: it is a link, a folder or a special file.
    """
    with suppress(OSError):
        _require_own(path, path.lstat())


def _require_own(path: Path, status: os.stat_result, expected: str = _FILE) -> None:
    """Refuse what is there unless it is itself `_FILE` or `_FOLDER`."""
    found = _kind_of(status)
    if found == expected:
        return
    if stat.S_ISLNK(status.st_mode):
        with suppress(OSError):
            found += f" to {str(path.readlink())!a}"
    raise UntrustedFile(
        f"not {expected}, so it is not opened",
        file=path,
        found=found,
        expected=expected,
        hint=_HINT,
    )


def open_input(path: Path) -> BinaryIO:
    """Open a regular file; one that says it is empty is so.

    Raises:
        InputError: it is a FIFO, a socket or a device.
        OSError: it cannot be opened; it is a folder.
    """
    _require_input(path, path.stat())  # before it is opened: that alone can act on a device
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(_checked(handle, path, _require_input), "rb")
    if os.fstat(handle).st_size > 0:
        return file
    file.close()
    return io.BytesIO()


def read_input(path: Path, limit: int, what: str = "file") -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Args:
        path: the file.
        limit: the most that is read of it.
        what: what it should be, for the message.

    Raises:
        InputError: it is larger, or a FIFO, a socket or a device.
        OSError: it cannot be read; it is a folder.
    """
    why = " (docs/reference/settings.md)"
    with closing(open_input(path)) as file:
        return read_within(file, path, limit, f"too large for a {what}", why)


def _require_input(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            "not a regular file",
            file=path,
            found=_kind_of(status),
            expected="a regular file, or a link to one",
            hint="write what it gives into a file, and name that",
        )


def doubt(path: Path) -> str | None:
    """Why what `path` names could be another user's work; None: it could not, or is not there.

    It should belong to the effective user, to root, or, for root by way of sudo, to who called
    sudo; and nobody else should be able to write to it. Write permission of a group is none of
    somebody else's where that is the owner's private group, as an umask of 002 expects.
    """
    try:
        named = path.lstat()
        if stat.S_ISLNK(named.st_mode):
            if named.st_uid not in _trusted():
                return f"the link belongs to {user_name(named.st_uid)}"
            named = path.stat()
    except OSError:
        return None
    if named.st_uid not in _trusted():
        return f"it belongs to {user_name(named.st_uid)}"
    mode = stat.S_IMODE(named.st_mode)
    if mode & stat.S_IWOTH:
        return f"everybody may write to it (mode {mode:04o})"
    if mode & stat.S_IWGRP and not _is_private(named.st_gid, named.st_uid):
        return f"{_group_name(named.st_gid)} may write to it (mode {mode:04o})"
    return None


def keeps_its_entries(folder: Path) -> bool:
    """Whether nobody else can replace what this user has in `folder`: it is sticky, as /tmp is."""
    try:
        seen = folder.stat()
    except OSError:
        return False
    return seen.st_uid in _trusted() and bool(seen.st_mode & stat.S_ISVTX)


def user_name(uid: int) -> str:
    """A user for messages: ``ada (uid 1000)``."""
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _trusted() -> set[int]:
    user = os.geteuid()
    caller = os.environ.get("SUDO_UID", "") if user == _ROOT else ""
    return {_ROOT, user, *([int(caller)] if re.fullmatch(r"[0-9]{1,10}", caller) else [])}


def _is_private(gid: int, owner: int) -> bool:
    """Whether nobody but the owner is in the group; where it has no name, by its number."""
    import grp
    import pwd

    try:
        group = grp.getgrgid(gid)
        user = pwd.getpwuid(owner)
    except KeyError:
        return gid in (owner, _ROOT)
    return group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}


def _group_name(gid: int) -> str:
    import grp

    try:
        return f"the group {grp.getgrgid(gid).gr_name} (gid {gid})"
    except KeyError:
        return f"the group {gid}"
