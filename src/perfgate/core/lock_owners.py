"""Lock owners: wait for a file's lock; which process has it, by the list of proc_locks(5)."""

import fcntl
import os
import time
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.ownership import user_name

_LOCKS = Path("/proc/locks")
_PAUSE_S = 0.05


def lock_within(
    descriptor: int,
    wait_s: float,
    problem: str,
    *,
    file: Path,
    undone: str,
) -> None:
    """Lock an open file for this process alone, waiting for who has it.

    Args:
        descriptor: the open file.
        wait_s: how long to wait, in seconds.
        problem: what it means that another has it.
        file: what the lock stands for.
        undone: what was not done for lack of it, as ``nothing was changed``.

    Raises:
        InputError: another process kept it all that time; it says which.
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
                    found=who_locks(descriptor),
                    expected=f"that it is done in {wait_s:.0f} s",
                    hint=f"try again when it is done, or end it; {undone}",
                ) from None
        time.sleep(_PAUSE_S)


def who_locks(descriptor: int) -> str:
    """The process that has the open file locked: ``pid 4711 (python, ada (uid 1000))``."""
    pids = _pids(os.fstat(descriptor))
    return ", ".join(map(_described, pids)) or "a process that cannot be seen from here"


def _pids(file: os.stat_result) -> list[int]:
    """Numbers of the processes, where they are in this pid namespace."""
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        lines = [line.split() for line in _LOCKS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return []
    # "1: FLOCK ADVISORY WRITE 4711 fe:00:1234 0 EOF"; one that waits has "->" as its second word.
    holders = {int(words[4]) for words in lines if words[1] == "FLOCK" and words[5] == place}
    return sorted(pid for pid in holders if pid > 0)


def _described(pid: int) -> str:
    process = Path(f"/proc/{pid}")
    try:
        name = (process / "comm").read_text(errors="replace").strip()
        user = user_name(process.stat().st_uid)
    except OSError:
        return f"pid {pid}, which has ended"  # who inherited the file keeps the lock
    return f"pid {pid} ({''.join(one for one in name if one.isprintable())}, {user})"
