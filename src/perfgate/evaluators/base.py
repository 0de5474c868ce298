"""Evaluator: a program that measures the accuracy of a served model."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path

from perfgate.clients.base import Offline, Target
from perfgate.core.command import Command
from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.registry import Registry
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import AccuracyTask


class Evaluator(ABC):
    """One evaluator. Stateless.

    Attributes:
        of_engine: as in `perfgate.clients.base.Client`.
    """

    name: str
    of_engine = False

    @classmethod
    def scores(cls) -> Mapping[str, frozenset[str]]:
        """Task → its scores, ``<metric>:<filter>``, where they are known before it is measured."""
        return {}

    @abstractmethod
    def version(self, build: EngineBuild, locations: Locations) -> str:
        """The installed program's version: that of the engine's build, where it comes with it.

        Raises:
            MissingProgram: the program is not installed.
        """

    @abstractmethod
    def command(self, target: Target, task: AccuracyTask, folder: Path) -> Command:
        """The command that evaluates one task and leaves its results in `folder`."""

    def diagnose(self, _log: Iterable[str]) -> RunError | None:
        """The first cause that the log of a failed run shows; None if no line tells."""
        return None

    @abstractmethod
    def parse(self, task: AccuracyTask, folder: Path) -> Measurement:
        """Read what the finished program left in `folder`, per-question answers included.

        Raises:
            RunError: the results are missing, cut, empty, or not what was asked.
        """


evaluator: Registry[Evaluator | Offline] = Registry("evaluator", "perfgate.evaluators")
