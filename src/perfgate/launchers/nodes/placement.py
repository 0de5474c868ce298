"""NodesPlacement: what the places of a fresh start on other nodes have in common.

The server of a start asks nobody for a key. On this machine it listens at the loopback device; on
another node at the node's own address, as perfgate and its clients come from here: whoever reaches
the node can use the server, and a session is told so once, unless the site says that it knows.
"""

import os
import socket
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path

import psutil

from perfgate.core.command import Command
from perfgate.core.durable_files import write_text
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Json
from perfgate.core.untrusted_files import created_regular, make_new_folder
from perfgate.launchers.base import Job, Placement, PlacementRequest
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.nodes.preflight import (
    SAME_PATH,
    SCENARIO,
    ask_doctors,
    doctor_command,
    scenario_text,
)
from perfgate.launchers.nodes.remote_job import Nodes
from perfgate.launchers.nodes.watch import PLACE, watching
from perfgate.launchers.site import MpirunSite, SlurmSite
from perfgate.machine.conditions.watch import NodesWatch

LOOPBACK = "127.0.0.1"
NODE = "node"
# Failures that a lost node or a cancelled job cannot look like.
NEVER_OF_A_NODE = {
    *("config_error", "cli_drift", "model_file", "port_in_use", "disk_full", "unwritable"),
}


@dataclass
class NodesSession:
    """What all starts of a session share.

    Attributes:
        listen: field of the site file that says where servers listen: ``slurm.listen``.
        local: starts here what reaches the nodes.
        bad: nodes that were lost in this session.
        told: whether the session was told that others can reach its servers.
    """

    listen: str
    local: LocalLauncher = field(default_factory=LocalLauncher)
    bad: set[str] = field(default_factory=set)
    told: bool = False

    def listens_at(
        self, word: str | None, node: str, address: str, tell: Callable[[str], None]
    ) -> str:
        """Where the server on a node listens, which is reached from here under `address`.

        Args:
            word: what the site says: "loopback", "node", or None.
            node, address: the node.
            tell: tells the session.

        Raises:
            InputError: it must be the loopback device, and the node is another machine.
        """
        if word != NODE and address in own_addresses():
            return LOOPBACK
        if ip_address(address).is_loopback:
            return address
        if word == "loopback":
            raise InputError(
                "a server on another machine's loopback device cannot be reached",
                field=self.listen,
                found=f"loopback, and the server's node is {node} ({address})",
                expected="node; or perfgate runs on the server's node",
            )
        if word is None and not self.told:
            self.told, key = True, self.listen
            tell(
                f"the server listens at {address} of {node} and asks for no key: whoever reaches "
                f"that address can use it ({key}: node in site.yaml says that this is known)"
            )
        return address


def own_addresses() -> set[str]:
    """The addresses of this machine."""
    return {one.address for many in psutil.net_if_addrs().values() for one in many}


def address_of(name: str) -> str | None:
    """The address that a name stands for here: IPv4 where it has one, else IPv6; None: neither."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    best = min(found, key=lambda one: one[0] != socket.AF_INET)
    return str(best[4][0])


class NodesPlacement(Placement):
    """Nodes; the server is on the first of them.

    Args:
        session: what it shares with others.
        nodes: the nodes' names.
        address: of the first, as it is reached from here.
        site: how they are reached.
        request: the start.
        place: what all processes of this start are known by.
        seen: a file of the start's folder that every node must see; made where it is missing.
        contained: whether the engine's programs are in a container.
    """

    def __init__(
        self,
        session: NodesSession,
        nodes: tuple[str, ...],
        address: str,
        site: SlurmSite | MpirunSite,
        request: PlacementRequest,
        *,
        place: str,
        seen: str,
        contained: bool = False,
    ) -> None:
        self.host = session.listens_at(site.listen, nodes[0], address, request.tell)
        self.nodes = nodes
        self._session = session
        self._clients = site.clients
        self._request = request
        self._folder = request.folder.absolute()
        self._place = place
        self._seen = self._folder / seen
        self._contained = contained

    def start_client(self, command: Command, folder: Path, name: str) -> Job:
        """As in `Placement`: on the server's node, or here where the site says so."""
        if self._clients == "beside":
            return self._beside(command, folder, name)
        return self._session.local.start(self._known(command), folder, name)

    def free_port(self) -> int:
        """As in `Placement`; tells as well whether the node sees the start's folder."""
        first = self.nodes[0]
        if not self._seen.exists():
            os.close(created_regular(self._seen))
        try:
            return int(self._query((first,)).look("port", self.host, str(self._seen)))
        except (RunError, ValueError) as error:
            raise self.explained(
                RunError(
                    "config_error",
                    f"{first} cannot be used: {error}",
                    evidence=tuple(str(error).splitlines()[-5:]),
                    hint=SAME_PATH,
                )
            ) from error

    def doctor(self) -> Mapping[str, Json] | None:
        """As in `Placement`; all nodes are asked at the same time."""
        folder = self._folder / "doctor"
        with suppress(FileExistsError):
            make_new_folder(folder)
        scenario = self._request.scenario
        write_text(folder / SCENARIO, scenario_text(scenario))
        command = doctor_command(scenario, folder, contained=self._contained)
        try:
            return ask_doctors({name: self._on_node(command, folder, name) for name in self.nodes})
        except RunError as error:
            raise self.explained(error) from error

    def watched(self, folder: Path) -> AbstractContextManager[NodesWatch]:
        """As in `Placement`: by a program on each node, outside of any container."""
        hardware = self._request.scenario.hardware
        return watching(self.nodes, self._place, hardware, folder, self._on_node)

    @abstractmethod
    def _beside(self, command: Command, folder: Path, name: str) -> Job:
        """Start a client on the first node, outside of any container."""

    @abstractmethod
    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """Start a call of perfgate's own on the node of that name."""

    @abstractmethod
    def _ask(self, name: str, argv: Sequence[str], seconds: float) -> str:
        """What a program prints on the node of that name; as `Nodes.ask`."""

    def _query(self, names: tuple[str, ...]) -> Nodes:
        """How the nodes of these names are asked."""
        return Nodes(names, self._ask)

    def _known(self, command: Command) -> Command:
        """The command whose processes a watch of the nodes knows as ours."""
        return replace(command, env={**command.env, PLACE: self._place})
