"""Launcher: how a command reaches the machine that runs it, and how it ends for certain."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import psutil

from perfgate.command import Command
from perfgate.errors import RunError
from perfgate.measurement import Json
from perfgate.registry import Registry
from perfgate.scenarios.scenario import Scenario

Reason = Literal["exited", "stopped", "silence", "total", "lost"]


@dataclass(frozen=True)
class Exit:
    """How a program ended.

    Attributes:
        status: exit status of the program; -N when signal N killed it; None if never learnt.
        reason: "exited" by itself, "stopped" by us, ended by us for "silence" or "total" time,
            or "lost": its keeper died.
        duration_s: from start to end.
        leftovers: names of processes that were still there when the program itself had ended,
            and were ended by us.
    """

    status: int | None
    reason: Reason
    duration_s: float
    leftovers: tuple[str, ...] = ()


class Job(ABC):
    """A started program. As context manager it is stopped on every way out."""

    name: str
    folder: Path
    stdout: Path
    stderr: Path

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id of the program itself."""

    @abstractmethod
    def poll(self) -> Exit | None:
        """How it ended, or None while it runs. Never blocks."""

    @abstractmethod
    def wait(
        self,
        *,
        silence_s: float | None = None,
        total_s: float | None = None,
        written: Callable[[], object] | None = None,
        watch: Callable[[], None] | None = None,
    ) -> Exit:
        """Wait until it ends; end it when it writes nothing for `silence_s` or runs `total_s`.

        Args:
            silence_s: longest time without a sign of life.
            total_s: longest time from its start.
            written: what changes with every sign of life; None: the size of its output.
            watch: called again and again; when it raises, the program is stopped first.
        """

    @abstractmethod
    def give_up(self, reason: Reason, why: str) -> Exit:
        """Write down, as evidence, what its processes were doing, then stop it."""

    @abstractmethod
    def stop(self, grace_s: float = 10.0) -> Exit:
        """End the program and everything it started: politely, then for certain. Idempotent."""

    @abstractmethod
    def processes(self) -> Sequence[psutil.Process]:
        """The program and all its living descendants, re-parented ones included."""

    def cpu_seconds(self) -> float:
        """CPU time used so far by the living processes and their reaped children, in seconds.

        NaN where it cannot be known.
        """
        total = 0.0
        for process in self.processes():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def listens(self, port: int) -> bool:
        """Whether one of its processes holds a listening TCP socket on `port`."""
        for process in self.processes():
            try:
                connections = process.net_connections(kind="tcp")
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            if any(
                connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
                for connection in connections
            ):
                return True
        return False

    def tail(self, lines: int = 20) -> tuple[str, ...]:
        """The last lines of its output, standard error last."""
        found: list[str] = []
        for log in (self.stdout, self.stderr):
            if log.is_file():
                found += log.read_text(errors="replace").splitlines()[-lines:]
        return tuple(found[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@dataclass(frozen=True)
class Wanted:
    """What a fresh start needs a place for.

    Attributes:
        scenario: what is started: its hardware, and how its document launches it.
        folder: where the start's files go; every node must see it under this path.
        seconds: the longest that all of it may take by the scenario's limits.
        tell: says what is waited for, to whoever watches the run.
    """

    scenario: Scenario
    folder: Path
    seconds: float
    tell: Callable[[str], None]


class Placement(ABC):
    """Where one fresh start runs: the machine or the nodes, for as long as it lasts.

    Attributes:
        host: name or address that the server listens at, and that clients reach it under.
        facts: what the record says of the place; empty for this machine.
    """

    host: str
    facts: Mapping[str, Json]

    @abstractmethod
    def start(self, command: Command, folder: Path, name: str) -> Job:
        """Start a program of the engine there; its files, script and logs go into `folder`.

        Leaves ``<name>.sh`` (the call as a script), ``<name>.out`` (or the file that the command
        names for its standard output) and ``<name>.err`` in `folder`.

        Raises:
            MissingProgram: argv[0] cannot be found or executed.
        """

    @abstractmethod
    def start_client(self, command: Command, folder: Path, name: str) -> Job:
        """Start a program that puts load on the server, or prepares that; as `start` does."""

    @abstractmethod
    def free_port(self) -> int:
        """A TCP port of `host`, asked there, that nothing listens on now."""

    def require(self) -> None:  # noqa: B027 - this machine is always there
        """Check that the place is still there.

        Raises:
            RunError: it was lost, so that what was just measured on it is not trusted.
        """

    def explained(self, error: RunError) -> RunError:
        """The error, or what happened to the place and so caused it."""
        return error


class Launcher(ABC):
    """One way to start commands.

    Attributes:
        here: whether what it starts runs on this machine, so that this machine's GPUs and load
            matter.
    """

    name: str
    here = True

    @abstractmethod
    def placed(self, wanted: Wanted) -> AbstractContextManager[Placement]:
        """A place for one fresh start; nothing of it is left after the block.

        Raises:
            RunError: there is none, or it was lost.
            InputError: what is asked for cannot be had here.
        """


launcher: Registry[Launcher] = Registry("launcher", "perfgate.launchers")
