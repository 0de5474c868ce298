"""Ask a program something harmless: its version, its options. A short call with a time limit.

`Locations.ask` decides where it is asked: here, or inside the container that the engine is in.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from perfgate.core.redaction import redact

_TO_DIE_S = 5.0


class NoStatus(StrEnum):
    """Why a program has no exit status."""

    MISSING = "there is no such program"
    NOT_STARTED = "it could not be started"
    TOO_LONG = "it did not end in time"


@dataclass(frozen=True)
class Answer:
    """What a program said.

    Attributes:
        status: its exit status; None: it could not be started, or did not end in time.
        stdout, stderr: what it printed.
        why: why there is no status, in words; empty where there is one.
        cause: the same to be told apart; None also where nobody can tell.
        refusal: the system's own words where it could not be started: ``Permission denied``.
    """

    status: int | None
    stdout: str = ""
    stderr: str = ""
    why: str = ""
    cause: NoStatus | None = None
    refusal: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it ended with status 0."""
        return self.status == 0

    @property
    def text(self) -> str:
        """All that it printed, standard error last; or why it printed nothing."""
        return self.why or self.stdout + self.stderr

    @property
    def trouble(self) -> str:
        """Why the answer is not good, in one line."""
        if self.why:
            return self.why
        said = self.stderr.strip().splitlines() or self.stdout.strip().splitlines()
        told = f": {redact(said[-1].strip())}" if said else ""
        return f"it ended with status {self.status}{told}"


class ContainerQuery(Protocol):
    """Asks programs in the container that the engine's are in.

    Equal ones give equal answers: implementations can be hashed, e.g. are frozen dataclasses.
    """

    def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
        """Run `argv` in the container, without a greeting of its entry point before the answer.

        A program that the container lacks, or that takes longer, is an answer without status 0.

        Args:
            argv: the program and its arguments, named as in the container.
            seconds: the longest that the program may take.

        Raises:
            RunError: the container itself cannot be had.
            InputError: what is said of the container is wrong.
            MissingProgram: what starts containers is not here.
        """


def ask_here(
    argv: Sequence[str],
    seconds: float,
    env: Mapping[str, str] | None = None,
) -> Answer:
    """Run `argv` on this machine, with nothing on its standard input.

    Args:
        argv: the program and its arguments.
        seconds: the longest that it may take; then it is killed.
        env: its whole environment; None: this process's.
    """
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=env,
            process_group=0,
        )
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        cause = NoStatus.MISSING if is_missing else NoStatus.NOT_STARTED
        refusal = error.strerror or str(error)
        return Answer(None, why=str(error), cause=cause, refusal=refusal)
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as late:
        _end(process)
        why = f"no answer from {argv[0]} within {seconds:g} s"
        said = late.output.decode(errors="replace") if late.output else ""
        return Answer(None, said, why=why, cause=NoStatus.TOO_LONG)
    except BaseException:
        _end(process)
        raise
    return Answer(process.returncode, stdout, stderr)


def _end(process: "subprocess.Popen[str]") -> None:
    """Kill a program with all that it started; one that hangs in its driver is not waited for."""
    with contextlib.suppress(ProcessLookupError):  # it ended meanwhile, with all it started
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_TO_DIE_S)
