"""Which line of which release table makes perfgate write an option or a YAML key."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml
from packaging.version import Version

from perfgate.engines.definitions import YAML
from perfgate.engines.option_check import Mismatch


class Place(NamedTuple):
    """Where a table says something.

    Attributes:
        keys: the keys that lead there.
        word: what stands there.
        line: counted from 1.
    """

    keys: tuple[str, ...]
    word: str
    line: int


def told_by(version: str, mismatch: Mismatch, folder: Path) -> str:
    """``releases/1.0.0rc4.yaml:24``: the newest line up to `version` that names it; else empty.

    Args:
        version: the release that was rendered for.
        mismatch: what does not fit.
        folder: of the tables.
    """
    for path in _tables(version, folder):
        places = _places(path)
        found = _of_key(places, mismatch) if mismatch.program == YAML else None
        found = found or _of_option(places, mismatch)
        if found is not None:
            return f"{folder.name}/{path.name}:{found.line}"
    return _in_code(mismatch, folder)


def _in_code(mismatch: Mismatch, folder: Path) -> str:
    """What no file says is the same for all releases: a default of the tables' own type."""
    path = folder.with_name("table.py")
    word = f'"{mismatch.place.rpartition(".")[2]}"'
    if path.is_file():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if word in line:
                return f"{path.parent.name}/{path.name}:{number}"
    return ""


def _tables(version: str, folder: Path) -> Iterator[Path]:
    """The tables that hold for a release, the newest first."""
    asked = Version(Version(version).public)
    known = sorted(folder.glob("*.yaml"), key=lambda path: Version(path.stem), reverse=True)
    yield from (path for path in known if Version(path.stem) <= asked)


def _of_option(places: tuple[Place, ...], mismatch: Mismatch) -> Place | None:
    """The program's option, else the word anywhere."""
    program = mismatch.program.removesuffix(" serve")
    named = [place for place in places if place.word == mismatch.place]
    own = [place for place in named if {program, mismatch.program} & set(place.keys)]
    return next(iter(own or named), None)


def _of_key(places: tuple[Place, ...], mismatch: Mismatch) -> Place | None:
    """The setting that is spelled with the key, and with one of those above it."""
    *above, last = mismatch.place.split(".")
    for place in places:
        if place.word == last and place.keys[:1] == ("spelling",):
            setting = {one.word for one in places if one.keys[:2] == place.keys[:2]}
            if not above or setting & set(above):
                return place
    return None


@cache
def _places(path: Path) -> tuple[Place, ...]:
    root = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
    return tuple(_below(root, ())) if root is not None else ()


def _below(node: yaml.Node, keys: tuple[str, ...]) -> Iterator[Place]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield Place(keys, key.value, key.start_mark.line + 1)
            yield from _below(value, (*keys, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _below(one, keys)
    elif isinstance(node, yaml.ScalarNode):
        yield Place(keys, node.value, node.start_mark.line + 1)
