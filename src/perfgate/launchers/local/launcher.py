"""local: run a command on this machine, so that nothing it starts outlives perfgate.

What ends the processes is `warden.py`, which stands between; `job.py` is perfgate's end of the
pipes to it. The environment variable ``PERFGATE_LAUNCH`` marks what a launch started.
"""

import contextlib
import errno
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from perfgate.core.command import Command
from perfgate.core.durable_files import write_errors_named
from perfgate.core.errors import InputError, MissingProgram, PerfgateError, RunError
from perfgate.core.measurement import Json
from perfgate.core.untrusted_files import opened_regular
from perfgate.launchers.base import Job, Launcher, Placement, PlacementRequest, launcher
from perfgate.launchers.local.job import LocalJob
from perfgate.launchers.local.launch_files import stdout_of, write_files
from perfgate.launchers.local.orphans import MARK
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

    def __init__(self, start: Callable[[Command, Path, str], Job]) -> None:
        self._start = start

    def start(self, command: Command, folder: Path, name: str) -> Job:
        return self._start(command, folder, name)

    def start_client(
        self,
        command: Command,
        folder: Path,
        name: str,
        *,
        of_engine: bool = False,  # noqa: ARG002 - everything is here
    ) -> Job:
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
    def placed(self, request: PlacementRequest) -> Iterator[Placement]:  # noqa: ARG002
        yield LocalPlacement(self.start)

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

    def ask(self, argv: tuple[str, ...], seconds: float) -> str:
        """What a short-lived program printed, or why it printed nothing."""
        try:
            with (
                tempfile.TemporaryDirectory() as folder,
                self.start(Command(argv), Path(folder).resolve(), "asked") as job,
            ):
                if job.until(seconds) is None:
                    job.stop(1.0)
                    return f"no answer from {argv[0]} in {seconds:.0f} s"
                return "\n".join(job.tail(1000))
        except (PerfgateError, OSError) as error:  # also nowhere to put a temporary file
            return str(error)

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
            job = LocalJob(name, folder, warden, (sending, hearing), mark, self.ask)
            job.stdout = stdout
            ours.pop_all()
        return job


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


def _check_program(program: str, cwd: Path, env: Mapping[str, str]) -> None:
    """Refuse what cannot be executed before anything is written or started."""
    if "/" in program:
        path = cwd / program
        if path.is_file() and os.access(path, os.X_OK):
            return
        what = "is not executable" if path.exists() else "does not exist"
        raise MissingProgram(f"cannot start {program}: {path} {what}")
    if shutil.which(program, path=env.get("PATH", os.defpath)) is None:
        raise MissingProgram(f"cannot start {program}: not found on PATH ({env.get('PATH')})")


def _start_error(program: str, answer: Mapping[str, Any]) -> PerfgateError:
    message = f"cannot start {program}: {answer['error']}"
    if answer["errno"] in NOT_EXECUTABLE:
        return MissingProgram(message)
    return RunError("unknown", message)
