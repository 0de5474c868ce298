"""Hosts: asked by ssh, as Open MPI itself reaches them, and chosen for one start alone.

The locks are files of this machine (`perfgate.machine.leases`), so they part the sessions that run
here. A lock's note keeps the mark of what was started under it until that is known to be gone: who
takes the lock next ends what is left, even if nobody else has lived to do so.
"""

import os
import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.files.untrusted_files import created_regular
from perfgate.core.programs.locations import HOSTS
from perfgate.core.programs.program_query import NoStatus, ask_here
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.local.job import look_argv
from perfgate.launchers.nodes.placement import LOOK_S, address_of, locked, own_addresses
from perfgate.launchers.site import MpirunSite
from perfgate.machine.leases.file_locks import FileLock, holding, let_go, note_in

CONNECT_S = 10
SSH_FAILED = 255  # of its own (`man ssh`, "EXIT STATUS"); a look never ends so
AGENT = "OMPI_MCA_plm_rsh_agent"
# No password can be typed here, and a host that is switched off must not keep anybody waiting.
_OPTIONS = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}")
HOST_LIST = "mpirun.hosts"
_NOT_REACHED = "try `ssh -o BatchMode=yes HOST true` in the same shell; ssh_port and rsh_agent of "
_NOT_REACHED += "mpirun in site.yaml say how the hosts are reached"
_BUSY = (
    "wait until they are done, name more hosts in site.yaml, or raise its pending_limit_s of mpirun"
)
_SAME_PATH = "the run folder, this checkout and its Python must be at the same path on every host "
_SAME_PATH += "(docs/how-to/mpirun.md)"


class HostUnfit(Exception):
    """A host was reached, and a program failed there; the text is what it said."""


class Unreachable(HostUnfit):
    """A host could not be asked; the text is what ssh said."""


@dataclass(frozen=True)
class Host:
    """A host of mpirun.

    Attributes:
        name: as mpirun and ssh are told.
        address: as it is reached from here; None where the name does not resolve.
        here: whether it is this machine, which neither mpirun nor perfgate needs ssh for.
    """

    name: str
    address: str | None = None
    here: bool = False


class HostQuery:
    """How the hosts of a start are asked.

    Args:
        site: names the program that reaches them.
        ssh_port: port of their SSH daemons; None: ssh's own default.
    """

    def __init__(self, site: MpirunSite, ssh_port: int | None) -> None:
        agent = site.rsh_agent or os.environ.get(AGENT) or "ssh"
        # Open MPI takes a list of which the first that exists counts, and splits it at blanks.
        self.agent = tuple(agent.split(":")[0].split())
        self.ssh_port = ssh_port

    def host(self, name: str) -> Host:
        """The host of that name, which may be known to ssh's configuration alone."""
        answer = ask_here((*self.agent, "-G", name), LOOK_S)
        lines = (line.split(maxsplit=1) for line in answer.stdout.splitlines())
        real = next((words[1] for words in lines if words[0] == "hostname" and words[1:]), name)
        address = address_of(real)
        names_here = ("localhost", socket.gethostname())
        is_here = address is not None and (name in names_here or address in own_addresses())
        return Host(name, address, is_here)

    def argv(self, host: Host, command: Sequence[str]) -> tuple[str, ...]:
        """What runs `command` on the host.

        ssh hands one text to a shell on the other side: that is its nature, so the words are quoted
        for one.
        """
        if host.here:
            return tuple(command)
        port = () if self.ssh_port is None else ("-p", str(self.ssh_port))
        return (*self.agent, *_OPTIONS, *port, host.name, shlex.join(command))

    def look(self, host: Host, *words: str) -> str:
        """What the look program prints there.

        Raises:
            Unreachable: the host is not reached.
            HostUnfit: the program failed, e.g. since it is not at the same path there.
        """
        return self.ask(host, look_argv(*words), LOOK_S).strip()

    def ask(self, host: Host, command: Sequence[str], seconds: float) -> str:
        """Standard output of a program there.

        Args:
            host, command: what is run where.
            seconds: the longest that it may take.

        Raises:
            Unreachable, HostUnfit: as for `look`.
            MissingProgram: there is no ssh here.
        """
        argv = self.argv(host, command)
        answer = ask_here(argv, seconds)
        if answer.cause is NoStatus.MISSING:
            raise MissingProgram(f"no {argv[0]} to reach {host.name} with")
        if answer.cause is not None:
            is_late = answer.cause is NoStatus.TOO_LONG
            raise Unreachable(f"no answer in {seconds:.0f} s" if is_late else answer.why)
        said = " ".join((answer.stderr.strip() or answer.stdout.strip()).split())
        if answer.status == SSH_FAILED and not host.here:
            raise Unreachable(said or "ssh failed without a message")
        if not answer.is_good:
            raise HostUnfit(said or f"exit status {answer.status}")
        return answer.stdout


@dataclass
class HostLock:
    """The lock of one host, held.

    Attributes:
        host: which.
        marks: of launches whose processes may still be there.
    """

    host: Host
    file: FileLock
    marks: list[str] = field(default_factory=list)

    def write(self, marks: list[str]) -> None:
        """Write down what the processes are known by that may be there."""
        self.marks = marks
        self.file.write(marks=marks)


@contextmanager
def chosen_hosts(
    names: Sequence[str], request: PlacementRequest, site: MpirunSite, reach: HostQuery, mark: str
) -> Iterator[tuple[HostLock, ...]]:
    """As many hosts as the scenario needs, each looked at, and for this start alone.

    They are the first of `names` that nobody measures on; a host that is not reached is left out
    where there are enough others.

    Args:
        names: the hosts as the site has them, in order.
        request: the start. Its folder is looked for on every host.
        site: how long to wait.
        reach: how they are asked.
        mark: of the start's processes.

    Raises:
        InputError: too few hosts are named.
        RunError: class ``mpi``: too few are reached; ``config_error``: one lacks the folder or the
            programs; ``gpus_busy``: others measured on them for too long.
    """
    needed = request.scenario.hardware.nodes
    # Each once: one that has two names would be waited for in vain.
    apart = {_file(host): host for host in reversed([*map(reach.host, names)])}
    hosts = [*apart.values()][::-1]
    if len(hosts) < needed:
        raise InputError(
            "too few hosts are named",
            field="mpirun.hosts",
            found=" ".join(host.name for host in hosts) or "nothing",
            expected=f"{needed} different hosts, the server's first",
            hint=f"name them in site.yaml, or set {HOSTS}",
        )
    seen = request.folder.absolute() / HOST_LIST
    with os.fdopen(created_regular(seen), "w") as file:
        file.writelines(f"{host.name}\n" for host in hosts)
    left_out: dict[Host, str] = {}
    while True:
        tried = [host for host in hosts if host not in left_out]
        if len(tried) < needed:
            reasons = "; ".join(f"{host.name}: {why}" for host, why in left_out.items())
            raise RunError("mpi", f"too few hosts can be reached: {reasons}", hint=_NOT_REACHED)
        with ExitStack() as unused:
            locks = _taken(tried, request, site)
            files = [lock.file for lock in locks]
            unused.callback(let_go, files)
            for lock in locks:
                before = _marks(lock.file)
                lock.write([*before, mark])
                unused.callback(lock.write, before)  # nothing was started under it
            failed = {lock.host: why for lock in locks if (why := _looked_at(lock, reach, seen))}
            if not failed:
                unused.pop_all()
                with holding(files):
                    yield locks
                return
        for host, why in failed.items():
            request.tell(f"{host.name} is skipped: {why}")
        left_out |= failed


def _looked_at(lock: HostLock, reach: HostQuery, seen: os.PathLike[str]) -> str:
    """Why the host is not reached; empty when it is. What an earlier start left there ends."""
    try:
        reach.look(lock.host, "port", "127.0.0.1", os.fspath(seen))
        if lock.marks[:-1]:
            reach.look(lock.host, "end", *lock.marks[:-1])
    except Unreachable as error:
        return str(error)
    except HostUnfit as error:
        why = f"{lock.host.name} cannot be used: {error}"
        raise RunError("config_error", why, hint=_SAME_PATH) from error
    return ""


def _taken(
    hosts: Sequence[Host], request: PlacementRequest, site: MpirunSite
) -> tuple[HostLock, ...]:
    """The locks of the first free hosts, as many as needed, all at once."""
    by_file = {_file(host): host for host in hosts}
    files = {file: host.name for file, host in by_file.items()}
    what = f"{request.scenario.hardware.nodes} of {len(hosts)} hosts"
    run = request.folder.absolute().parent.parent.name
    locks = locked(files, request, run, what, site.pending_limit_s, hint=_BUSY)
    return tuple(HostLock(by_file[lock.path.name], lock) for lock in locks)


def _file(host: Host) -> str:
    """The lock of a host, whatever it is called."""
    name = host.address or host.name
    return "host-" + "".join(one if one.isalnum() or one in ".-" else "_" for one in name)


def _marks(lock: FileLock) -> list[str]:
    """The marks in a lock's note; none where somebody else has written something else there."""
    marks = note_in(lock.path).get("marks")
    words = marks if isinstance(marks, list) else []
    return [word for word in words if isinstance(word, str) and word.isalnum()]
