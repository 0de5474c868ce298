"""Injection: change one setting of the build under test on purpose, to see the gate catch it.

Injected runs are marked as such in every record and report, and can become no baseline.
"""

from dataclasses import dataclass, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml

from perfgate.core.errors import InputError
from perfgate.core.redaction import mask_arguments, visible
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import read_value

_LONGEST = 1000  # characters of a value


@dataclass(frozen=True)
class Injection:
    """One changed setting, e.g. ``engine.settings.cpu_threads=1`` or ``accuracy.temperature=2``."""

    path: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        """As it is recorded and shown, a secret masked: ``environment.HF_TOKEN=***``."""
        (shown,) = mask_arguments([f"{'.'.join(self.path)}={self.value}"])
        return visible(shown)


def parse(text: str) -> Injection:
    """Read ``KEY=VALUE``; the value as a scenario file has it.

    Raises:
        InputError: no such form.
    """
    key, equals, written = text.partition("=")
    refused = InputError(
        "not a setting",
        field="--inject",
        found=repr(text[:_LONGEST]),
        expected="KEY=VALUE, e.g. engine.settings.cpu_threads=1",
    )
    if not equals or not key or len(written) > _LONGEST:
        raise refused
    try:
        value = read_value(written)
    except (InputError, yaml.YAMLError):
        raise refused from None
    return Injection(tuple(key.split(".")), value)


def inject(scenario: Scenario, injections: tuple[Injection, ...]) -> Scenario:
    """The scenario as it is really started, every injection applied.

    Raises:
        InputError: a path names no field, or the value is of another type.
    """
    for injection in injections:
        scenario = _replaced(scenario, injection.path, injection)
    return scenario


def _replaced(target: Any, path: tuple[str, ...], injection: Injection) -> Any:
    if isinstance(target, tuple):
        return tuple(_replaced(item, path, injection) for item in target)
    name, rest = path[0], path[1:]
    known = get_type_hints(type(target)) if is_dataclass(target) else {}
    if name not in known:
        raise InputError(
            "no such setting",
            field="--inject",
            found=str(injection),
            expected=f"after {'.'.join(injection.path[: -len(path)]) or 'the start'} one of "
            + (", ".join(known) or "nothing"),
        )
    if rest:
        return replace(target, **{name: _replaced(getattr(target, name), rest, injection)})
    if not _fits(injection.value, known[name]):
        raise InputError(
            "not a value of this setting",
            field="--inject",
            found=f"{injection} ({type(injection.value).__name__})",
            expected=_told(known[name]),
        )
    return replace(target, **{name: injection.value})


def _fits(value: object, hint: Any) -> bool:
    """Whether a setting of type `hint` can be `value`; only single values are settings."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is UnionType:
        return any(_fits(value, one) for one in get_args(hint))
    return type(value) is hint or (hint is float and type(value) is int)


def _told(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) is UnionType:
        return " or ".join(_told(one) for one in get_args(hint))
    names = {bool: "true or false", int: "int", float: "float", str: "text", NoneType: "null"}
    return names.get(hint, "one of its own settings")
