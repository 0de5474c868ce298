"""Ask Docker's own program: short calls, each with a time limit, and what its errors mean."""

import re
from collections.abc import Sequence

from perfgate.core.errors import RunError
from perfgate.core.program_query import Answer, NoStatus, ask_here
from perfgate.core.programs import DOCKER

CALL_S = 30.0
REMOVE_S = 60.0  # a program that holds much GPU memory takes its time to go
_DAEMON = "docker: "  # what docker run puts before an error of its own, and of no program
_NOT_STARTED = (125, 126, 127)  # of docker run; a program may end with them, too

# What Docker says → (failure class, next step).
_MEANINGS = (
    (
        r"permission denied.{0,80}docker|docker.{0,80}permission denied",
        "config_error",
        "this user may not use Docker: add the user to the group docker",
    ),
    (
        r"cannot connect to the docker daemon|connection refused|no such host|i/o timeout",
        "config_error",
        "is the daemon running? `docker version` must show a server",
    ),
    (
        r"could not select device driver|nvidia-container|unknown or invalid runtime|cdi device",
        "config_error",
        "the NVIDIA Container Toolkit is not set up for Docker: "
        "try `docker run --rm --gpus all IMAGE nvidia-smi`",
    ),
    (
        r"port is already allocated|address already in use",
        "port_in_use",
        None,
    ),
    (
        r"manifest unknown|pull access denied|unauthorized|denied: |no such image|not found: man",
        "config_error",
        "pull the image by hand: is its name right, is `docker login` done? "
        "docker.image in site.yaml names another",
    ),
    (r"no space left on device", "disk_full", "free space where Docker keeps its images"),
    (
        r"executable file not found|no such file or directory|exec format error",
        "config_error",
        "the image lacks the program, or a folder: docker.image in site.yaml names another image, "
        "PERFGATE_PROGRAM_… another program in it",
    ),
)


def docker(*words: str) -> tuple[str, ...]:
    """An argv of Docker's program.

    Raises:
        MissingProgram: it is not here.
    """
    return (*DOCKER.find(), *words)


def call(words: Sequence[str], seconds: float = CALL_S) -> str:
    """Standard output of a short call.

    Raises:
        RunError: it failed, or there was no answer in time.
        MissingProgram: Docker is not here.
    """
    answer = ask_here(docker(*words), seconds)
    if not answer.is_good:
        raise trouble(f"docker {words[0]} failed", answer)
    return answer.stdout


def trouble(message: str, answer: Answer) -> RunError:
    """The error that Docker's own words stand for."""
    said = answer.why or answer.stderr or answer.stdout
    lines = tuple(line.strip() for line in said.splitlines() if line.strip())[-4:]
    if answer.cause is NoStatus.TOO_LONG:
        return RunError(
            "config_error",
            f"{message}: {answer.why}",
            hint="the Docker daemon does not answer: try `docker version`, look at its log",
        )
    failure, hint = meaning(said)
    return RunError(failure, message, evidence=lines, hint=hint)


def meaning(said: str) -> tuple[str, str | None]:
    """The failure class of what Docker said, and the next step; None: that of the class."""
    for pattern, failure, hint in _MEANINGS:
        if re.search(pattern, said, re.IGNORECASE):
            return failure, hint
    return "config_error", None


def not_started(status: int | None, error_log: str) -> str:
    """What `docker run` said when it could not start the program; empty: it did start it."""
    if status not in _NOT_STARTED:
        return ""
    said = [line for line in error_log.splitlines() if line.startswith(_DAEMON)]
    return said[-1] if said else ""


def server_version() -> str:
    """The daemon's version, which only a daemon that answers tells.

    Raises:
        RunError, MissingProgram: as `call`.
    """
    return call(("version", "--format", "{{.Server.Version}}")).strip()


def remove(names: Sequence[str], seconds: float = REMOVE_S) -> None:
    """End and remove containers; those that are gone already are no error.

    Raises:
        RunError, MissingProgram: as `call`.
    """
    if not names:
        return
    answer = ask_here(docker("rm", "--force", "--volumes", *names), seconds)
    # An older docker fails for a name that is gone; so does one that is being removed.
    known = re.compile(r"no such container|already in progress", re.IGNORECASE)
    lines = [line for line in answer.stderr.splitlines() if line.strip()]
    if answer.is_good or (not answer.why and lines and all(map(known.search, lines))):
        return
    raise trouble("docker rm failed", answer)
