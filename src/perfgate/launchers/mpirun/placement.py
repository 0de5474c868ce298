"""MpirunPlacement: hosts that Open MPI reaches by ssh as the place of a fresh start."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from perfgate.core.command import Command
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.programs import MPIRUN
from perfgate.core.raw_log import end_of
from perfgate.launchers.base import Exit, Job, PlacementRequest
from perfgate.launchers.local.job import MARK, signal_of
from perfgate.launchers.mpirun.argv import by_mpirun, calls_mpirun, started_by
from perfgate.launchers.mpirun.hosts import (
    HOST_LIST,
    Host,
    HostLock,
    HostQuery,
    HostUnfit,
    Unreachable,
    clear_host,
)
from perfgate.launchers.nodes.placement import NEVER_OF_A_NODE, NodesPlacement, NodesSession
from perfgate.launchers.nodes.remote_job import LOOK_S, Nodes, RemoteJob
from perfgate.launchers.site import MpirunSite
from perfgate.scenarios.scenario import Scenario

_OF_ITS_OWN = {132, 135}  # no such program, no such folder: neither SIGILL nor SIGBUS
_SAID = re.compile(r"process rank \d+ .{0,300}?exited on signal (\d+)", re.DOTALL)
_TAIL = 8192


def status_of_rank(ended: Exit, stderr: Path) -> int | None:
    """The end of mpirun as that of the rank that ended first."""
    return of_rank(ended.status, end_of(stderr, _TAIL))


def of_rank(status: int | None, said: str) -> int | None:
    """The end of mpirun as that of the rank that ended first: -N when signal N ended it.

    Args:
        status: mpirun's: that of the rank, 128 + N after a signal, or one of its own.
        said: what it said last.
    """
    number = signal_of(status)
    if number is None:
        return status
    told = _SAID.search(said)
    is_told = told is not None and int(told[1]) == number
    return status if status in _OF_ITS_OWN and not is_told else -number


class MpirunPlacement(NodesPlacement):
    """Hosts; the server is on the first of them.

    Args:
        session: what it shares with other starts.
        locks: the hosts, locked for this start.
        reach: how they are asked.
        site: the settings of mpirun.
        request: the start.
        place: what all processes of this start are known by.
        version: of Open MPI.
    """

    def __init__(
        self,
        session: NodesSession,
        locks: tuple[HostLock, ...],
        reach: HostQuery,
        site: MpirunSite,
        request: PlacementRequest,
        *,
        place: str,
        version: str,
    ) -> None:
        self._hosts = {lock.host.name: lock.host for lock in locks}
        super().__init__(
            session,
            tuple(self._hosts),
            _address(locks[0].host),
            site,
            request,
            place=place,
            seen=HOST_LIST,
        )
        self._locks = {lock.host.name: lock for lock in locks}
        self._reach = reach
        self._site = site
        self.facts = {"mpirun": {"hosts": list(self.nodes), "version": version}}

    def launched(self, command: Command, scenario: Scenario, locations: Locations) -> Command:
        """As in `Placement`: one rank per GPU wherever the document has several nodes."""
        here = replace(locations, hosts=self.nodes)
        return by_mpirun(command, scenario, here, self._reach.ssh_port)

    def start(self, command: Command, folder: Path, name: str) -> Job:
        has_ranks = calls_mpirun(command.argv, MPIRUN.find())
        return self._started(command, folder, name, self.nodes if has_ranks else self.nodes[:1])

    def free_port(self) -> int:
        self.require()
        return super().free_port()

    def require(self) -> None:
        """As in `Placement`: every host still answers."""
        if lost := self._lost():
            raise self._node_failed(lost)

    def explained(self, error: RunError) -> RunError:
        """The error, or the host that was lost."""
        lost = {} if error.failure in NEVER_OF_A_NODE else self._lost()
        return self._node_failed(lost, error) if lost else error

    def clear(self) -> None:
        """End what is left on the hosts, where mpirun did not; a lost host keeps its marks."""

        def ended(name: str) -> str:
            try:
                left = clear_host(self._locks[name], self._reach)
            except (Unreachable, HostUnfit) as error:
                return f"{name} may have processes left: {error}"
            return f"{name}: {left} processes were left, and are ended" if left else ""

        for told in filter(None, self._query(self.nodes).each(ended)):
            self._request.tell(told)

    def _started(
        self, command: Command, folder: Path, name: str, nodes: tuple[str, ...]
    ) -> RemoteJob:
        mark = uuid4().hex
        command = self._known(command)
        argv = started_by(
            MPIRUN.find(),
            command,
            (command.cwd or folder).resolve(),
            nodes[0],
            self._site,
            ssh_port=self._reach.ssh_port,
            mark="/".join(filter(None, (os.environ.get(MARK), self._place, mark))),
            environment=os.environ,
            root=os.geteuid() == 0,
        )
        mpirun = self._session.local.start(replace(command, argv=argv), folder, name)
        return RemoteJob(mpirun, self._query(nodes), mark, status_of_rank)

    def _beside(self, command: Command, folder: Path, name: str) -> Job:
        return self.start(command, folder, name)

    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """As in `NodesPlacement`, as the engine is started: by an mpirun."""
        env = {variable: text for variable, text in os.environ.items() if _is_ours(variable)}
        return self._started(replace(command, env=env), folder, name, (name,))

    def _query(self, names: tuple[str, ...]) -> Nodes:
        return Nodes(names, self._ask)

    def _ask(self, name: str, argv: Sequence[str], seconds: float) -> str:
        try:
            return self._reach.ask(self._hosts[name], argv, seconds)
        except (Unreachable, HostUnfit) as error:
            raise RunError("mpi", f"{name} could not be queried: {error}") from error

    def _lost(self) -> dict[str, str]:
        """The hosts that do not answer now, and why."""

        def why(name: str) -> str:
            try:
                self._reach.ask(self._hosts[name], ("true",), LOOK_S)
            except Unreachable as error:
                return str(error)
            except HostUnfit:
                return ""
            return ""

        found = zip(self.nodes, self._query(self.nodes).each(why), strict=True)
        return {name: words for name, words in found if words}

    def _node_failed(self, lost: Mapping[str, str], error: RunError | None = None) -> RunError:
        self._session.bad.update(lost)
        told = "; ".join(f"{name} does not answer: {why}" for name, why in lost.items())
        return RunError(
            "node_failed",
            f"{told}; {error.message}" if error else told,
            evidence=error.evidence if error else (),
            hint="look at the host itself; where mpirun.hosts names others they are tried once",
        )


def _is_ours(variable: str) -> bool:
    """Whether it says where perfgate itself finds things; its marks are of this start here."""
    ours = variable == "PYTHONPATH" or variable.startswith("PERFGATE_")
    return ours and variable != MARK


def _address(host: Host) -> str:
    """The server's address, which clients reach it under."""
    if host.address is None:
        raise InputError(
            "the server's host has no address here",
            field="mpirun.hosts",
            found=host.name,
            expected="a name that resolves here, or whose HostName in ssh's configuration does",
            hint="perfgate must reach the server over the network",
        )
    return host.address
