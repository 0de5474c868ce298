"""Launcher: how a command reaches the machine that runs it, and how it ends for certain."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import psutil

from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Json
from perfgate.core.programs import raw_log
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import Program
from perfgate.core.registry import Registry
from perfgate.machine.conditions.watch import NodesWatch
from perfgate.plan.container import Runtime
from perfgate.plan.toolchain import BuildOverride, Toolchain, toolchain_for
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.scenario import Scenario

Reason = Literal["exited", "stopped", "silence", "total", "lost"]

POLL_S = 0.1  # between two looks at a program that runs
STOP_GRACE_S = 10.0


@dataclass(frozen=True)
class Exit:
    """How a program ended.

    Attributes:
        status: exit status of the program; -N when signal N killed it; None if never learnt.
        reason: "exited" by itself, "stopped" by us, ended by us for "silence" or "total" time,
            or "lost": what would have told it was killed.
        duration_s: from start to end.
        leftovers: names of processes that were still there when the program itself had ended,
            and were ended by us; and the shared memory that it left and we removed.
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
    _began: float  # on the monotonic clock

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id of the program itself."""

    @abstractmethod
    def poll(self) -> Exit | None:
        """How it ended, or None while it runs. Never blocks."""

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
        written = written or self._output_size
        size, heard_at = written(), time.monotonic()
        while (ended := self.poll()) is None:
            try:
                if watch is not None:
                    watch()
            except BaseException:
                self.stop()
                raise
            now = time.monotonic()
            if (grown := written()) != size:
                size, heard_at = grown, now
            if total_s is not None and now - self._began >= total_s:
                return self.give_up("total", f"it ran {total_s:g} s")
            if silence_s is not None and now - heard_at >= silence_s:
                return self.give_up("silence", f"it wrote nothing for {silence_s:g} s")
            self._pause(POLL_S)
        return ended

    def until(self, seconds: float) -> Exit | None:
        """Wait until it ends, but not longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while (ended := self.poll()) is None and time.monotonic() < deadline:
            self._pause(POLL_S)
        return ended

    @abstractmethod
    def _pause(self, seconds: float) -> None:
        """Let `seconds` go by, or less when it ends."""

    def _output_size(self) -> tuple[int, ...]:
        return tuple(log.stat().st_size for log in (self.stdout, self.stderr) if log.exists())

    def note_shared_memory(self) -> None:  # noqa: B027 - elsewhere nobody looks
        """Note what memory its processes share, so that it can be removed should all be killed.

        Called while it starts: looking costs a little, and nothing is measured yet.
        """

    @abstractmethod
    def keep_evidence(self, why: str) -> None:
        """Write down what its processes are doing now, and let them go on.

        Best effort: raises nothing but what a full disk gives.

        Args:
            why: one line that says why somebody will want to know.
        """

    def give_up(self, reason: Reason, why: str) -> Exit:
        """Write down, as evidence, what its processes were doing, then stop it."""
        try:
            self.keep_evidence(f"{self.name} is stopped: {why}")
        finally:
            ended = self._end(reason, STOP_GRACE_S)
        return ended

    def stop(self, grace_s: float = STOP_GRACE_S) -> Exit:
        """End the program and everything it started: politely, then for certain. Idempotent."""
        return self._end("stopped", grace_s)

    @abstractmethod
    def _end(self, why: Reason, grace_s: float) -> Exit:
        """Stop it, for that reason; a program that has ended keeps its own."""

    @abstractmethod
    def processes(self) -> Sequence[psutil.Process]:
        """The program and all its living descendants, re-parented ones included."""

    def cpu_seconds(self) -> float:
        """CPU time used so far by the living processes and their reaped children, in seconds.

        NaN where it cannot be known.
        """
        total = 0.0
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def listens(self, port: int) -> bool:
        """Whether one of its processes holds a listening TCP socket on `port`."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                for connection in process.net_connections(kind="tcp"):
                    if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                        return True
        return False

    def tail(self, lines: int = 20) -> tuple[str, ...]:
        """The last lines of its output, standard error last; redacted."""
        return (*raw_log.tail(self.stdout, lines), *raw_log.tail(self.stderr, lines))[-lines:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


@dataclass(frozen=True)
class PlacementRequest:
    """What a fresh start needs a place for.

    Attributes:
        scenario: what is started: its hardware, and how its document launches it.
        folder: where the start's files go; every node must see it under this path.
        seconds: the longest that all of it may take by the scenario's limits.
        tell: says what is waited for, to whoever watches the run.
        nodes: by name those that it must have, as earlier starts that it is compared with; where
            one of them has failed, or there are none, any will do.
    """

    scenario: Scenario
    folder: Path
    seconds: float
    tell: Callable[[str], None]
    nodes: tuple[str, ...] = ()


class Placement(ABC):
    """Where one fresh start runs: the machine or the nodes, for as long as it lasts.

    Attributes:
        request: the start.
        host: name or address that the server listens at, and that clients reach it under.
        facts: what the record says of the place; empty for this machine.
        nodes: names of the nodes, the server's first; empty for this machine.
        watched: given a folder for the watches' own files, watches the nodes while a block runs,
            and raises nothing that goes wrong in watching; None: there are none but this machine.
    """

    request: PlacementRequest
    host: str
    facts: Mapping[str, Json]
    nodes: tuple[str, ...] = ()
    watched: Callable[[Path], AbstractContextManager[NodesWatch]] | None = None

    @property
    def binds(self) -> str:
        """The address that its server listens on, where it is reached under another one."""
        return self.host

    def launched(self, command: Command, locations: Locations) -> Command:
        """The engine's command as it is launched there: on one node itself, on several by ranks.

        Raises:
            InputError: the nodes are not known, or the GPUs do not spread evenly over them.
            MissingProgram: the launching program is not here.
        """
        return wrapped(command, self.request.scenario, locations)

    @abstractmethod
    def start(self, command: Command, folder: Path, name: str) -> Job:
        """Start a program of the engine there; its files, script and logs go into `folder`.

        Leaves ``<name>.sh`` (the call as a script), ``<name>.out`` (or the file that the command
        names for its standard output) and ``<name>.err`` in `folder`.

        Raises:
            MissingProgram: argv[0] cannot be found or executed.
        """

    def start_client(self, command: Command, folder: Path, name: str) -> Job:
        """Start a program that puts load on the server, or prepares that; as `start` does."""
        return self.start(command, folder, name)

    def start_engine_client(self, command: Command, folder: Path, name: str) -> Job:
        """As `start_client`, of a program that comes with the engine: it is where that is."""
        return self.start_client(command, folder, name)

    @abstractmethod
    def free_port(self) -> int:
        """A TCP port of `host`, asked there, that nothing listens on now."""

    def doctor(self) -> Mapping[str, Json] | None:
        """What the preflight finds on the nodes; None: ask here.

        ``machine`` has the first node's facts, ``checks`` its checks, ``observed`` what is not
        judged; a check that failed on another node has that node's name before its own.

        Raises:
            RunError: the nodes could not be asked.
        """
        return None

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
        runtime: what runs containers for it on this machine.
        starts_by: the programs that it starts others with, which no rehearsal plays.
        warnings: of scenarios, and of the engine's release as a person says it, what to warn of
            before they are started, one line each; None: nothing.
    """

    name: str
    here = True
    runtime: Runtime = "none"
    starts_by: tuple[Program, ...] = ()
    warnings: Callable[[Iterable[Scenario], str | None], tuple[str, ...]] | None = None

    def locations(self, tools: Toolchain) -> Locations:
        """Where programs are for this launcher, for commands and for questions about versions.

        Args:
            tools: what will be started, with where its programs are on this machine.
        """
        return tools.locations

    def tools(self, scenario: Scenario, override: BuildOverride | None = None) -> Toolchain:
        """The scenario's programs as this launcher reaches them; arguments as `toolchain_for`."""
        tools = toolchain_for(scenario, override=override)
        return replace(tools, locations=self.locations(tools))

    def with_image(self, image: str) -> "Launcher":
        """The same, with the engine's programs in another image; this one stays as it is.

        Args:
            image: as the launcher's container runtime takes it.

        Raises:
            InputError: it starts programs in no container.
        """
        raise InputError(
            f"--launcher {self.name} starts programs in no container",
            found=f"image {image}",
            expected="the folder of an installation, or a launcher with containers",
            hint="name a folder with bin/, or use --launcher docker or slurm",
        )

    @abstractmethod
    def placed(self, request: PlacementRequest) -> AbstractContextManager[Placement]:
        """A place for one fresh start; nothing of it is left after the block.

        Raises:
            RunError: there is none, or it was lost.
            InputError: what is asked for cannot be had here.
        """


launcher: Registry[Launcher] = Registry("launcher", "perfgate.launchers")
