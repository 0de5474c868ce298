"""Stand between perfgate and one program it starts; end all of it when either of them is gone.

A program of its own, run by path (``python -I -S warden.py CONTROL STATUS PARENT GRACE``): standard
library only, Linux only, imported by nobody. The one other file it needs it loads by its path,
because an isolated interpreter finds none by name. Two processes run it, so that no single
``kill -9`` gets past them:

    perfgate ── outer warden ── inner warden ── program ── whatever the program starts

Both are child subreapers: a process whose parent ended becomes the child of the nearest of them,
whatever its session, group, title or environment. So the kernel itself says when nothing is left:
``waitpid`` finds no child. The inner warden starts the program and ends the tree when the program
has ended, or is told to, or the CONTROL pipe closes (perfgate is gone), or the outer warden dies.
The outer warden does nothing but take over when the inner one is killed. Whoever ends the tree
removes the shared memory that it leaves behind (``shared_memory.py``).

CONTROL carries JSON lines in: ``{"argv", "env", "cwd"}``, then ``{"stop_within_s"}``.
STATUS carries JSON lines out: ``started`` or ``failed``, then ``gone``.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

if TYPE_CHECKING:
    from perfgate.launchers.local.shared_memory import SharedMemory
else:
    sys.path.append(os.path.dirname(__file__))  # noqa: PTH120 - pathlib would double the start
    from shared_memory import SharedMemory

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36

SETTLE_S = 1.0  # what a program's helpers may take to notice by themselves that it has ended
ALONE_S = 7.0  # SGLang 0.5.23 takes 4 s to end its own processes, more on a busy machine
ALONE = 0.7  # and the part of the time to end politely that this may be
KILL_S = 20.0  # a killed process that holds much GPU memory needs seconds to give it back
LONGEST_PAUSE_S = 0.1

LIBC = ctypes.CDLL(None, use_errno=True)
_T = TypeVar("_T")


def prctl(option: int, value: int) -> None:
    """Call prctl(2) on this process."""
    if LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")


def attempt(look: Callable[[], _T], otherwise: _T) -> _T:
    """What `look` gives; when it fails, in whatever way, the tree must be ended all the same."""
    try:
        return look()
    except Exception:
        with contextlib.suppress(OSError):  # no room for it in the log
            traceback.print_exc()
        return otherwise


class Process(NamedTuple):
    """One line of the process table; `start` (clock ticks) tells it from a reuse of its pid."""

    pid: int
    start: int
    parent: int
    name: str
    state: str
    threads: int

    @property
    def alive(self) -> bool:
        """Whether it runs; a zombie with more threads is one whose main thread has ended."""
        return self.state not in "ZX" or self.threads > 1

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended or may not be signalled by us."""
        now = read_process(self.pid)
        if now is not None and now.start == self.start:
            try:
                os.kill(self.pid, number)
            except (ProcessLookupError, PermissionError):
                return  # who stays alive is found, and told, by the next look


def read_process(pid: int | str) -> Process | None:
    """The process table's line of `pid`, or None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib would double the start
            line = file.read().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name may hold anything, brackets and blanks too; proc_pid_stat(5) numbers the fields.
    head, _, tail = line.rpartition(")")
    state, *numbers = tail.split()
    parent, threads, start = int(numbers[0]), int(numbers[16]), int(numbers[18])
    return Process(int(pid), start, parent, head.partition("(")[2], state, threads)


def descendants() -> list[Process]:
    """All processes below this one, parents before their children."""
    children: dict[int, list[Process]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdigit() and (process := read_process(entry)) is not None:
            children.setdefault(process.parent, []).append(process)
    found = list(children.get(os.getpid(), []))
    for process in found:  # grows while it is walked
        found += children.get(process.pid, [])
    return found


class Warden:
    """What both wardens do: report to perfgate, collect the dead, end the tree below them."""

    def __init__(self, status: int, grace_s: float, memory: SharedMemory) -> None:
        self.status = status
        self.grace_s = grace_s
        self.memory = memory
        self.pids: set[int] = set()  # of the tree, as far as this warden has met them
        self.program: int | None = None
        self.exit_status: int | None = None
        self.started_at = self.ended_at = time.monotonic()
        self.reason = "exited"
        self.polite_until = float("inf")
        self.leftovers: dict[tuple[int, int], str] = {}

    @property
    def program_runs(self) -> bool:
        """Whether this warden started the program, and it has not ended."""
        return self.program is not None and self.exit_status is None

    def report(self, **message: Any) -> None:
        """Tell perfgate; when it is gone there is nobody to tell."""
        try:
            os.write(self.status, json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            return

    def ask_end(self, reason: str, grace_s: float) -> None:
        """Note that the tree must end; the first reason and the shortest grace hold."""
        if self.polite_until == float("inf") and self.exit_status is None:
            self.reason = reason
        self.polite_until = min(self.polite_until, time.monotonic() + grace_s)

    def collect(self) -> bool:
        """Collect ended children; False when there is no child left, living or dead."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.pids.add(pid)
            if pid == self.program:
                self.exit_status = os.waitstatus_to_exitcode(status)
                self.ended_at = time.monotonic()

    def clear(self, pause: Callable[[float], None]) -> list[Process]:
        """End everything below this process: SIGTERM, then SIGKILL over and over.

        The program hears SIGTERM first, and alone as long as it may take to end what it started:
        one whose children end before it (SGLang) takes that for a crash, and says so in its log.

        Returns:
            what outlived even that, for KILL_S: processes stuck in the kernel, or not ours to kill.
        """
        asked: set[tuple[int, int]] = set()
        began = time.monotonic()
        pause_s = 0.005
        looked = False
        while self.collect():
            now = time.monotonic()
            tree = descendants()
            self.pids.update(one.pid for one in tree)
            if not looked:
                looked = True
                self.look_at_memory(tree)
            self.note_leftovers(tree, now)
            if now > self.polite_until + KILL_S:
                return [process for process in tree if process.alive]
            alone = min(ALONE_S, ALONE * (self.polite_until - began))
            is_alone = self.program_runs and now < began + alone
            for process in tree:
                if now >= self.polite_until:
                    process.send(signal.SIGKILL)
                elif is_alone and process.pid != self.program:
                    continue
                elif (process.pid, process.start) not in asked:
                    asked.add((process.pid, process.start))
                    process.send(signal.SIGTERM)
                    process.send(signal.SIGCONT)  # a stopped process would not hear it
            pause(pause_s)
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        return []

    def note_leftovers(self, tree: list[Process], now: float) -> None:
        """Remember who is there although the program has ended and they had time to notice."""
        if self.exit_status is not None and now >= self.ended_at + SETTLE_S:
            self.leftovers |= {(one.pid, one.start): one.name for one in tree if one.alive}

    def look_at_memory(self, tree: list[Process]) -> None:
        """Note what shared memory the tree uses, while there is still somebody to use it."""
        attempt(lambda: self.memory.look([one.pid for one in tree]), None)

    def clear_and_report(self, pause: Callable[[float], None]) -> None:
        survivors = self.clear(pause)
        removed: list[str] = attempt(lambda: self.memory.remove(self.pids), [])
        swept = [f"shared memory {name}" for name in removed]
        ended_at = time.monotonic() if self.exit_status is None else self.ended_at
        gone = {"reason": self.reason, "status": self.exit_status}
        left = [*sorted(self.leftovers.values())[:50], *swept[:50]]
        still = [f"{left.name} (pid {left.pid}, state {left.state})" for left in survivors[:50]]
        duration_s = ended_at - self.started_at
        self.report(event="gone", **gone, duration_s=duration_s, leftovers=left, survivors=still)


class InnerWarden(Warden):
    """The one that starts the program, listens to perfgate and ends the tree."""

    def __init__(
        self, control: int, status: int, grace_s: float, memory: SharedMemory, outer: int
    ) -> None:
        super().__init__(status, grace_s, memory)
        self.control = control
        self.outer = outer
        self.hung_up = False
        self.unread = b""
        self.call: dict[str, Any] | None = None
        self.wakeup, wake = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)  # for the wake-up alone
        signal.signal(signal.SIGTERM, lambda *_: self.on_sigterm())
        os.setsid()  # a kill of the outer warden's process group must miss this one
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if os.getppid() != self.outer:  # it died before prctl
            return
        while self.call is None and not self.hung_up:
            self.listen(None)
        if self.call and self.polite_until == float("inf") and self.start(self.call):
            self.watch()
            self.clear_and_report(self.listen)

    def on_sigterm(self) -> None:
        """Sent by the kernel when the outer warden has died, or by a person or a batch system."""
        self.ask_end("stopped" if os.getppid() == self.outer else "lost", self.grace_s)

    def start(self, call: dict[str, Any]) -> bool:
        """Start the program and tell; False when it cannot be executed."""
        warden = os.getpid()

        def bind() -> None:
            """In the new process: die with the warden, whatever kills it."""
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != warden:  # it died before prctl
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            # Kept, because a Popen that is dropped collects its process behind our back.
            self.popen = subprocess.Popen(
                call["argv"],
                env=call["env"],
                cwd=call["cwd"],
                start_new_session=True,
                preexec_fn=bind,  # safe here: there is one thread only
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.report(event="failed", errno=getattr(error, "errno", None), error=str(error))
            return False
        self.program = self.popen.pid
        self.started_at = time.monotonic()
        self.report(event="started", pid=self.program, warden=warden)
        return True

    def watch(self) -> None:
        """Return when the tree must be ended: the program has ended, or somebody asked for it."""
        looked = False
        while self.collect() and self.polite_until == float("inf"):
            if self.exit_status is None:
                self.listen(None)
                continue
            if not looked:
                looked = True
                self.look_at_memory(descendants())
            if (left := self.ended_at + SETTLE_S - time.monotonic()) > 0:
                self.listen(left)
            else:
                self.ask_end("exited", self.grace_s)

    def listen(self, seconds: float | None) -> None:
        """Wait for perfgate, a signal or time, and note what perfgate asks."""
        poll = select.poll()  # unlike select.select it takes descriptors above 1023
        poll.register(self.wakeup, select.POLLIN)
        if not self.hung_up:
            poll.register(self.control, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(None if seconds is None else seconds * 1000)}
        if self.wakeup in ready:
            os.read(self.wakeup, 4096)
        if self.control in ready:
            chunk = os.read(self.control, 65536)
            if not chunk:
                self.hung_up = True
                self.ask_end("stopped", self.grace_s)
            *lines, self.unread = (self.unread + chunk).split(b"\n")
            for message in map(json.loads, lines):
                if self.call is None:
                    self.call = message
                else:
                    self.ask_end("stopped", message["stop_within_s"])


def take_over_when_killed(inner: int, warden: Warden, parent: int) -> None:
    """The outer warden: wait for the inner one, and end the tree if it did not."""

    def on_parent_death() -> None:
        # The signal tells of a thread's death only. It matters when the pipe stays open, because
        # perfgate has forked a copy of itself.
        if os.getppid() != parent:
            os.kill(inner, signal.SIGTERM)

    signal.signal(signal.SIGTERM, lambda *_: os.kill(inner, signal.SIGTERM))
    signal.signal(signal.SIGUSR1, lambda *_: on_parent_death())
    prctl(PR_SET_PDEATHSIG, signal.SIGUSR1)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    on_parent_death()
    # Not collected yet: until the handlers are off, its pid must stay its own.
    end = os.waitid(os.P_PID, inner, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    if end is None or end.si_code != os.CLD_EXITED or end.si_status != 0:
        warden.ask_end("lost", warden.grace_s)
        warden.clear_and_report(time.sleep)
    else:
        os.waitpid(inner, 0)  # so that its CPU time, and the program's, becomes perfgate's


def main() -> NoReturn:
    """Become the two wardens. Ends by `_exit`: nothing here may be delayed by a clean-up."""
    control, status, parent = (int(word) for word in sys.argv[1:4])
    grace_s = float(sys.argv[4])
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    # Handlers, not SIG_IGN: exec gives the program the default, whatever perfgate's caller ignores.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    memory = SharedMemory()
    outer = os.getpid()
    inner = os.fork()
    try:
        if inner == 0:
            InnerWarden(control, status, grace_s, memory, outer).run()
        else:
            os.close(control)
            take_over_when_killed(inner, Warden(status, grace_s, memory), parent)
    except BaseException:  # the other warden, or perfgate, sees the exit status and takes over
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
