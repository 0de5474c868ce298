"""The environment of a rehearsal in one pytest process: variables set, and put back at its end.

The main process sets the stage and tells its variables to the workers of pytest-xdist.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from perfgate.core.programs import Program
from perfgate.rehearsal.setup import clear, parse_fault, stage
from perfgate.scenarios.scenario import Scenario

SEED = 20  # the same rehearsal twice gives the same numbers


class RehearsalEnvironment:
    """The environment variables that put the stand-ins in place; none until `enter`."""

    def __init__(self) -> None:
        self.variables: Mapping[str, str] = {}
        self._before: dict[str, str | None] = {}
        self._built: Path | None = None

    def build(
        self,
        folder: Path,
        scenarios: Sequence[Scenario],
        engine_version: str | None,
        fault: str | None,
        real: Collection[Program] = (),
    ) -> None:
        """Set the stage in `folder`, and enter it; the `real` programs are not played.

        Raises:
            InputError: no such fault.
        """
        known = None if fault is None else parse_fault(fault)
        self._built = folder
        self.enter(
            stage(
                folder,
                scenarios,
                engine_version=engine_version,
                fault=known,
                seed=SEED,
                real=real,
            )
        )

    def enter(self, variables: Mapping[str, str]) -> None:
        """Set the variables of a stage."""
        self.variables = variables
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)

    def leave(self) -> None:
        """Give every variable the value it had before; take down a stage that was built here.

        Its datasets and make-believe weights are large, and worth nothing.
        """
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
        if self._built is not None:
            clear(self._built)
