"""Engine: what perfgate must know of a program under test to serve a model with it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.programs import Program
from perfgate.core.registry import Registry
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class EngineBuild:
    """The engine's identity: version as the program tells it, and commit.

    `commit` names the baseline file; an engine that tells no commit uses its version.
    """

    name: str
    version: str
    commit: str


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens and what its model is called there."""

    host: str
    port: int
    model: str

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


class Engine(ABC):
    """One engine. Stateless: every method takes what it needs.

    Attributes:
        words: settings whose value is one of a few words → all that any release takes; what a
            single release takes is for `check` to say.
        interpreter: the Python that its ranks run in; None: it has no ranks.
    """

    name: str
    interpreter: ClassVar[Program | None] = None
    words: ClassVar[Mapping[str, frozenset[str]]] = {}
    health_path = "/health"
    models_path = "/v1/models"

    @abstractmethod
    def check(self, scenario: Scenario, build: EngineBuild) -> None:
        """Refuse what this build of the engine cannot honour.

        Raises:
            InputError: a setting that would be ignored silently, or that this release lacks.
        """

    @abstractmethod
    def build(self, locations: Locations) -> EngineBuild:
        """Ask the installed program what it is.

        Args:
            locations: where the program is.

        Raises:
            MissingProgram: the program is not installed.
            RunError: the container that it is in cannot be had.
        """

    def uncovered(self, version: str) -> str | None:  # noqa: ARG002
        """What is not known of a release, and what is done instead; None: all is known.

        Args:
            version: as a person gives it, or the program tells it.

        Raises:
            InputError: it is no release of the engine, or none that commands can be made for.
        """
        return None

    @abstractmethod
    def served_model(self, scenario: Scenario, locations: Locations) -> str:
        """The model's name as `/v1/models` will show it."""

    def verify(  # noqa: B027
        self, build: EngineBuild, commands: Sequence[Command], locations: Locations
    ) -> None:
        """Ask the installed programs whether they know every option of `commands`.

        Called before anything is started on a GPU; an engine whose options never move needs none.

        Raises:
            InputError: an option that the installed program lacks.
            RunError: the container that it is in cannot be had.
        """

    @abstractmethod
    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        """The command that serves the scenario's model on `endpoint`."""

    @abstractmethod
    def tokenizer(self, scenario: Scenario, cache: Path, locations: Locations) -> str:
        """A folder with the model's tokenizer (made once under `cache` if need be), or its name."""

    @abstractmethod
    def model_facts(self, scenario: Scenario, locations: Locations) -> Mapping[str, Json]:
        """What identifies the model's weights; ``sha256`` is always among it.

        Raises:
            InputError: the model's folder is not as the scenario says.
        """


engine: Registry[Engine] = Registry("engine", "perfgate.engines")
