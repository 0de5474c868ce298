"""Folder owner: whether a run folder is one that nobody else can have changed, or will.

perfgate often runs as root. What it writes into a folder of others, or goes on with there, would be
theirs to choose.
"""

import os
import pwd
import stat
import tempfile
from collections.abc import Collection
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.untrusted_files import refuse_links

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


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
        raise NotADirectoryError(None, "Not a directory", str(folder))
    if status.st_uid != os.geteuid() and status.st_uid != _owner_of_new_files(folder):
        raise InputError(
            "the run folder belongs to another user",
            field=option,
            found=f"{folder}, of {_user(status.st_uid)}",
            expected=f"a folder of {_user(os.geteuid())}, as whom perfgate runs",
            hint="run perfgate as that user; or, if you trust what is in it, use a copy of your "
            "own (cp -r FOLDER COPY)",
        )
    _require_mode(folder, status, option)


def require_own_content(folder: Path, files: Collection[str]) -> None:
    """Check what is directly in a run folder: no links, no special files, nothing of others.

    Args:
        folder: the run folder.
        files: the names of perfgate's own files, which nobody else may write to.

    Raises:
        InputError: something is not as perfgate leaves it.
    """
    owner = folder.stat().st_uid
    for entry in sorted(folder.iterdir()):
        refuse_links(entry)
        status = entry.stat(follow_symlinks=False)
        if status.st_uid not in (owner, os.geteuid()):
            raise InputError(
                "it belongs to another user than the run folder",
                file=entry,
                field="--resume",
                found=_user(status.st_uid),
                expected=_user(owner),
                hint="find out who put it there; then measure anew in a new run folder",
            )
        if entry.name in files:
            _require_mode(entry, status, "--resume")


def _require_mode(path: Path, status: os.stat_result, option: str) -> None:
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise InputError(
            "others may write there, so what is in it may be theirs",
            field=option,
            found=f"{path}, mode {stat.S_IMODE(status.st_mode):04o}",
            expected="writable by its owner alone",
            hint=f"chmod go-w {path}, if you trust what is in it; or name another folder",
        )


def _owner_of_new_files(folder: Path) -> int | None:
    """Whose files are that this process makes there; None: it cannot make any.

    A network file system can map root to another user, whose folders are then its own.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            return os.fstat(probe.fileno()).st_uid
    except OSError:
        return None


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
