"""flock: wait for the lock of an open file, with a limit."""

import fcntl
import time
from pathlib import Path

from perfgate.core.errors import InputError

_PAUSE_S = 0.05


def lock_within(
    descriptor: int,
    wait_s: float,
    problem: str,
    *,
    file: Path,
    undone: str,
    field: str | None = None,
) -> None:
    """Lock an open file for this process alone, waiting for another that has it.

    Args:
        descriptor: the open file.
        wait_s: how long to wait, in seconds.
        problem: what it means that another has it.
        file: what the lock stands for.
        undone: what was not done for lack of it, as ``nothing was changed``.
        field: the option that named it.

    Raises:
        InputError: another process kept it all that time.
        OSError: the file system has no locks.
    """
    ends = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > ends:
                raise InputError(
                    problem,
                    file=file,
                    field=field,
                    expected=f"that it is done in {wait_s:.0f} s",
                    hint=f"try again when it is done, or end it (`lslocks` lists it); {undone}",
                ) from None
        time.sleep(_PAUSE_S)
