"""Processes: the process table as it is now, and which part of it is ours. Linux's /proc alone.

One pass over the table reads parents and CPU times together; asking for each process by itself
would cost several passes and mix several moments.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """One line of the process table.

    Attributes:
        pid: its number.
        parent: its parent's.
        name: its command's name, at most 15 characters.
        cpu_s: user and system time, its own and that of the children it has waited for, in
            seconds. Summed over a tree, each second counts once, however many processes end.
    """

    pid: int
    parent: int
    name: str
    cpu_s: float


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
    parent (`perfgate.launchers.warden`).
    """
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    found = [table[pid]] if pid in table else []
    for process in found:  # grows while it is walked
        found += children.get(process.pid, [])
    return found


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
            line = file.read().decode(errors="replace")
    except OSError:  # it has ended, or the table is hidden from us
        return None
    # The name may hold anything, brackets and blanks too; proc_pid_stat(5) numbers the fields.
    head, _, tail = line.rpartition(")")
    fields = tail.split()
    ticks = sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return Process(pid, int(fields[1]), head.partition("(")[2], ticks / TICKS_PER_S)
