"""Plain values: dataclasses to and from what JSON and YAML know, for all files and records.

The fields keep their names. What a file has otherwise (a group of its own, an empty field left out)
is said by the module of that file.
"""

import json
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from perfgate.core.errors import InputError

T = TypeVar("T")
_SCALARS = frozenset({str, int, float, bool, type(None)})  # most of what a record holds
_MISSING = re.compile("missing required field `(.*)`")


def to_plain(
    value: object, *, leave_out_none: bool = False, text: Callable[[str], str] = str
) -> Any:
    """`value` as mappings, lists, texts, numbers, truth values and None.

    Args:
        value: dataclasses, structs, mappings, sequences, enums, dates, paths, numbers, and errors,
            which become their message.
        leave_out_none: leave out fields that are None, as files do for what is not set.
        text: what every text, and every name that is one, becomes.

    Raises:
        TypeError: a part is of a type that has no plain form.
    """
    plain = msgspec.to_builtins(value, enc_hook=_encoded)

    def walked(part: Any) -> Any:
        kind = type(part)
        if kind is str:
            return text(part)
        if kind is dict:
            return {
                text(name) if type(name) is str else name: walked(held)
                for name, held in part.items()
                if not (leave_out_none and held is None)
            }
        return [walked(one) for one in part] if kind is list or kind is tuple else part

    return walked(plain)


def json_of(value: object) -> str:
    """`value` as JSON on one line, its plain form as `to_plain` gives it.

    Raises:
        TypeError: a part is of a type that has no plain form.
        ValueError: a number is not finite.
    """
    plain = msgspec.to_builtins(value, enc_hook=_encoded)
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def from_plain(kind: type[T], plain: object, *, lax: bool = False, what: str = "") -> T:
    """The value of type `kind` whose plain form `plain` is; fields that it lacks are passed over.

    A whole number becomes a float where the field is one: 60 and 60.0 give equal values.

    Args:
        kind: a dataclass, or any type made of dataclasses and plain types.
        plain: as `to_plain` gives it.
        lax: take 0 and 1 for truth values.
        what: what it is, for messages; empty: the name of the type.

    Raises:
        InputError: a field is missing, or of another type; with the field.
    """
    try:
        value = msgspec.convert(plain, kind, strict=not lax, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        name = what or getattr(kind, "__name__", str(kind))
        missing = _MISSING.search(problem)
        place = place.rstrip("`") + (f".{missing[1]}" if missing else "")
        field = place.lstrip(".") or None
        raise InputError(f"not the plain form of {name}: {problem}", field=field) from error
    set_defaults(value)
    return value


def _encoded(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path | Exception):
        return str(value)
    if isinstance(value, numbers.Integral):  # numpy's scalars among them
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def _decoded(kind: type, value: object) -> object:
    if issubclass(kind, Path) and isinstance(value, str | Path):
        return kind(value)
    raise TypeError(f"no {kind.__name__} of {type(value).__name__}")


@cache
def _form(kind: type) -> tuple[str, tuple[str, ...]]:
    """What holds values of a type, and the names of its fields."""
    if is_dataclass(kind):
        return "dataclass", tuple(field.name for field in fields(kind))
    if issubclass(kind, msgspec.Struct):
        return "struct", kind.__struct_fields__
    if issubclass(kind, Mapping):
        return "mapping", ()
    return ("sequence" if issubclass(kind, list | tuple) else ""), ()


def set_defaults(value: object) -> None:
    """Set the fields that msgspec leaves to the class, where neither `vars` nor it sees them."""
    kind: Any = type(value)
    form, names = _form(kind)
    held: Iterable[Any] = ()
    if form == "dataclass":
        own = vars(value)
        for name in names:
            if name not in own:
                object.__setattr__(value, name, getattr(value, name))
        held = own.values()
    elif form == "struct":  # its mappings hold plain values alone
        held = [one for name in names if type(one := getattr(value, name)) is not dict]
    elif form:
        held = value.values() if isinstance(value, Mapping) else cast(Sequence[Any], value)
    for content in held:
        if type(content) not in _SCALARS:
            set_defaults(content)
