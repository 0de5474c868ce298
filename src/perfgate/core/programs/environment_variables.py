"""Environment variables: every `PERFGATE_…` that perfgate reads, which variables a run records, and
which a script sets.

The table itself is environment_variables.toml. A variable with a wrong name is set for nothing, and
nobody would notice: the run says so. A variable is recorded because it shapes numbers (devices,
libraries, caches), belongs to perfgate, or says which job of which scheduler or CI system the run
was; no other is. Values are masked all the same: an address of a hub or a program's call may have a
password in it.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from perfgate.core.errors import InputError, nearest
from perfgate.core.files.remembered import toml_beside
from perfgate.core.programs.programs import PROGRAM_PREFIX, program_variables
from perfgate.core.redaction import holds_secret, is_secret, mask_environment

PREFIX = "PERFGATE_"
_STANDINS = "PERFGATE_STANDIN_"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASKED = "its value is not written down, set it yourself"

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


@cache
def known_variables() -> tuple[EnvironmentVariable, ...]:
    """The whole table."""
    return tuple(
        EnvironmentVariable(name, meaning, set_by)
        for set_by in get_args(Setter)
        for name, meaning in toml_beside(__file__, "environment_variables")[set_by].items()
    )


@cache
def _names(of: str) -> frozenset[str]:
    """The names in one of the table's lists."""
    return frozenset(" ".join(toml_beside(__file__, "environment_variables")[of].values()).split())


def variables_set(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of perfgate in `environment`, by name, with the values of secrets masked."""
    named = {name: environment[name] for name in sorted(environment) if name.startswith(PREFIX)}
    return mask_environment(named)


def unknown_variables(environment: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each name in `environment` that looks like perfgate's and is not."""
    known = {one.name for one in known_variables() if "<" not in one.name}
    known.update(program_variables())
    named = (name for name in environment if name.startswith(PREFIX))
    wrong = sorted(name for name in named if name not in known and not name.startswith(_STANDINS))
    return tuple(f"{name}: perfgate has no such variable{_meant(name, known)}" for name in wrong)


def _meant(name: str, known: Iterable[str]) -> str:
    """What may have been meant: of what is the same in all names nothing can be told."""
    beginning = PROGRAM_PREFIX if name.startswith(PROGRAM_PREFIX) else PREFIX
    ends = [one.removeprefix(beginning) for one in known if one.startswith(beginning)]
    close = nearest(name.removeprefix(beginning), ends)
    return "" if close is None else f"; did you mean {beginning}{close}?"


def recorded(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a run writes down, by name, with secrets masked."""
    return mask_environment(
        {name: environment[name] for name in sorted(environment) if _is_recorded(name)}
    )


def _is_recorded(name: str) -> bool:
    of_engines = _is_of_family(name) and not is_secret(name)
    return name in _names("recorded") or name.startswith(PREFIX) or of_engines


def is_written(name: str, value: str) -> bool:
    """Whether the variable stands in scripts with its value.

    No value of a variable stands in an argv, where `ps` shows it to everybody. A script, which is
    kept and handed on, holds the values of those alone that are known to say nothing but how an
    engine is set; any other has to be in the environment of whoever runs it.
    """
    known = name in _names("in scripts") or _is_of_family(name) or not value
    return known and not holds_secret(name, value)


def export_line(name: str, value: str) -> str:
    """The line of a shell script that sets the variable, or ends the script where it is not set.

    Raises:
        InputError: no shell has a variable of that name.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            "not a variable's name", found=repr(name), expected="letters, digits and underscores"
        )
    if is_written(name, value):
        return f"export {name}={shlex.quote(value)}"
    return f'export {name}="${{{name}:?{ASKED}}}"'


def _is_of_family(name: str) -> bool:
    return name.startswith(tuple(_names("families")))
