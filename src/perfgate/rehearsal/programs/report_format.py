"""Formats of reports: a TOML file beside each module, with the releases that write each section."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, toml

from perfgate.rehearsal.options import GivenOptions


class _Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A section of a report; the file tells what each field means."""

    text: str
    since: tuple[int, ...] = (0,)
    before: tuple[int, ...] = (1_000_000,)
    needs: str = ""


class _Format(Struct, frozen=True, forbid_unknown_fields=True):
    """What a program prints and saves, the options that it reports, and other facts."""

    facts: Mapping[str, Any] = {}
    printed: tuple[_Section, ...] = ()
    result: tuple[_Section, ...] = ()
    options: Mapping[str, tuple[Any, ...]] = {}


def facts(module: str, program: str) -> Mapping[str, Any]:
    """What else the file tells of a program; for the arguments see `printed`."""
    return _formats(Path(module))[program].facts


def printed(module: str, program: str, release: tuple[int, ...], values: Mapping[str, Any]) -> str:
    """What a release prints; its sections are filled in with the values.

    Args:
        module: file of the module whose formats these are: they are beside it, in TOML.
        program: whose report it is.
        release: numbers of the release.
        values: what is reported; a section may need one of them.
    """
    sections = _formats(Path(module))[program].printed
    return "".join(_of_release(sections, release, values)).format_map(values)


def result(
    module: str, program: str, release: tuple[int, ...], values: Mapping[str, Any]
) -> dict[str, Any]:
    """What a release saves as JSON; for the arguments see `printed`.

    A section is a list of KEY, KEY=VALUE or KEY=JSON; ``ABOVE/KEY`` is in an object.
    """
    found: dict[str, Any] = {}
    sections = _formats(Path(module))[program].result
    for word in " ".join(_of_release(sections, release, values)).split():
        key, _, name = word.partition("=")
        above, _, last = key.rpartition("/")
        place = found.setdefault(above, {}) if above else found
        name = name or last
        place[last] = values[name] if name in values else json.loads(name)
    return found


def option_values(module: str, program: str, given: GivenOptions) -> dict[str, Any]:
    """What a report tells of the command line: [OPTION, DEFAULT], or [OPTION] of what can be None.

    The default ``false`` is that of a flag.
    """
    found: dict[str, Any] = {}
    for name, (option, *default) in _formats(Path(module))[program].options.items():
        if default and default[0] is not False:
            found[name] = given.get(option, default[0])
        else:
            found[name] = given.has(option) if default else given.get(option, "") or None
    return found


@cache
def _formats(module: Path) -> dict[str, _Format]:
    return toml.decode(module.with_suffix(".toml").read_bytes(), type=dict[str, _Format])


def _of_release(
    sections: tuple[_Section, ...], release: tuple[int, ...], values: Mapping[str, Any]
) -> Iterator[str]:
    for section in sections:
        is_needed = not section.needs or values.get(section.needs)
        if is_needed and section.since <= release < section.before:
            yield section.text
