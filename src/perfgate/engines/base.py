"""Engine: what perfgate must know of a program under test to serve a model with it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfgate.command import Command
from perfgate.measurement import Json
from perfgate.registry import Registry
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class EngineBuild:
    """The engine's identity: version as the program tells it, and commit.

    `commit` names the baseline file; an engine without commits uses its version.
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
    """One engine. Stateless: every method takes what it needs."""

    name: str
    health_path = "/health"
    models_path = "/v1/models"

    @abstractmethod
    def check(self, scenario: Scenario) -> None:
        """Refuse what this engine cannot honour.

        Raises:
            InputError: a setting that would be ignored silently.
        """

    @abstractmethod
    def build(self) -> EngineBuild:
        """Ask the installed program what it is.

        Raises:
            MissingProgram: the program is not installed.
        """

    @abstractmethod
    def served_model(self, scenario: Scenario) -> str:
        """The model's name as `/v1/models` will show it."""

    @abstractmethod
    def serve(self, scenario: Scenario, endpoint: Endpoint) -> Command:
        """The command that serves the scenario's model on `endpoint`."""

    @abstractmethod
    def tokenizer(self, scenario: Scenario, cache: Path) -> Path:
        """A folder with the model's tokenizer, made once under `cache` if need be."""

    @abstractmethod
    def model_facts(self, scenario: Scenario) -> Mapping[str, Json]:
        """What identifies the model's weights: file name, size, hash."""


engine: Registry[Engine] = Registry("engine", "perfgate.engines")
