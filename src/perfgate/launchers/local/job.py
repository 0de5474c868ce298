"""LocalJob: a program running on this machine, as seen through its warden's two pipes.

OuterJob: a program elsewhere, seen through the program here that has started it.

`write_evidence`: what the processes of a program were doing when it hung, or took too long. State,
place in the kernel and command line of each; then the Python stacks, where `py-spy` is installed.
`look.py` reads them, beside perfgate: /proc can block for ever on a process that is stuck in the
kernel. Environments are not written, and all that is written is redacted.
"""

import contextlib
import io
import json
import os
import select
import subprocess
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from perfgate.core.errors import RunError
from perfgate.core.files.durable_files import write_errors_named
from perfgate.core.files.untrusted_files import opened_regular
from perfgate.core.programs import raw_log
from perfgate.core.programs.program_query import Answer, ask_here
from perfgate.core.redaction import mask_arguments, redact
from perfgate.launchers.base import POLL_S, Exit, Job, Reason
from perfgate.launchers.local.shared_memory import SharedMemory

LOOK = Path(__file__).parents[1] / "look.py"
STACKS_S = 10.0  # all stack dumps together
EVIDENCE_S = 20.0  # states and stacks; a hung program must not make perfgate hang
STARTED_WITHIN_S = 60.0  # the warden starts in 50 ms; a machine under full load is slower
WARDEN_S = 30.0  # beyond the grace: the warden kills for 20 s before it gives up
LOST_S = 10.0
TO_DIE_S = 5.0
MARK = "PERFGATE_LAUNCH"  # of a launch, in the environment of all that it starts
SIGNAL_BASE, HIGHEST_SIGNAL = 128, 64  # a shell's status for a signal, as others use it, too


class LocalJob(Job):
    """A started program.

    The open control pipe keeps it alive: when that closes, because perfgate has ended in whatever
    way or has dropped the job, the warden ends everything.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        warden: subprocess.Popen[bytes],
        pipes: tuple[io.FileIO, io.FileIO],
        mark: str,
    ) -> None:
        self.name = name
        self.folder = folder
        self.stdout = folder / f"{name}.out"
        self.stderr = folder / f"{name}.err"
        self.evidence = folder / f"{name}.evidence.txt"
        self.mark = mark
        self._warden = warden
        self._wardens = [psutil.Process(warden.pid)]
        self._control, self._status = pipes
        os.set_blocking(self._status.fileno(), False)
        self._memory = SharedMemory()
        self._began = time.monotonic()
        self._lock = threading.RLock()  # a signal handler may stop the job in the middle of a poll
        self._unread = b""
        self._deaf = False  # the status pipe is closed: no warden is left
        self._told: dict[str, dict[str, Any]] = {}
        self._seen: set[psutil.Process] = set()
        self._killed: set[str] = set()
        self._lost_at: float | None = None
        self._why: Reason | None = None
        self._exit: Exit | None = None

    def begin(self, call: dict[str, Any]) -> dict[str, Any]:
        """Have the warden start the program; its answer: `started` or `failed`.

        Raises:
            RunError: the warden gave no answer.
        """
        self._send(call)
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not (self._told or self._deaf) and time.monotonic() < deadline:
            self._pause(POLL_S)
            self._hear()
        if not self._told:
            how = "ended first" if self._deaf else f"did not in {STARTED_WITHIN_S:.0f} s"
            why = f"the process that starts {call['argv'][0]} {how}"
            raise RunError("killed" if self._deaf else "hang", why, evidence=self.tail(5))
        if "started" in self._told:
            with contextlib.suppress(psutil.NoSuchProcess):
                self._wardens.append(psutil.Process(self._told["started"]["warden"]))
            self.processes()
        return next(iter(self._told.values()))

    @property
    def pid(self) -> int:
        return int(self._told["started"]["pid"])

    def poll(self) -> Exit | None:
        with self._lock:
            if self._exit is None:
                self._hear()
            if self._exit is None and self._deaf:
                self._exit = self._conclude() if "gone" in self._told else self._rescue()
                if self._exit is not None:
                    self.release()
            return self._exit

    def processes(self) -> Sequence[psutil.Process]:
        found: dict[psutil.Process, None] = {}  # keeps parents before children
        for warden in self._wardens:
            with contextlib.suppress(psutil.NoSuchProcess):
                found |= dict.fromkeys(warden.children(recursive=True))
        living = [one for one in found if one not in self._wardens and alive(one)]
        self._seen.update(living)
        return living

    def cpu_seconds(self) -> float:
        """As in `Job`, with what the wardens collected: orphans, and the program when it ended."""
        total = super().cpu_seconds()
        for warden in self._wardens:
            with contextlib.suppress(psutil.NoSuchProcess):
                times = warden.cpu_times()
                total += times.children_user + times.children_system
        return total

    def listens(self, port: int) -> bool:
        """As in `Job`; a server that is ready, and measured by nobody, has its memory looked at.

        Else what it leaves there, should it crash later, could not be told from others' files.
        """
        found = super().listens(port)
        if found:
            self.note_shared_memory()
        return found

    def note_shared_memory(self) -> None:
        self._memory.look([process.pid for process in self.processes()])

    def release(self) -> None:
        """Close the pipes. A program that still runs is ended by its warden."""
        self._control.close()
        self._status.close()
        self._deaf = True

    def abandon(self) -> None:
        """Give up a program that could not be started, for certain."""
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._warden.wait(WARDEN_S)
        kill([*self._wardens, *marked(self.mark)])
        self.release()
        with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel
            self._warden.wait(TO_DIE_S)

    def _end(self, why: Reason, grace_s: float) -> Exit:
        self._why = self._why or why
        try:
            self._send({"stop_within_s": grace_s})
            ended = self.until(grace_s + WARDEN_S)
            if ended is None:  # its warden does not answer: stopped, or stuck
                self.processes()  # to have seen them
                kill(self._wardens)
                ended = self.until(WARDEN_S)
        except BaseException:
            self._control.close()  # a second Ctrl-C: the warden ends everything without us
            raise
        if ended is None:
            family = f"{self.name} and its warden (pid {self._warden.pid})"
            raise RunError("hang", f"{family} could not be killed")
        return ended

    def keep_evidence(self, why: str, also: Sequence[psutil.Process] = ()) -> None:
        """As in `Job`; `also`: processes elsewhere that belong to it."""
        heading = f"{datetime.now().astimezone().isoformat(timespec='seconds')} {why}"
        pids = [process.pid for process in (*self.processes(), *also)]
        answer = ask_here(evidence_argv(self.mark, pids), EVIDENCE_S)
        write_evidence(self.evidence, heading, answer)

    def _send(self, message: dict[str, Any]) -> None:
        """Write to the warden; one that has died is noticed by `poll`."""
        left = json.dumps(message).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while left and not self._control.closed:
                left = left[os.write(self._control.fileno(), left) :]

    def _hear(self) -> None:
        """Take what the warden has told, without waiting."""
        while not self._deaf:
            try:
                chunk = os.read(self._status.fileno(), 65536)
            except BlockingIOError:
                return
            self._deaf = not chunk
            *lines, self._unread = (self._unread + chunk).split(b"\n")
            for message in map(json.loads, lines):
                self._told.setdefault(message["event"], message)

    def _pause(self, seconds: float) -> None:
        """Wait until the warden tells something, but not longer."""
        if self._deaf:
            time.sleep(min(seconds, 0.02))
            return
        poll = select.poll()
        poll.register(self._status.fileno(), select.POLLIN)
        poll.poll(seconds * 1000)

    def _conclude(self) -> Exit | None:
        """The exit as the warden told it; None until the warden itself has ended too."""
        if self._warden.poll() is None:
            return None
        gone = self._told["gone"]
        reason: Reason = gone["reason"]
        if reason == "stopped":
            reason = self._why or reason
        still = (f"still there: {one}" for one in gone["survivors"])
        leftovers = (*gone["leftovers"], *self._swept(), *still)
        return Exit(gone["status"], reason, gone["duration_s"], leftovers)

    def _rescue(self) -> Exit | None:
        """Both wardens were killed: do their work from outside; None until nothing is left."""
        self._lost_at = self._lost_at or time.monotonic()
        living = [*filter(alive, self._seen | {*marked(self.mark)})]
        self._memory.look([one.pid for one in living])
        kill(living)
        self._killed |= _names(living)
        remains = living or self._warden.poll() is None
        if remains and time.monotonic() < self._lost_at + LOST_S:
            return None
        still = (f"still there: {name}" for name in sorted(_names(living)))
        leftovers = (*sorted(self._killed), *still, *self._swept())
        return Exit(None, "lost", self._lost_at - self._began, leftovers)

    def _swept(self) -> list[str]:
        """The shared memory that its processes have left, now removed."""
        names = self._memory.remove([one.pid for one in self._seen])
        return [f"shared memory {name}" for name in names]


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
        self._why: Reason | None = None
        self._exit: Exit | None = None

    @property
    def pid(self) -> int:
        """Process id of the program here; the other's own is of another place."""
        return self._outer.pid

    def poll(self) -> Exit | None:
        if self._exit is None and (ended := self._outer.poll()) is not None:
            self._exit = self._concluded(ended)
        return self._exit

    def _end(self, why: Reason, grace_s: float) -> Exit:
        if (ended := self.poll()) is not None:
            return ended
        self._why = why
        self._exit = self._concluded(self._stopped(grace_s))
        return self._exit

    @abstractmethod
    def _stopped(self, grace_s: float) -> Exit:
        """Stop the program here and the other one; the end of the one here."""

    @abstractmethod
    def _concluded(self, ended: Exit) -> Exit:
        """The end of the program here as that of the other."""

    def _pause(self, seconds: float) -> None:
        self._outer.until(seconds)


def alive(process: psutil.Process) -> bool:
    """Whether it runs: a zombie has ended, and a reused pid is another process."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def marked(mark: str) -> list[psutil.Process]:
    """The living processes of the launch `mark`, those of launches inside it included."""
    found = []
    for process in psutil.process_iter():
        # Other people's processes cannot be read, and are not ours.
        with contextlib.suppress(psutil.Error, OSError):
            words = process.environ().get(MARK, "").split("/")
            if mark in words and alive(process):
                found.append(process)
    return found


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL each that still lives; psutil refuses when the pid is another process by now."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()


def signal_of(status: int | None) -> int | None:
    """The number of the signal that an exit status of docker, srun or mpirun stands for."""
    number = (status or 0) - SIGNAL_BASE
    return number if 0 < number <= HIGHEST_SIGNAL else None


def _names(processes: Iterable[psutil.Process]) -> set[str]:
    names = set()
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            names.add(f"{process.name()} (pid {process.pid})")
    return names


def look_argv(*words: str) -> tuple[str, ...]:
    """The call of `look.py`, which a node must see under the same path as this machine."""
    return (sys.executable, "-I", "-S", str(LOOK), *words)


def evidence_argv(mark: str, pids: Iterable[int] = ()) -> tuple[str, ...]:
    """The call that prints what the processes, else those of the launch `mark`, are doing."""
    return look_argv("evidence", mark, f"{STACKS_S:g}", *map(str, pids))


def write_evidence(file: Path, why: str, answer: Answer) -> None:
    """Append what the processes are doing to `file`; nobody looks for it where its folder is gone.

    Args:
        file: the evidence file; earlier evidence in it is kept.
        why: one line that says why somebody will want to know, or where.
        answer: of the call of `evidence_argv`.

    Raises:
        RunError: the disk is full (class ``disk_full``).
        UntrustedFile: something else is in the file's place.
    """
    said: list[Any] = []
    for line in answer.stdout.splitlines():
        with contextlib.suppress(ValueError):  # the last one, cut off
            said.append(json.loads(line))
    states = [_state(process) for process in said if isinstance(process, dict)]
    states += [] if answer.is_good else [f"no more: {answer.trouble}"]
    stacks = [line for line in said if isinstance(line, str)]
    lines = [why, "processes:", *(f"  {line}" for line in states or ["none is left"])]
    lines += ["stacks:", *(f"  {line}" for line in stacks)]
    with contextlib.suppress(OSError), write_errors_named(file, only_full=True):
        handle = opened_regular(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, raw_log.PRIVATE)
        with os.fdopen(handle, "a", encoding="utf-8") as text:
            text.writelines(f"{redact(line)}\n" for line in lines)


def _state(process: dict[str, Any]) -> str:
    command = " ".join(mask_arguments(process["argv"])).replace("\n", "\\n")
    name, state, waits = process["name"], process["state"], process["waits"]
    return f"pid {process['pid']} {name} {state}, waits in {waits}: {command}"
