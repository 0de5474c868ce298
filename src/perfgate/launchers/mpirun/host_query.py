"""HostsOfJob: what the hosts of one mpirun know of its ranks, asked from here."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from perfgate.core.errors import RunError
from perfgate.launchers.mpirun.ssh import LOOK_S, Host, HostQuery, HostUnfit, Unreachable
from perfgate.launchers.nodes import hang_dump as node_evidence


class HostsOfJob:
    """The hosts, as `node_step.Nodes`; all of them are asked at the same time."""

    def __init__(self, reach: HostQuery, hosts: Sequence[Host]) -> None:
        self._reach = reach
        self._hosts = hosts

    def look(self, *words: str, seconds: float = LOOK_S) -> str:
        """What the look program answers, a line for each host.

        Raises:
            RunError: class ``mpi``: a host could not be asked.
        """

        def ask(host: Host) -> str:
            try:
                return self._reach.look(host, *words, seconds=seconds)
            except (Unreachable, HostUnfit) as error:
                raise RunError("mpi", f"{host.name} could not be asked: {error}") from error

        return "\n".join(self._all(ask))

    def evidence(self, mark: str, file: Path, seconds: float) -> None:
        """Append to `file` what the launch does on the hosts, or why that is not known."""

        def ask(host: Host) -> str:
            part = node_evidence.part_of(file, host.name)
            try:
                self._reach.ask(host, _evidence_argv(host, mark, file), seconds)
                return part.read_text(encoding="utf-8", errors="replace")
            except (Unreachable, HostUnfit, OSError) as error:
                return f"on {host.name}: nothing is known: {error}\n"
            finally:
                part.unlink(missing_ok=True)

        told = self._all(ask)
        with file.open("a", encoding="utf-8") as whole:
            whole.writelines(told)

    def _all(self, ask: Callable[[Host], str]) -> list[str]:
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            return list(pool.map(ask, self._hosts))


def _evidence_argv(host: Host, mark: str, file: Path) -> tuple[str, ...]:
    """The call of `node_evidence`, which takes the node's name from a variable of Slurm."""
    node = f"{node_evidence.NODE}={host.name}"
    return ("env", node, sys.executable, "-m", node_evidence.__name__, mark, str(file))
