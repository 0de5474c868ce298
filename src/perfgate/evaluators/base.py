"""Evaluator: a program that measures the accuracy of a served model."""

from abc import ABC, abstractmethod
from pathlib import Path

from perfgate.clients.base import Target
from perfgate.command import Command
from perfgate.measurement import Measurement
from perfgate.registry import Registry
from perfgate.scenario import AccuracyTask


class Evaluator(ABC):
    """One evaluator. Stateless."""

    name: str

    @abstractmethod
    def version(self) -> str:
        """The installed program's version.

        Raises:
            MissingProgram: the program is not installed.
        """

    @abstractmethod
    def command(self, target: Target, task: AccuracyTask, folder: Path) -> Command:
        """The command that evaluates one task and leaves its results in `folder`."""

    @abstractmethod
    def parse(self, task: AccuracyTask, folder: Path) -> Measurement:
        """Read what the finished program left in `folder`, per-question answers included.

        Raises:
            RunError: the results are missing, cut, empty, or not what was asked.
        """


evaluator: Registry[Evaluator] = Registry("evaluator", "perfgate.evaluators")
