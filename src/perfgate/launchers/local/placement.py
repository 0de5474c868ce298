"""LocalPlacement: this machine as the place of a fresh start."""

from collections.abc import Callable, Mapping
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.measurement import Json
from perfgate.launchers.base import Job, Placement
from perfgate.launchers.ports import free_port


class LocalPlacement(Placement):
    """This machine; its server is reached over the loopback device alone."""

    host = "127.0.0.1"
    facts: Mapping[str, Json] = {}

    def __init__(self, start: Callable[[Command, Path, str], Job]) -> None:
        self._start = start

    def start(self, command: Command, folder: Path, name: str) -> Job:
        return self._start(command, folder, name)

    def start_client(
        self,
        command: Command,
        folder: Path,
        name: str,
        *,
        of_engine: bool = False,  # noqa: ARG002 - everything is here
    ) -> Job:
        return self._start(command, folder, name)

    def free_port(self) -> int:
        return free_port(self.host)
