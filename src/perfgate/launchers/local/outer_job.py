"""OuterJob: a program elsewhere, seen through the program here that has started it."""

import time

from perfgate.launchers.base import Job
from perfgate.launchers.local.job import LocalJob


class OuterJob(Job):
    """A started program whose logs, and whose end, are those of a program of this machine.

    Args:
        outer: `docker run`, srun or mpirun, under its wardens.
    """

    def __init__(self, outer: LocalJob) -> None:
        self._outer = outer
        self.name = outer.name
        self.folder = outer.folder
        self.stdout = outer.stdout
        self.stderr = outer.stderr
        self._began = time.monotonic()

    @property
    def pid(self) -> int:
        """Process id of the program here; the other's own is of another place."""
        return self._outer.pid

    def _pause(self, seconds: float) -> None:
        self._outer.until(seconds)
