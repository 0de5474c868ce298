"""MpirunPlacement: hosts that Open MPI reaches by ssh as the place of a fresh start."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from perfgate.core.command import Command
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.programs import MPIRUN
from perfgate.core.raw_log import end_of
from perfgate.launchers.base import Exit, Job, PlacementRequest
from perfgate.launchers.local.job import LocalJob
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.local.orphans import MARK
from perfgate.launchers.mpirun.argv import by_mpirun, calls_mpirun, started_by
from perfgate.launchers.mpirun.hosts import HostLock, clear_host
from perfgate.launchers.mpirun.ssh import Host, HostQuery, HostUnfit, Unreachable
from perfgate.launchers.nodes.hang_dump import NODE
from perfgate.launchers.nodes.listening import ServerAddress
from perfgate.launchers.nodes.node_query import LOOK_S, NodeQuery, dump_argv, gather_parts
from perfgate.launchers.nodes.placement import NEVER_OF_A_NODE, NodesPlacement
from perfgate.launchers.nodes.remote_job import SIGNAL_BASE, RemoteJob
from perfgate.launchers.site import MpirunSite
from perfgate.scenarios.scenario import Scenario

_OF_ITS_OWN = {132, 135}  # no such program, no such folder: neither SIGILL nor SIGBUS
_SAID = re.compile(r"process rank \d+ .{0,300}?exited on signal (\d+)", re.DOTALL)
_TAIL = 8192


class MpirunJob(RemoteJob):
    """Started ranks, or one process: as a step of a Slurm job, but that mpirun tells its end.

    Args:
        mpirun: the mpirun call, under its wardens.
        nodes: asks the hosts of the ranks.
        mark: what the ranks are known by; mpirun itself has another mark.
    """

    def __init__(self, mpirun: LocalJob, nodes: NodeQuery, mark: str) -> None:
        super().__init__(mpirun, nodes)
        self.mark = mark

    def _status_of_task(self, ended: Exit) -> int | None:
        """As the rank that ended first has it."""
        return of_rank(ended.status, end_of(self.stderr, _TAIL))


def of_rank(status: int | None, said: str) -> int | None:
    """The end of mpirun as that of the rank that ended first: -N when signal N ended it.

    Args:
        status: mpirun's: that of the rank, 128 + N after a signal, or one of its own.
        said: what it said last.
    """
    if status is None or not SIGNAL_BASE < status < SIGNAL_BASE + 65:
        return status
    told = _SAID.search(said)
    if told is not None and int(told[1]) == status - SIGNAL_BASE:
        return -int(told[1])
    return status if status in _OF_ITS_OWN else SIGNAL_BASE - status


class RankHosts:
    """The hosts, as a `NodeQuery`."""

    def __init__(self, reach: HostQuery, hosts: Sequence[Host]) -> None:
        self._reach = reach
        self._hosts = hosts

    def look(self, *words: str, seconds: float = LOOK_S) -> str:
        """As in `NodeQuery`.

        Raises:
            RunError: class ``mpi``: a host could not be asked.
        """

        def ask(host: Host) -> str:
            try:
                return self._reach.look(host, *words, seconds=seconds)
            except (Unreachable, HostUnfit) as error:
                raise RunError("mpi", f"{host.name} could not be queried: {error}") from error

        return "\n".join(self._all(ask))

    def evidence(self, mark: str, file: Path, seconds: float) -> None:
        """As in `NodeQuery`; the program takes the node's name from a variable of Slurm."""

        def ask(host: Host) -> str:
            call = ("env", f"{NODE}={host.name}", *dump_argv(mark, file))
            try:
                self._reach.ask(host, call, seconds)
            except (Unreachable, HostUnfit) as error:
                return f"on {host.name}: nothing is known: {error}\n"
            return ""

        failed = self._all(ask)
        gather_parts(file, [host.name for host in self._hosts], "".join(failed))

    def _all(self, ask: Callable[[Host], str]) -> list[str]:
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            return list(pool.map(ask, self._hosts))


class MpirunPlacement(NodesPlacement):
    """Hosts; the server is on the first of them.

    Args:
        local: starts mpirun here.
        locks: the hosts, locked for this start.
        reach: how they are asked.
        site: the settings of mpirun.
        request: the start.
        mark: what all processes of this start are known by.
        version: of Open MPI.
        listening: where its server listens.
        failed: told the hosts that were lost.
    """

    def __init__(
        self,
        local: LocalLauncher,
        locks: tuple[HostLock, ...],
        reach: HostQuery,
        site: MpirunSite,
        request: PlacementRequest,
        *,
        mark: str,
        version: str,
        listening: ServerAddress,
        failed: Callable[[Sequence[str]], None],
    ) -> None:
        hosts = tuple(lock.host for lock in locks)
        super().__init__(local, tuple(host.name for host in hosts), request, mark)
        self._locks = locks
        self._hosts = hosts
        self._reach = reach
        self._site = site
        self._tell = request.tell
        self._failed = failed
        first = self._hosts[0]
        self.host = listening.on(first.name, _address(first), request.tell)
        mpirun: Json = {"hosts": list(self._names), "version": version}
        self.facts = {"mpirun": mpirun}

    def launched(self, command: Command, scenario: Scenario, locations: Locations) -> Command:
        """As in `Placement`: one rank per GPU wherever the document has several nodes."""
        here = replace(locations, hosts=self._names)
        return by_mpirun(command, scenario, here, self._reach.ssh_port)

    def start(self, command: Command, folder: Path, name: str) -> Job:
        hosts = self._hosts if calls_mpirun(command.argv, MPIRUN.find()) else self._hosts[:1]
        return self._started(command, folder, name, hosts)

    def start_client(
        self, command: Command, folder: Path, name: str, *, of_engine: bool = False
    ) -> Job:
        """As in `Placement`. What comes with the engine is at the same path here as there."""
        del of_engine
        if self._site.clients == "here":
            return self._local.start(self._known(command), folder, name)
        return self.start(command, folder, name)

    def free_port(self) -> int:
        first = self._hosts[0]
        try:
            seen = self._folder / "mpirun.hosts"
            return int(self._reach.look(first, "port", self.host, str(seen)))
        except Unreachable as error:
            raise self._node_failed({first: str(error)}) from error
        except (HostUnfit, ValueError) as error:
            raise RunError(
                "config_error",
                f"{first.name} has no port for a server at {self.host}: {error}",
                hint="the host must have the address that its name stands for here",
            ) from error

    def require(self) -> None:
        """As in `Placement`: every host still answers."""
        if lost := self._reach.lost(self._hosts):
            raise self._node_failed(lost)

    def explained(self, error: RunError) -> RunError:
        """The error, or the host that was lost."""
        if error.failure in NEVER_OF_A_NODE:
            return error
        lost = self._reach.lost(self._hosts)
        return self._node_failed(lost, error) if lost else error

    def clear(self) -> None:
        """End what is left on the hosts, where mpirun did not; a lost host keeps its marks."""

        def ended(lock: HostLock) -> str:
            try:
                left = clear_host(lock, self._reach)
            except (Unreachable, HostUnfit) as error:
                return f"{lock.host.name} may have processes left: {error}"
            return f"{lock.host.name}: {left} processes were left, and are ended" if left else ""

        with ThreadPoolExecutor(len(self._locks)) as pool:
            for told in pool.map(ended, self._locks):
                if told:
                    self._tell(told)

    def _started(
        self, command: Command, folder: Path, name: str, hosts: Sequence[Host]
    ) -> MpirunJob:
        mark = uuid4().hex
        command = self._known(command)
        argv = started_by(
            MPIRUN.find(),
            command,
            (command.cwd or folder).resolve(),
            hosts[0].name,
            self._site,
            ssh_port=self._reach.ssh_port,
            mark="/".join(filter(None, (os.environ.get(MARK), self._place, mark))),
            environment=os.environ,
            root=os.geteuid() == 0,
        )
        mpirun = self._local.start(replace(command, argv=argv), folder, name)
        return MpirunJob(mpirun, RankHosts(self._reach, hosts), mark)

    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """As in `NodesPlacement`, as the engine is started: by an mpirun."""
        host = self._hosts[self._names.index(name)]
        return self._started(_for_perfgate(command), folder, name, [host])

    def _node_failed(self, lost: Mapping[Host, str], error: RunError | None = None) -> RunError:
        self._failed([host.name for host in lost])
        told = "; ".join(f"{host.name} does not answer: {why}" for host, why in lost.items())
        return RunError(
            "node_failed",
            f"{told}; {error.message}" if error else told,
            evidence=error.evidence if error else (),
            hint="look at the host itself; where mpirun.hosts names others they are tried once",
        )


def _for_perfgate(command: Command) -> Command:
    """A call of perfgate itself, which finds things on a host as it does here."""
    env = {name: value for name, value in os.environ.items() if _is_for_perfgate(name)}
    return replace(command, env=env)


def _is_for_perfgate(name: str) -> bool:
    """Whether a variable says where perfgate finds things; its marks are of this start here."""
    return name == "PYTHONPATH" or (name.startswith("PERFGATE_") and name != MARK)


def _address(host: Host) -> str:
    """The server's IPv4 address, which clients reach it under."""
    if host.address is None:
        raise InputError(
            "the server's host has no address here",
            field="mpirun.hosts",
            found=host.name,
            expected="a name that resolves here, or whose HostName in ssh's configuration does",
            hint="perfgate must reach the server over the network",
        )
    return host.address
