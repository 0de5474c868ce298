"""MpirunJob: a program on the hosts, seen through the mpirun that runs here."""

import re

from perfgate.core.raw_log import end_of
from perfgate.launchers.base import Exit
from perfgate.launchers.local.job import LocalJob
from perfgate.launchers.nodes.node_query import NodeQuery
from perfgate.launchers.nodes.remote_job import SIGNAL_BASE, RemoteJob

_OF_ITS_OWN = {132, 135}  # no such program, no such folder: neither SIGILL nor SIGBUS
_SAID = re.compile(r"process rank \d+ .{0,300}?exited on signal (\d+)", re.DOTALL)
_TAIL = 8192


class MpirunJob(RemoteJob):
    """Started ranks, or one process: as a step of a Slurm job, but that mpirun tells its end.

    Args:
        mpirun: the mpirun call, under its wardens.
        nodes: asks the hosts of the ranks.
        mark: what the ranks are known by; mpirun itself has another mark.
    """

    def __init__(self, mpirun: LocalJob, nodes: NodeQuery, mark: str) -> None:
        super().__init__(mpirun, nodes)
        self.mark = mark

    def _status_of_task(self, ended: Exit) -> int | None:
        """As the rank that ended first has it."""
        return of_rank(ended.status, end_of(self.stderr, _TAIL))


def of_rank(status: int | None, said: str) -> int | None:
    """The end of mpirun as that of the rank that ended first: -N when signal N ended it.

    Args:
        status: mpirun's: that of the rank, 128 + N after a signal, or one of its own.
        said: what it said last.
    """
    if status is None or not SIGNAL_BASE < status < SIGNAL_BASE + 65:
        return status
    told = _SAID.search(said)
    if told is not None and int(told[1]) == status - SIGNAL_BASE:
        return -int(told[1])
    return status if status in _OF_ITS_OWN else SIGNAL_BASE - status
