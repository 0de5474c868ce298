"""local: run a command on this machine, so that nothing it starts outlives perfgate.

What ends the processes is `warden.py`, which stands between; `job.py` is perfgate's end of the
pipes to it. The environment variable ``PERFGATE_LAUNCH`` marks what a launch started.
"""

import contextlib
import errno
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from perfgate.core.errors import InputError, MissingProgram, PerfgateError, RunError
from perfgate.core.files.durable_files import write_errors_named
from perfgate.core.files.untrusted_files import created_regular, make_new_folders, opened_regular
from perfgate.core.measurement import Json
from perfgate.core.programs import raw_log
from perfgate.core.programs.command import Command
from perfgate.core.programs.programs import on_path
from perfgate.core.redaction import holds_secret
from perfgate.launchers.base import Job, Launcher, Placement, PlacementRequest, launcher
from perfgate.launchers.local.job import MARK, LocalJob
from perfgate.machine.leases import kept_open

WARDEN = Path(__file__).with_name("warden.py")
GUARD = Path(__file__).with_name("cleanup_guard.py")
# What execve(2) answers about the program, rather than about the machine.
NOT_EXECUTABLE = {
    errno.ENOENT,
    errno.EACCES,
    errno.ENOEXEC,
    errno.ENOTDIR,
    errno.EPERM,
    errno.ELOOP,
    errno.EISDIR,
}


class LocalPlacement(Placement):
    """This machine; its server is reached over the loopback device alone."""

    host = "127.0.0.1"
    facts: Mapping[str, Json] = {}

    def __init__(
        self, request: PlacementRequest, start: Callable[[Command, Path, str], Job]
    ) -> None:
        self.request = request
        self._start = start

    def start(self, command: Command, folder: Path, name: str) -> Job:
        return self._start(command, folder, name)

    def free_port(self) -> int:
        return free_port(self.host)


@launcher("local")
class LocalLauncher(Launcher):
    """Start programs on this machine.

    Args:
        orphan_grace_s: how long a program may take to end by itself once perfgate is gone.
    """

    name = "local"

    def __init__(self, orphan_grace_s: float = 5.0) -> None:
        self.orphan_grace_s = orphan_grace_s

    @contextlib.contextmanager
    def placed(self, request: PlacementRequest) -> Iterator[Placement]:
        yield LocalPlacement(request, self.start)

    def start(self, command: Command, folder: Path, name: str) -> LocalJob:
        """Start `command`. See `Placement.start`."""
        folder = folder.absolute()
        cwd = (command.cwd or folder).resolve()
        if command.cwd is not None and not cwd.is_dir():
            raise InputError("no such working folder", found=cwd)
        mark = uuid.uuid4().hex
        # A launch inside a launch carries both marks, so that either can be searched for.
        marks = "/".join(filter(None, (os.environ.get(MARK), mark)))
        env = {"TERM": "dumb", **os.environ, **command.env, MARK: marks}
        _check_program(command.argv[0], cwd, env)
        call = {"argv": command.argv, "env": env, "cwd": str(cwd)}
        with contextlib.ExitStack() as undo:
            with write_errors_named(folder):
                placed = replace(command, cwd=cwd)
                write_files(placed, folder, name, undo)
                job = self._start_warden(folder, name, mark, stdout_of(placed, folder, name))
            try:
                answer = job.begin(call)
                if answer["event"] == "failed":
                    raise _start_error(command.argv[0], answer)
            except BaseException:
                job.abandon()
                raise
            undo.pop_all()
        return job

    def _start_warden(self, folder: Path, name: str, mark: str, stdout: Path) -> LocalJob:
        """Start the warden with its two pipes; the program is not started yet.

        Python's pipes are inherited only by the process that `pass_fds` gives them to: no other
        program, started by whichever thread, can hold a control pipe open.
        """
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            control, send = os.pipe()
            theirs.callback(os.close, control)
            ours.enter_context(sending := io.FileIO(send, "wb"))
            hear, status = os.pipe()
            theirs.callback(os.close, status)
            ours.enter_context(hearing := io.FileIO(hear, "rb"))
            out = theirs.enter_context(_appended(stdout))
            err = theirs.enter_context(_appended(folder / f"{name}.err"))
            locks = theirs.enter_context(kept_open())  # held until the last of the program is gone
            numbers = map(str, (control, status, os.getpid(), self.orphan_grace_s))
            warden = subprocess.Popen(
                # Isolated, without site: starts in 30 ms and obeys no PYTHON* variable.
                [sys.executable, "-I", "-S", str(WARDEN), *numbers],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=(control, status, *locks),
                start_new_session=True,
            )
            job = LocalJob(name, folder, warden, (sending, hearing), mark)
            job.stdout = stdout
            ours.pop_all()
        return job


@contextlib.contextmanager
def started(argv: tuple[str, ...], name: str) -> Iterator[LocalJob]:
    """A program whose logs are of use for this block alone."""
    with (
        tempfile.TemporaryDirectory(prefix=f"perfgate-{name}-") as folder,
        LocalLauncher().start(Command(argv), Path(folder).resolve(), name) as job,
    ):
        yield job


def free_port(host: str) -> int:
    """A TCP port of `host` that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _appended(log: Path) -> BinaryIO:
    """A log, opened for a program to write at its end."""
    return os.fdopen(opened_regular(log, os.O_WRONLY | os.O_APPEND), "ab")


def start_guard(task: Mapping[str, Any], folder: Path, name: str, grace_s: float) -> LocalJob:
    """Start the program that cleans up once perfgate is gone.

    Args:
        task: see `cleanup_guard.py`.
        folder, name: as in `LocalLauncher.start`.
        grace_s: how long the clean-up may take.
    """
    argv = (sys.executable, "-I", "-S", str(GUARD), json.dumps(task))
    return LocalLauncher(grace_s).start(Command(argv), folder, name)


@contextlib.contextmanager
def guarded(
    task: Mapping[str, Any], folder: Path, name: str, grace_s: float, clean_up: Callable[[], None]
) -> Iterator[LocalJob]:
    """A block that `clean_up` ends, however it ends; its guard does when this process is gone.

    Whatever interrupts `clean_up` leaves the rest to the guard.

    Args:
        task, folder, name, grace_s: as for `start_guard`.
        clean_up: called after the block.
    """
    guard = start_guard(task, folder, name, grace_s)
    left_s = grace_s
    try:
        yield guard
    finally:
        try:
            clean_up()
            left_s = 0.0  # asked politely it would do everything once more
        finally:
            guard.stop(left_s)


def _check_program(program: str, cwd: Path, env: Mapping[str, str]) -> None:
    """Refuse what cannot be executed before anything is written or started."""
    if "/" in program:
        path = cwd / program
        if path.is_file() and os.access(path, os.X_OK):
            return
        what = "is not executable" if path.exists() else "does not exist"
        raise MissingProgram(f"cannot start {program}: {path} {what}")
    if on_path(program, env.get("PATH", os.defpath)) is None:
        raise MissingProgram(f"cannot start {program}: not found on PATH ({env.get('PATH')})")


def _start_error(program: str, answer: Mapping[str, Any]) -> PerfgateError:
    message = f"cannot start {program}: {answer['error']}"
    if answer["errno"] in NOT_EXECUTABLE:
        return MissingProgram(message)
    return RunError("unknown", message)


def stdout_of(command: Command, folder: Path, name: str) -> Path:
    """Where standard output goes: the job's log, or the file that the command names for it."""
    if command.stdout is None:
        return folder / f"{name}.out"
    return (command.cwd or folder) / command.stdout


def write_files(command: Command, folder: Path, name: str, undo: contextlib.ExitStack) -> None:
    """Write the command's files, its script and empty logs; `undo` takes them away again.

    Logs, and files with a secret in them, are for their owner alone.

    Args:
        command: with its working folder filled in, where its files go.
        folder: where script and logs go.
        name: the job's name.
        undo: filled with what removes the files.
    """
    cwd = command.cwd or folder
    script = folder / f"{name}.sh"
    contents = {cwd / file: text for file, text in command.files.items()}
    contents[script] = command.as_shell()
    for file, text in contents.items():
        mode = 0o755 if file == script else raw_log.PRIVATE if holds_secret("", text) else 0o644
        _create(file, undo, mode, text)
    for log in (stdout_of(command, folder, name), folder / f"{name}.err"):
        _create(log, undo, raw_log.PRIVATE)
    # Of an earlier job of this name; it would be taken for this one's.
    (folder / f"{name}.evidence.txt").unlink(missing_ok=True)


def _create(file: Path, undo: contextlib.ExitStack, mode: int, text: str = "") -> None:
    if not file.parent.exists():
        make_new_folders(file.parent)
    with os.fdopen(created_regular(file, mode), "w", encoding="utf-8") as new:
        undo.callback(file.unlink, missing_ok=True)
        new.write(text)
