"""DockerJob: a program in a container, seen through the `docker run` that is here."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.raw_log import end_of
from perfgate.launchers.base import Exit, Reason
from perfgate.launchers.docker.calls import DAEMON_FAILED, call, not_started, remove
from perfgate.launchers.local.job import MARK, LocalJob, OuterJob, alive, signal_of

LOOK_S = 10.0

_TAIL = 64 * 1024  # bytes of a log that are searched for what Docker itself says


class DockerJob(OuterJob):
    """A started container.

    Its processes are children of Docker's daemon. They are found by the number that Docker gives,
    where that is a process of this machine that belongs to the container; else nothing is known of
    them.

    Args:
        run: the `docker run`, under its wardens.
        container: the container's name.
        published: the port that Docker has on this machine for it; None: it uses the network here.
    """

    def __init__(self, run: LocalJob, container: str, published: int | None = None) -> None:
        super().__init__(run)
        self.container = container
        self._published = published
        self._main: psutil.Process | None = None
        self._exit: Exit | None = None

    @property
    def could_not_start(self) -> str:
        """What Docker said when it could not start the program; empty: it did."""
        ended = self._outer.poll()
        if ended is None:
            return ""
        return not_started(ended.status, end_of(self.stderr, _TAIL))

    def poll(self) -> Exit | None:
        if self._exit is None:
            ended = self._outer.poll()
            if ended is not None:
                self._exit = self._concluded(ended)
        return self._exit

    def keep_evidence(self, why: str) -> None:
        """As in `Job`, of `docker run` and of the container's processes."""
        self._outer.keep_evidence(why, self.processes())

    def _end(self, why: Reason, grace_s: float) -> Exit:
        """As in `Job`: `docker run` hands SIGTERM on; what has not ended by it is removed."""
        if (ended := self.poll()) is not None:
            return ended
        try:
            ended = self._outer.stop(grace_s)
        finally:
            self._remove()
        ended = self._concluded(ended)
        self._exit = replace(ended, reason=why) if ended.reason == "stopped" else ended
        return self._exit

    def processes(self) -> Sequence[psutil.Process]:
        """Those in the container, its init first; none where they cannot be known."""
        main = self._found()
        if main is None:
            return ()
        try:
            return [one for one in (main, *main.children(recursive=True)) if alive(one)]
        except psutil.NoSuchProcess:
            return ()

    def cpu_seconds(self) -> float:
        """As in `Job`; NaN where the container's processes are not seen from here."""
        return math.nan if self._found() is None else super().cpu_seconds()

    def listens(self, port: int) -> bool:
        """As in `Job`.

        A published port is Docker's for as long as the container runs. Where another user's sockets
        cannot be looked into, a running container is believed: nothing answered at the port before.
        """
        seen = () if self._published == port else self.processes()
        if seen and all(map(_may_see_sockets, seen)):
            return super().listens(port)
        return self._inspected("{{.State.Running}}") == "true"

    def _found(self) -> psutil.Process | None:
        """The first process in the container, as this machine numbers it; looked up once."""
        if self._main is not None and self._main.is_running():
            return self._main
        identity, _, number = self._inspected("{{.Id}} {{.State.Pid}}").partition(" ")
        with suppress(ValueError, psutil.Error):
            process = psutil.Process(int(number)) if int(number or 0) > 0 else None
            if process is not None and self._is_ours(process, identity):
                self._main = process
                return process
        return None

    def _is_ours(self, process: psutil.Process, identity: str) -> bool:
        """Whether the process is in the container: the number may be another machine's."""
        with suppress(OSError):
            if identity in Path(f"/proc/{process.pid}/cgroup").read_text():
                return True
        with suppress(psutil.Error, OSError):
            return self._outer.mark in process.environ().get(MARK, "").split("/")
        return False

    def _inspected(self, shape: str) -> str:
        """What Docker tells of the container; empty where it tells nothing."""
        words = ("container", "inspect", "--format", shape, self.container)
        try:
            return call(words, LOOK_S).strip()
        except (RunError, MissingProgram):
            return ""

    def _concluded(self, ended: Exit) -> Exit:
        """The end of `docker run` as that of the program; the container is gone by then."""
        status = ended.status
        if ended.reason == "exited" and (status is None or status < 0):
            # Something killed docker run itself: the container is left, and its end unknown.
            self._remove()
            return replace(ended, status=None, reason="lost")
        if ended.reason == "lost" or status == DAEMON_FAILED:
            self._remove()
        number = signal_of(status)
        return ended if number is None else replace(ended, status=-number)

    def _remove(self) -> None:
        """End the container for certain; where Docker does not answer, the next run does it."""
        with suppress(RunError, MissingProgram):
            remove([self.container])


def _may_see_sockets(process: psutil.Process) -> bool:
    try:
        process.net_connections(kind="tcp")
    except psutil.Error as error:
        return isinstance(error, psutil.NoSuchProcess)
    return True
