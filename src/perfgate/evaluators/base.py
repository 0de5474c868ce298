"""Evaluator: a program that measures the accuracy of a served model."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path

from perfgate.clients.base import MeasuringProgram, Offline, Target
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.registry import Registry
from perfgate.scenarios.scenario import AccuracyTask


class Evaluator(MeasuringProgram):
    """One evaluator of a served model.

    Attributes:
        diagnose: the first cause that the log of a failed run shows, if a line tells; None: it is
            not looked for.
    """

    diagnose: Callable[[Iterable[str]], RunError | None] | None = None

    @abstractmethod
    def version(self, locations: Locations) -> str:
        """The installed program's own version.

        Raises:
            MissingProgram: the program is not installed.
        """

    @abstractmethod
    def command(self, target: Target, task: AccuracyTask) -> Command:
        """The command that evaluates one task and leaves its results in `target.folder`."""

    @abstractmethod
    def parse(self, task: AccuracyTask, folder: Path) -> Measurement:
        """Read what the finished program left in `folder`, per-question answers included.

        Raises:
            RunError: the results are missing, cut, empty, or not what was asked.
        """


evaluator: Registry[Evaluator | Offline] = Registry("evaluator", "perfgate.evaluators")
