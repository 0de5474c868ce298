"""Whose a container is: labels that tell perfgate's, and those whose perfgate process has ended."""

import json
import os
import socket
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from perfgate.core import json_text
from perfgate.core.process_identity import began, lives, pid_namespace
from perfgate.launchers.docker.calls import call, remove

HOST = "perfgate.host"
START = "perfgate.start"
OWNER = "perfgate.owner"


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
    orphans = []
    for line in listed.splitlines():
        name, _, owner = line.partition("\t")
        if _is_gone(owner):
            orphans.append(name)
    remove(orphans)
    return tuple(orphans)


def _is_gone(owner: str) -> bool:
    try:
        return ContainerOwner(**json_text.parse(owner)).is_gone
    except (TypeError, ValueError):  # somebody else's label of the same name
        return False


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
