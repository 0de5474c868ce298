"""Launcher: how a command reaches the machine that runs it, and how it ends for certain."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import psutil

from perfgate.command import Command
from perfgate.registry import Registry

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
        """CPU time used so far by the living processes and their reaped children, in seconds."""
        total = 0.0
        for process in self.processes():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

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


class Launcher(ABC):
    """One way to start commands."""

    name: str

    @abstractmethod
    def start(self, command: Command, folder: Path, name: str) -> Job:
        """Start `command`; its files, script and logs go into `folder`.

        Leaves ``<name>.sh`` (the call as a script), ``<name>.out`` (or the file that the command
        names for its standard output) and ``<name>.err`` in `folder`.

        Raises:
            MissingProgram: argv[0] cannot be found or executed.
        """


launcher: Registry[Launcher] = Registry("launcher", "perfgate.launchers")
