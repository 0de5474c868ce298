"""Find and kill what a launch left behind when its wardens were killed: the last resort.

A process is known by the launch's mark in its environment, or because it was seen before. What
cleared its environment and was never seen is beyond this; the wardens, while one lives, miss none.
"""

import contextlib
from collections.abc import Iterable

import psutil

MARK = "PERFGATE_LAUNCH"


def alive(process: psutil.Process) -> bool:
    """Whether it runs: a zombie has ended, and a reused pid is another process."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def marked(mark: str) -> list[psutil.Process]:
    """The living processes of the launch `mark`, those of launches inside it included."""
    found = []
    for process in psutil.process_iter():
        # Other people's processes cannot be read, and are not ours.
        with contextlib.suppress(psutil.Error, OSError):
            words = process.environ().get(MARK, "").split("/")
            if mark in words and alive(process):
                found.append(process)
    return found


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL each that still lives; psutil refuses when the pid is another process by now."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()
