"""Rehearsal seam: whether stand-ins play the engine; alone in the suite in loading them."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfgate.launchers.base import launcher
from perfgate.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from perfgate.rehearsal.environment import RehearsalEnvironment

Option = Callable[[str], Any]


def rehearses(option: Option) -> bool:
    """Whether stand-ins play the engine's programs."""
    return bool(option("--rehearse") or option("--rehearse-fault"))


def shortened(scenarios: Iterable[Scenario]) -> tuple[Scenario, ...]:
    """The scenarios with time limits that fit stand-ins."""
    from perfgate.rehearsal import setup

    return tuple(map(setup.shortened, scenarios))


class RehearsalSeam:
    """The rehearsal of one pytest process; nothing of it in a session that does not rehearse."""

    def __init__(self) -> None:
        self._environment: RehearsalEnvironment | None = None

    def build(
        self, folder: Path, scenarios: Iterable[Scenario], option: Option
    ) -> Mapping[str, Mapping[str, str]]:
        """Put the stand-ins in place, as the main process does.

        Returns:
            Release → program → of which release the recorded page is that its stand-in plays.

        Raises:
            InputError: no such fault.
        """
        environment = self._loaded()
        environment.build(
            folder,
            tuple(scenarios),
            option("--engine-version"),
            option("--rehearse-fault"),
            launcher[option("--launcher")].starts_by,
        )
        return environment.pages

    def join(self, variables_json: str) -> None:
        """Take part in what the main process put in place, as it says."""
        variables = json.loads(variables_json)
        if variables:
            self._loaded().enter(variables)

    def variables_json(self) -> str:
        """What a worker must know to take part."""
        return json.dumps(dict(self._environment.variables) if self._environment else {})

    def leave(self) -> None:
        """Put everything back as it was."""
        if self._environment is not None:
            self._environment.leave()

    def _loaded(self) -> "RehearsalEnvironment":
        from perfgate.rehearsal.environment import RehearsalEnvironment

        self._environment = RehearsalEnvironment()
        return self._environment
