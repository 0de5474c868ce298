"""NodesPlacement: what the places of a fresh start on other nodes have in common."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.durable_files import write_text
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json
from perfgate.core.untrusted_files import make_new_folder
from perfgate.launchers.base import Job, Placement, PlacementRequest
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.nodes.node_doctor import SCENARIO
from perfgate.launchers.nodes.preflight import ask_doctors, doctor_command, scenario_text
from perfgate.launchers.nodes.watch import PLACE
from perfgate.launchers.nodes.watchers import watching
from perfgate.machine.conditions.watch import NodesWatch
from perfgate.scenarios.scenario import Launch

# Failures that a lost node or a cancelled job cannot look like.
NEVER_OF_A_NODE = {
    *("config_error", "cli_drift", "model_file", "port_in_use", "disk_full", "unwritable"),
}


class NodesPlacement(Placement):
    """Nodes; the server is on the first of them.

    Args:
        local: starts here what reaches them.
        names: the nodes' names.
        request: the start.
        place: what all processes of this start are known by.
        contained: whether the engine's programs are in a container.
    """

    def __init__(
        self,
        local: LocalLauncher,
        names: tuple[str, ...],
        request: PlacementRequest,
        place: str,
        *,
        contained: bool = False,
    ) -> None:
        self._local = local
        self._names = self.nodes = names
        self._scenario = request.scenario
        self._folder = request.folder.absolute()
        self._place = place
        self._contained = contained

    def doctor(self) -> Mapping[str, Json] | None:
        """As in `Placement`; all nodes are asked at the same time."""
        folder = self._folder / "doctor"
        with suppress(FileExistsError):
            make_new_folder(folder)
        write_text(folder / SCENARIO, scenario_text(self._scenario))
        command = doctor_command(self._scenario, folder, contained=self._contained)
        try:
            return ask_doctors({name: self._on_node(command, folder, name) for name in self._names})
        except RunError as error:
            cause = self.explained(error)
            if cause is error:
                raise
            raise cause from error

    def has_nodes_for(self, launch: Launch) -> bool:  # noqa: ARG002
        """As in `Placement`: whatever the document launches by, ranks run on these nodes."""
        return True

    def watched(self, folder: Path) -> AbstractContextManager[NodesWatch]:
        """As in `Placement`: by a program on each node, outside of any container."""
        return watching(self._names, self._place, self._scenario.hardware, folder, self._on_node)

    @abstractmethod
    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """Start a call of perfgate's own on the node of that name."""

    def _known(self, command: Command) -> Command:
        """The command whose processes a watch of the nodes knows as ours."""
        return replace(command, env={**command.env, PLACE: self._place})
