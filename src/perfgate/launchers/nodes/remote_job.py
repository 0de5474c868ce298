"""RemoteJob: a program on other nodes, seen through what runs here: srun, or mpirun."""

import math
import re
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper

import psutil

from perfgate.core.durable_files import disk_errors_named
from perfgate.core.errors import RunError
from perfgate.core.untrusted_files import open_regular
from perfgate.launchers.base import Exit, Reason
from perfgate.launchers.local.job import LocalJob, OuterJob
from perfgate.launchers.nodes.node_query import NodeQuery

SIGNAL_BASE = 128  # srun's status for a task that signal N ended is 128 + N
TERM_S = 15.0  # to ask the processes to end; a node that is lost does not answer
EVIDENCE_S = 90.0  # a little less than all of its parts may take, which none ever does

_ENDED = re.compile(
    r"srun: error: \S+: tasks? \S+: (?:Exited with exit code (\d+)|(.+?)(?: \(core dumped\))?)$"
)


class RemoteJob(OuterJob):
    """A started step.

    Its processes here are srun's; what the nodes know of its own is asked there.

    Args:
        srun: the srun call, under its wardens.
        nodes: asks the step's nodes.
    """

    def __init__(self, srun: LocalJob, nodes: NodeQuery) -> None:
        super().__init__(srun)
        self._nodes = nodes
        self._why: Reason | None = None
        self.mark = srun.mark

    def poll(self) -> Exit | None:
        ended = self._outer.poll()
        return None if ended is None else self._of_task(ended)

    def keep_evidence(self, why: str) -> None:
        """As in `Job`: srun's own processes here, then those of the launch on the nodes."""
        self._outer.keep_evidence(why)
        # Where the folder is gone or may not be written, nobody will look for evidence in it.
        with suppress(OSError), disk_errors_named(self.folder):
            self._nodes.evidence(self.mark, self._outer.evidence, EVIDENCE_S)

    def processes(self) -> Sequence[psutil.Process]:
        """Those of srun."""
        return self._outer.processes()

    def cpu_seconds(self) -> float:
        """As in `Job`, read on the nodes."""
        try:
            return sum(map(float, self._nodes.look("cpu", self.mark).split()))
        except (RunError, ValueError):
            return math.nan

    def listens(self, port: int) -> bool:
        """As in `Job`, looked up on the nodes.

        Raises:
            RunError: class ``slurm_unreachable``: they could not be asked.
        """
        return "yes" in self._nodes.look("listens", self.mark, str(port)).split()

    def _end(self, why: Reason, grace_s: float) -> Exit:
        """As in `Job`: its processes on the nodes are asked first, as srun would kill them."""
        if (ended := self.poll()) is not None:
            return ended
        self._why = why
        try:
            if grace_s > 0:
                self._ask_to_end(grace_s)
        except BaseException:
            self._outer.release()  # a second Ctrl-C: the warden ends srun, and srun its tasks
            raise
        return self._of_task(self._outer.stop(grace_s))

    def _ask_to_end(self, grace_s: float) -> None:
        """Ask the processes to end, and wait for that. A node that does not answer is not asked."""
        deadline = time.monotonic() + grace_s
        try:
            self._nodes.look("term", self.mark, seconds=TERM_S)
        except RunError:
            return
        self._outer.until(max(0.0, deadline - time.monotonic()))

    def _of_task(self, ended: Exit) -> Exit:
        """The end of srun as that of its task."""
        if self._why is not None and ended.reason in ("exited", "stopped"):
            ended = replace(ended, reason=self._why)
        return replace(ended, status=self._status_of_task(ended))

    def _status_of_task(self, ended: Exit) -> int | None:
        """The exit status of what srun ran; -N when signal N ended it."""
        if ended.status is None or not SIGNAL_BASE < ended.status < SIGNAL_BASE + 65:
            return ended.status
        status = SIGNAL_BASE - ended.status
        if ended.reason == "exited" and status == -signal.SIGTERM:  # of ranks that ended with one
            with TextIOWrapper(open_regular(self.stderr), errors="replace") as said:
                status = first_end(said) or status
        return status


def first_end(lines: Iterable[str]) -> int | None:
    """Status of the task that ended first, by what srun said; -N: signal N. None: it said nothing.

    When srun ends the other tasks because of one, its own status is that of the others.
    """
    for line in lines:
        found = _ENDED.match(line)
        if found and found[1]:
            return int(found[1])
        if found:
            named = (one for one in signal.valid_signals() if signal.strsignal(one) == found[2])
            return next((-int(one) for one in named), None)
    return None
