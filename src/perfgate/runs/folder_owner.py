"""Folder owner: whether a run folder is one that nobody else can have changed, or will.

perfgate often runs as root. What it writes into a folder of others, or goes on with there, would be
theirs to choose.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.ownership import doubt, user_name
from perfgate.core.untrusted_files import refuse_special


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
        if status.st_uid == os.geteuid():
            found = doubt(path)
        elif status.st_uid == owner:
            found = _writable(status)
        else:
            found = f"it belongs to {user_name(status.st_uid)}"
        if found:
            raise InputError(
                "others could have changed it",
                file=path,
                field="--resume",
                found=found,
                expected=f"a file of {user_name(owner)}, writable by nobody else",
                hint="find out who did that; then measure anew in a new run folder",
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
