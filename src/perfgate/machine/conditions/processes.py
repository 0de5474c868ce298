"""Processes: the process table as it is now, and which part of it is ours. Linux's /proc alone.

One pass over the table reads parents and CPU times together; asking for each process by itself
would cost several passes and mix several moments.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from perfgate.core.cpu_times import TICKS_PER_S

# What starts programs on a node for Slurm and Open MPI: they work for us, and carry no mark.
STARTERS = frozenset({"slurmstepd", "orted", "prted"})


class Process(NamedTuple):
    """One line of the process table.

    Attributes:
        pid: its number.
        parent: its parent's.
        name: its command's name, at most 15 characters.
        cpu_s: user and system time, its own and that of the children it has waited for, in
            seconds. Summed over a tree, each second counts once, however many processes end.
        started: when, in ticks since boot: tells it from a later process of the same number.
    """

    pid: int
    parent: int
    name: str
    cpu_s: float
    started: int = 0


def process_table() -> dict[int, Process]:
    """All processes that can be seen, by pid; one that ends meanwhile may be missing."""
    found = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - a Path for each of thousands is slow
        if entry.isdigit() and (process := _read(int(entry))) is not None:
            found[process.pid] = process
    return found


def tree_of(pid: int, table: Mapping[int, Process]) -> list[Process]:
    """Process `pid` and all its living descendants.

    What perfgate starts stays in its tree: wardens are its children, and adopt what loses its
    parent (`perfgate.launchers.local.warden`).
    """
    return _below([pid], table)


class Marked:
    """Tells our processes by their environment, where they do not descend from this one.

    Ours are those that carry the mark, what starts them for Slurm or Open MPI, and all that is
    below. What once was ours stays it. Any other process is asked for its environment once, and
    again when its name changes: before it has become a program, it has that of what started it.

    Args:
        variable: name of the variable that holds the mark.
        mark: its value.
    """

    def __init__(self, variable: str, mark: str) -> None:
        self._mark = f"{variable}={mark}".encode()
        self._known: dict[int, tuple[int, str, bool]] = {}

    def among(self, table: Mapping[int, Process]) -> list[Process]:
        """Those of the table that are ours."""
        self._known = {pid: self._look(process) for pid, process in table.items()}
        tops = [pid for pid, (_, _, is_ours) in self._known.items() if is_ours]
        above = [table[table[pid].parent] for pid in tops if table[pid].parent in table]
        starters = [one.pid for one in above if one.name in STARTERS]
        ours = _below([*starters, *tops], table)
        self._known |= {process.pid: (process.started, process.name, True) for process in ours}
        return ours

    def _look(self, process: Process) -> tuple[int, str, bool]:
        known = self._known.get(process.pid)
        if known is not None and known[0] == process.started:
            _, name, is_ours = known
            if is_ours or name == process.name:
                return known
        return process.started, process.name, self._carries(process.pid)

    def _carries(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - as below
                return self._mark in file.read().split(b"\0")
        except OSError:  # it has ended, or is another person's
            return False


def _below(tops: Iterable[int], table: Mapping[int, Process]) -> list[Process]:
    """These processes and all their living descendants, each once."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found = dict.fromkeys(pid for pid in tops if pid in table)
    left = list(found)
    for pid in left:  # grows while it is walked
        new = [child for child in children.get(pid, ()) if child not in found]
        found |= dict.fromkeys(new)
        left += new
    return [table[pid] for pid in found]


def pid_namespace() -> str:
    """The namespace that process numbers seen here are of; empty where it cannot be known."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def began(pid: int) -> int | None:
    """When a process started, as of `Process.started`; 0: it is a zombie.

    It tells a process from a reuse of its number. None: there is none, or it is hidden.
    """
    seen = _stat(pid)
    if seen is None:
        return None
    return 0 if seen[1][0] in "ZX" else int(seen[1][19])


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


def _read(pid: int) -> Process | None:
    seen = _stat(pid)
    if seen is None:
        return None
    name, fields = seen
    ticks = sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return Process(pid, int(fields[1]), name, ticks / TICKS_PER_S, int(fields[19]))


def _stat(pid: int) -> tuple[str, list[str]] | None:
    """Name, and the fields after it, of a process; proc_pid_stat(5) numbers the first of them 3."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
            line = file.read().decode(errors="replace")
    except OSError:  # it has ended, or the table is hidden from us
        return None
    head, _, tail = line.rpartition(")")  # the name may hold anything, brackets and blanks too
    return head.partition("(")[2], tail.split()
