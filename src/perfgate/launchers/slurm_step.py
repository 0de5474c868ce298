"""Step: a program on a node of a Slurm job, seen through the srun that runs here."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import psutil

from perfgate.errors import RunError
from perfgate.launchers.base import Exit, Job, Reason
from perfgate.launchers.local_job import LocalJob

Look = Callable[..., str]

SIGNAL_BASE = 128  # srun's status for a task that signal N ended is 128 + N


class Step(Job):
    """A started step.

    Its processes here are srun's; what the node knows of its own is asked there.

    Args:
        srun: the srun call, under its wardens.
        look: asks `slurm_look.py` on the step's node.
    """

    def __init__(self, srun: LocalJob, look: Look) -> None:
        self._srun = srun
        self._look = look
        self.name = srun.name
        self.folder = srun.folder
        self.stdout = srun.stdout
        self.stderr = srun.stderr
        self.mark = srun.mark

    @property
    def pid(self) -> int:
        """Process id of srun; the program's own is another node's."""
        return self._srun.pid

    def poll(self) -> Exit | None:
        ended = self._srun.poll()
        return None if ended is None else _of_task(ended)

    def wait(
        self,
        *,
        silence_s: float | None = None,
        total_s: float | None = None,
        written: Callable[[], object] | None = None,
        watch: Callable[[], None] | None = None,
    ) -> Exit:
        ended = self._srun.wait(silence_s=silence_s, total_s=total_s, written=written, watch=watch)
        return _of_task(ended)

    def give_up(self, reason: Reason, why: str) -> Exit:
        return _of_task(self._srun.give_up(reason, why))

    def stop(self, grace_s: float = 10.0) -> Exit:
        """As in `Job`. srun ends its task at once when it is asked to end itself."""
        return _of_task(self._srun.stop(grace_s))

    def processes(self) -> Sequence[psutil.Process]:
        """Those of srun."""
        return self._srun.processes()

    def cpu_seconds(self) -> float:
        """As in `Job`, read on the node."""
        try:
            return float(self._look("cpu", self.mark))
        except (RunError, ValueError):
            return math.nan

    def listens(self, port: int) -> bool:
        """As in `Job`, looked up on the node."""
        try:
            return self._look("listens", self.mark, str(port)) == "yes"
        except RunError:
            return False


def _of_task(ended: Exit) -> Exit:
    """The end of srun as that of its task."""
    if ended.status is None or ended.status <= SIGNAL_BASE or ended.status >= SIGNAL_BASE + 65:
        return ended
    return replace(ended, status=SIGNAL_BASE - ended.status)
