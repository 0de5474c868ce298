"""Input files: what a person names or a pull request brings, read within a limit.

A link among them is that person's own and is followed. What is at its end must be a regular file:
a FIFO would wait for ever, a device never ends. One that says it is empty (as `/proc/kmsg` does,
which waits for the kernel) is not read.
"""

import errno
import io
import os
import stat
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from perfgate.core.errors import InputError
from perfgate.core.untrusted_files import kind_of, read_within


def open_input(path: Path) -> BinaryIO:
    """Open a regular file; one that says it is empty is so.

    Raises:
        InputError: it is a FIFO, a socket or a device.
        OSError: it cannot be opened; it is a folder.
    """
    _require_regular(path, path.stat())  # before it is opened: that alone can act on a device
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(handle, "rb")
    try:
        status = os.fstat(handle)
        _require_regular(path, status)
    except BaseException:
        file.close()
        raise
    if status.st_size == 0:
        file.close()
        return io.BytesIO()
    os.set_blocking(handle, True)
    return file


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


def _require_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            "not a regular file",
            file=path,
            found=kind_of(status),
            expected="a regular file, or a link to one",
            hint="write what it gives into a file, and name that",
        )
