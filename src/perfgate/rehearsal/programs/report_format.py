"""Formats of reports: sections of text in a TOML file, each with the releases that write it."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, toml


class _Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A section of a report; the file tells what each field means."""

    text: str
    since: tuple[int, ...] = (0,)
    before: tuple[int, ...] = (1_000_000,)
    needs: str = ""


def printed(module: str, program: str, release: tuple[int, ...], values: Mapping[str, Any]) -> str:
    """What a release prints; its sections are filled in with the values.

    Args:
        module: file of the module whose formats these are: they are beside it, in TOML.
        program: whose report it is.
        release: numbers of the release.
        values: what is reported; a section may need one of them.
    """
    return "".join(_sections(module, program, "printed", release, values)).format(**values)


def result(
    module: str, program: str, release: tuple[int, ...], values: Mapping[str, Any]
) -> dict[str, Any]:
    """What a release saves as JSON; for the arguments see `printed`.

    A section is a list of KEY, KEY=VALUE or KEY=JSON; ``ABOVE/KEY`` is in an object.
    """
    found: dict[str, Any] = {}
    for word in " ".join(_sections(module, program, "result", release, values)).split():
        key, _, name = word.partition("=")
        above, _, last = key.rpartition("/")
        place = found.setdefault(above, {}) if above else found
        name = name or last
        place[last] = values[name] if name in values else json.loads(name)
    return found


@cache
def _formats(path: Path) -> dict[str, dict[str, tuple[_Section, ...]]]:
    return toml.decode(path.read_bytes(), type=dict[str, dict[str, tuple[_Section, ...]]])


def _sections(
    module: str, program: str, kind: str, release: tuple[int, ...], values: Mapping[str, Any]
) -> Iterator[str]:
    for section in _formats(Path(module).with_suffix(".toml"))[program][kind]:
        is_needed = not section.needs or values.get(section.needs)
        if is_needed and section.since <= release < section.before:
            yield section.text
