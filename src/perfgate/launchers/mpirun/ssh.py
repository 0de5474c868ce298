"""ssh: ask a host something by a short program, as Open MPI itself reaches it, or here."""

import os
import shlex
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from perfgate.core.errors import MissingProgram
from perfgate.core.program_query import NoStatus, ask_here
from perfgate.launchers.nodes.listening import own_addresses
from perfgate.launchers.nodes.node_query import LOOK_S, look_argv
from perfgate.launchers.site import MpirunSite

CONNECT_S = 10
SSH_FAILED = 255  # of its own (`man ssh`, "EXIT STATUS"); a look never ends so
AGENT = "OMPI_MCA_plm_rsh_agent"
# No password can be typed here, and a host that is switched off must not keep anybody waiting.
_OPTIONS = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}")


class Unreachable(Exception):
    """A host could not be asked; the text is what ssh said."""


class HostUnfit(Exception):
    """A host was reached, and a program failed there; the text is what it said."""


@dataclass(frozen=True)
class Host:
    """A host of mpirun.

    Attributes:
        name: as mpirun and ssh are told.
        address: its IPv4 address as it is reached from here; None where the name does not resolve.
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
        try:
            address = socket.gethostbyname(self._name_of(name))
        except OSError:
            return Host(name)
        is_here = name in ("localhost", socket.gethostname()) or address in own_addresses()
        return Host(name, address, is_here)

    def argv(self, host: Host, command: Sequence[str]) -> tuple[str, ...]:
        """What runs `command` on the host.

        ssh hands one text to a shell on the other side: that is its nature, so the words are quoted
        for one.
        """
        if host.here:
            return tuple(command)
        return (*self.agent, *_OPTIONS, *self._port(), host.name, shlex.join(command))

    def look(self, host: Host, *words: str, seconds: float = LOOK_S) -> str:
        """What the look program prints there.

        Raises:
            Unreachable: the host is not reached.
            HostUnfit: the program failed, e.g. since it is not at the same path there.
        """
        return self.ask(host, look_argv(*words), seconds).strip()

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
        if answer.cause is NoStatus.TOO_LONG:
            raise Unreachable(f"no answer in {seconds:.0f} s")
        if answer.cause is NoStatus.NOT_STARTED:
            raise Unreachable(answer.why)
        said = " ".join((answer.stderr.strip() or answer.stdout.strip()).split())
        if answer.status == SSH_FAILED and not host.here:
            raise Unreachable(said or "ssh failed without a message")
        if not answer.is_good:
            raise HostUnfit(said or f"exit status {answer.status}")
        return answer.stdout

    def lost(self, hosts: Sequence[Host]) -> dict[Host, str]:
        """Those of the hosts that do not answer now, and why."""

        def why(host: Host) -> str | None:
            try:
                self.ask(host, ("true",), LOOK_S)
            except Unreachable as error:
                return str(error)
            except HostUnfit:
                return None
            return None

        with ThreadPoolExecutor(len(hosts)) as pool:
            found = zip(hosts, pool.map(why, hosts), strict=True)
            return {host: words for host, words in found if words is not None}

    def _port(self) -> tuple[str, ...]:
        return () if self.ssh_port is None else ("-p", str(self.ssh_port))

    def _name_of(self, name: str) -> str:
        """The name or address that ssh's configuration has for a host; the name itself if none."""
        answer = ask_here((*self.agent, "-G", name), LOOK_S)
        lines = (line.split(maxsplit=1) for line in answer.stdout.splitlines())
        return next((words[1] for words in lines if words[0] == "hostname" and words[1:]), name)
