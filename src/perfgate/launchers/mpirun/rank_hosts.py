"""RankHosts: what the hosts of one mpirun know of its ranks, asked from here."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from perfgate.core.errors import RunError
from perfgate.launchers.mpirun.ssh import Host, HostQuery, HostUnfit, Unreachable
from perfgate.launchers.nodes.hang_dump import NODE
from perfgate.launchers.nodes.node_query import LOOK_S, dump_argv, gather_parts


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
