"""Store lock: one change of a store of baselines at a time, since it is read, merged and written.

An flock(2) on the folder itself: nothing is left in a folder that git tracks, and whoever is killed
lets go of it. Readers need none: a file is written whole or not at all.
"""

import errno
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.files.paths import machine_store

WAIT_S = 60.0  # a promotion takes a second or two
_PAUSE_S = 0.05  # between two tries
# What network file systems answer that lock files by ranges, and no folders (flock(2)).
_NO_LOCKS_OF_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
_DRAFT = re.compile(r"\..+\.json\.[a-z0-9_]{8,16}")  # as `core.files.durable_files` names them


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """A block that one process at a time is in, of those that change what is in `folder`.

    Where the file system locks no folders, by a file in the machine's store.

    Raises:
        InputError: another process has been in it for a minute.
        OSError: the folder cannot be made, or there is no lock to be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            _lock(descriptor, folder)
        except OSError as error:
            if error.errno not in _NO_LOCKS_OF_FOLDERS:
                raise
            file = _file_for(folder)
            os.close(descriptor)
            descriptor = file
            _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def remove_drafts(folder: Path) -> None:
    """Delete what killed processes left of files that they wrote; to be called by who is alone."""
    for file in folder.glob("*/*/.*"):
        if _DRAFT.fullmatch(file.name):
            with suppress(OSError):  # another user's: it is ignored all the same
                file.unlink()


def _lock(descriptor: int, folder: Path) -> None:
    """Lock the open file for this process alone, waiting for another that has it."""
    ends = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > ends:
                raise InputError(
                    "another process is changing the baselines",
                    file=folder,
                    expected=f"that it is done in {WAIT_S:.0f} s",
                    hint="try again when it is done, or end it (`lslocks` lists it); nothing was "
                    "changed",
                ) from None
        time.sleep(_PAUSE_S)


def _file_for(folder: Path) -> int:
    """A file that stands for `folder`, opened."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:24]
    file = machine_store() / "locks" / f"{name}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
