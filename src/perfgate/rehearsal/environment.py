"""The environment of a rehearsal in one pytest process: variables set, and put back at its end.

The main process puts the mocks in place and tells the variables to the workers of pytest-xdist.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from perfgate.core.durable_files import write_errors_named
from perfgate.core.programs import Program
from perfgate.rehearsal.recorded_pages import label
from perfgate.rehearsal.setup import PLAYBOOK, clear, parse_fault, set_up
from perfgate.scenarios.scenario import Scenario

SEED = 20  # the same rehearsal twice gives the same numbers


class RehearsalEnvironment:
    """The environment variables that put the mock programs in place; none until `enter`.

    Attributes:
        variables: the variables.
        pages: engine and release → program → of which release its recorded page is; empty until
            `build`.
    """

    def __init__(self) -> None:
        self.variables: Mapping[str, str] = {}
        self.pages: Mapping[str, Mapping[str, str]] = {}
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
        """Put the mock programs into `folder`, and enter; the `real` programs have none.

        Raises:
            InputError: no such fault.
            RunError: the folder cannot be written.
        """
        known = None if fault is None else parse_fault(fault)
        self._built = folder
        with write_errors_named(folder):
            variables = set_up(
                folder,
                scenarios,
                engine_version=engine_version,
                fault=known,
                seed=SEED,
                real=real,
            )
        releases = json.loads((folder / PLAYBOOK).read_text())["releases"]
        self.pages = {
            f"{engine} {version}": {program: label(name) for program, name in programs.items()}
            for engine, versions in releases.items()
            for version, programs in versions.items()
        }
        self.enter(variables)

    def enter(self, variables: Mapping[str, str]) -> None:
        """Set the variables."""
        self.variables = variables
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)

    def leave(self) -> None:
        """Give every variable the value it had before; remove what was built here.

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
