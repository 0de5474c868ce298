"""Ask a program something harmless: its version, its options; git, what a repository holds. A short
call with a time limit.

`Locations.ask` decides where it is asked: here, or inside the container that the engine is in.
"""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
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


def ask_here(argv: Sequence[str], seconds: float, env: Mapping[str, str] | None = None) -> Answer:
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
        cause = NoStatus.MISSING if isinstance(error, FileNotFoundError) else NoStatus.NOT_STARTED
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


# Git: no program that its repository names is run. A repository chooses programs by its settings
# and attributes: hooks, a monitor of files, filters of what is checked out or compared, commands
# that fetch what is missing. It may be another user's.
WITHIN_S = 60.0
QUIET = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.autocrlf=false"),
    *("-c", "log.showSignature=false"),
)
_NEVER_ASK = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # of the same use before git 2.44
    "LC_ALL": "C",
}
# Set while a hook runs, these would name another repository than the one that was given.
_OF_ANOTHER = re.compile(
    r"GIT_((COMMON_)?DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES"
    r"|NAMESPACE|PREFIX)"
)
_FILTERING = frozenset({"status", "checkout-index"})  # commands that run filters
_FILTER = re.compile(r"(filter\..*)\.[^.]+", re.DOTALL)


def git_answer(
    folder: Path, *words: str, seconds: float = WITHIN_S, more: Mapping[str, str] | None = None
) -> Answer:
    """Run git in `folder`: no programs of the repository, no prompts, no network.

    Args:
        folder: where, as of ``git -C``.
        words: the command and its arguments; no shell sees them.
        seconds: the longest that it may take.
        more: variables that it is given besides.
    """
    call = ("git", *QUIET, "-C", str(folder))
    kept = {name: text for name, text in os.environ.items() if not _OF_ANOTHER.fullmatch(name)}
    env = {**kept, **_NEVER_ASK, **(more or {})}
    if words[0] in _FILTERING:
        # Filters have no switch: each that is set is set to nothing.
        names = ("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
        env |= dict(_without(ask_here((*call, *names), seconds, env).stdout, env))
    return ask_here((*call, *words), seconds, env)


def _without(filters: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that empty the filters of these settings, after those that `env` gives so."""
    found = (_FILTER.fullmatch(name) for name in filters.split("\0"))
    names = dict.fromkeys(name[1] for name in found if name)
    given = env.get("GIT_CONFIG_COUNT", "")
    number = int(given) if given.isdecimal() else 0
    for name in names:
        for part, text in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")):
            yield f"GIT_CONFIG_KEY_{number}", f"{name}.{part}"
            yield f"GIT_CONFIG_VALUE_{number}", text
            number += 1
    yield "GIT_CONFIG_COUNT", str(number)
