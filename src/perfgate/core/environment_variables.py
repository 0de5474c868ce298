"""Environment variables: every `PERFGATE_…` that perfgate reads, and which ones are none of them.

The table itself is environment_variables.toml.
A variable with a wrong name is set for nothing, and nobody would notice: the run says so.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfgate.core.programs import PROGRAM_PREFIX, known_program_variables
from perfgate.core.redaction import mask_environment
from perfgate.core.suggestion import nearest

PREFIX = "PERFGATE_"
_STANDINS = "PERFGATE_STANDIN_"

Setter = Literal["you", "perfgate", "the tests"]


@dataclass(frozen=True)
class EnvironmentVariable:
    """One variable.

    Attributes:
        name: its name; that of a family ends with ``<NAME>``.
        meaning: what it says, and what holds without it.
        set_by: who sets it: a person; perfgate, for the processes that it starts; or the tests of
            perfgate itself.
    """

    name: str
    meaning: str
    set_by: Setter


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
VARIABLES: tuple[EnvironmentVariable, ...] = tuple(
    EnvironmentVariable(name, meaning, set_by)
    for set_by, variables in _TABLE.items()
    for name, meaning in variables.items()
)


def variables_set(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of perfgate in `environment`, by name, with the values of secrets masked."""
    named = {name: environment[name] for name in sorted(environment) if name.startswith(PREFIX)}
    return mask_environment(named)


def unknown_variables(environment: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each name in `environment` that looks like perfgate's and is not."""
    known = {one.name for one in VARIABLES if "<" not in one.name} | known_program_variables()
    named = (name for name in environment if name.startswith(PREFIX))
    wrong = sorted(name for name in named if name not in known and not name.startswith(_STANDINS))
    return tuple(f"{name}: perfgate has no such variable{_meant(name, known)}" for name in wrong)


def _meant(name: str, known: Iterable[str]) -> str:
    """What may have been meant: of what is the same in all names nothing can be told."""
    beginning = PROGRAM_PREFIX if name.startswith(PROGRAM_PREFIX) else PREFIX
    ends = [one.removeprefix(beginning) for one in known if one.startswith(beginning)]
    close = nearest(name.removeprefix(beginning), ends)
    return "" if close is None else f"; did you mean {beginning}{close}?"
