"""Ask Docker's own program: short calls, each with a time limit, and what its errors mean.

Labels tell perfgate's containers, and those whose perfgate process has ended.
"""

import json
import os
import re
import socket
import tomllib
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from perfgate.core import json_text
from perfgate.core.errors import RunError
from perfgate.core.program_query import Answer, NoStatus, ask_here
from perfgate.core.programs import DOCKER
from perfgate.machine.conditions.processes import began, lives, pid_namespace

HOST = "perfgate.host"
START = "perfgate.start"
OWNER = "perfgate.owner"
CALL_S = 30.0
REMOVE_S = 60.0  # a program that holds much GPU memory takes its time to go
_DAEMON = "docker: "  # what docker run puts before an error of its own, and of no program
DAEMON_FAILED = 125  # also where it went away, and may have left the program running
_NOT_STARTED = (DAEMON_FAILED, 126, 127)  # of docker run; a program may end with them, too

_MESSAGES = tomllib.loads(Path(__file__).with_name("messages.toml").read_text(encoding="utf-8"))


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
    for message in _MESSAGES["message"]:
        if re.search(message["pattern"], said, re.IGNORECASE):
            return message["failure"], message.get("next_step")
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


@dataclass(frozen=True)
class ContainerOwner:
    """The process that started a container.

    Attributes:
        pid: its number in its own pid namespace.
        began: its start in clock ticks, which tells it from a reuse of the number.
        namespace: that pid namespace.
        boot: the start of the machine that it ran on.
    """

    pid: int
    began: int
    namespace: str
    boot: str

    @classmethod
    def here(cls) -> "ContainerOwner":
        """This process."""
        return cls(os.getpid(), began(os.getpid()) or 0, pid_namespace(), _boot())

    @property
    def is_gone(self) -> bool:
        """Whether it is known to have ended; one of another pid namespace cannot be seen."""
        if self.boot != _boot():
            return True
        return self.namespace == pid_namespace() and not lives(self.pid, self.began)


def labels(start: str) -> tuple[str, ...]:
    """Options of `docker run` that mark a container of this process.

    Args:
        start: what tells the containers of one fresh start from all others.
    """
    owner = json.dumps(asdict(ContainerOwner.here()))
    marks = {HOST: socket.gethostname(), START: start, OWNER: owner}
    return tuple(word for name, value in marks.items() for word in ("--label", f"{name}={value}"))


def new_name(name: str = "asked") -> str:
    """A name that no other container has."""
    return f"perfgate-{name}-{uuid.uuid4().hex[:12]}"


def of_start(start: str) -> tuple[str, ...]:
    """Names of the containers of one fresh start, whatever their state."""
    listed = call(("ps", "--all", "--filter", f"label={START}={start}", "--format", "{{.Names}}"))
    return tuple(listed.split())


def remove_orphans() -> tuple[str, ...]:
    """Remove the containers of this machine whose perfgate process has ended; their names.

    Raises:
        RunError, MissingProgram: Docker does not answer.
    """
    shape = '{{.Names}}\t{{.Label "' + OWNER + '"}}'
    here = f"label={HOST}={socket.gethostname()}"
    listed = call(("ps", "--all", "--filter", here, "--format", shape))
    rows = (line.partition("\t") for line in listed.splitlines())
    orphans = tuple(name for name, _, owner in rows if _is_gone(owner))
    remove(orphans)
    return orphans


def _is_gone(owner: str) -> bool:
    try:
        return ContainerOwner(**json_text.parse(owner)).is_gone
    except (TypeError, ValueError):  # somebody else's label of the same name
        return False


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
