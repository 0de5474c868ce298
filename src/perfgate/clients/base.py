"""Client: a program that puts load on a server and reports what it saw."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from perfgate.command import Command
from perfgate.engines.base import Endpoint
from perfgate.measurement import Measurement
from perfgate.registry import Registry
from perfgate.scenarios.scenario import LoadPoint, Workload


@dataclass(frozen=True)
class Target:
    """What a client or evaluator talks to."""

    endpoint: Endpoint
    tokenizer: Path


class Client(ABC):
    """One load client. Stateless."""

    name: str

    @abstractmethod
    def version(self) -> str:
        """The installed program's version.

        Raises:
            MissingProgram: the program is not installed.
        """

    @abstractmethod
    def command(
        self, target: Target, workload: Workload, point: LoadPoint, folder: Path
    ) -> Command:
        """The command that measures one sweep point and leaves its results in `folder`."""

    @abstractmethod
    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """Read what the finished program left in `folder`.

        Raises:
            RunError: the results are missing, cut, not finite, or not what was asked: failed
                requests, fewer requests than asked, other lengths than asked.
        """


client: Registry[Client] = Registry("client", "perfgate.clients")
