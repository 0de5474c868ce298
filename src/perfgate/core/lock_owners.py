"""Lock owners: which process has a file locked, for messages. By the list of proc_locks(5)."""

import os
from pathlib import Path

from perfgate.core.ownership import user_name

_LOCKS = Path("/proc/locks")


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
