"""Process identity: which process a number stood for, and whether that one is still there."""

import os
from pathlib import Path


def pid_namespace() -> str:
    """The namespace that process numbers seen here are of; empty where it cannot be known."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def began(pid: int) -> int | None:
    """Start of a process in clock ticks (proc_pid_stat(5), field 22); 0: it is a zombie.

    It tells a process from a reuse of its number. None: there is none, or it is hidden.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return 0 if fields[0] in "ZX" else int(fields[19])


def lives(pid: int, start: int) -> bool:
    """Whether the process that began then is there; other users' may be hidden from us."""
    seen = began(pid)
    if seen is not None:
        return seen == start
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
