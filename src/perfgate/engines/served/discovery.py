"""Which release of a served engine is installed: version and commit, told without importing it.

Importing the package takes ten seconds and torch; its metadata and one text file say the same.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from perfgate.core.errors import MissingProgram
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.program_query import QUIET
from perfgate.core.programs.programs import Program
from perfgate.engines.base import EngineBuild
from perfgate.engines.installed_programs import answer, last_line, marked_answer
from perfgate.engines.served.description import Description

_MARK = "perfgate-engine-build"
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_VERSION = re.compile(r"^v?(\d+\.\d+\S*)$")
_LOCAL = re.compile(r"(?:^|\.)g([0-9a-f]{7,40})(?:\.|$)")


def installed(
    name: str, engine: Description, server: Program, python: Program, locations: Locations
) -> EngineBuild:
    """The build that the server belongs to.

    Its Python tells the version from the package's metadata; where that cannot be asked, the server
    prints it. The commit is what the package says, else that of the checkout that it is run from,
    else what a version of a nightly build ends in (``+g1a2b3c4``), else the version stands for it:
    wheels from PyPI name none.

    Args:
        name: of the engine.
        engine: its description.
        server: its server; a Python that is not named is found by it.
        python: the Python that has its package.
        locations: where they are.

    Raises:
        MissingProgram: nothing tells a version.
        InputError: an environment variable names no program.
        RunError: the container cannot be had.
    """
    said, told = _asked(engine, python, locations)
    version = _version(told.get("version")) or _printed(engine, server, locations)
    if version is None:
        why = f" ({last_line(said)[:120]})" if said and not told else ""
        raise MissingProgram(
            f"{engine.title} is not installed: its Python has no package {engine.package}{why}",
            hint=f"name it in {server.variable}, and its Python in {python.variable}, run inside "
            "its release container, or give --engine-version",
        )
    return EngineBuild(name, version, _commit(told, version) or version)


@cache
def question() -> str:
    """The program that the engine's Python is given."""
    return Path(__file__).with_name("build_answer.py").read_text(encoding="utf-8")


def _asked(
    engine: Description, python: Program, locations: Locations
) -> tuple[str, dict[str, Any]]:
    """What the engine's Python prints, and what of it is the answer."""
    words = ("-c", question(), engine.package, ",".join(engine.distributions), *QUIET)
    said = ""
    for prefix in _pythons(python, locations):
        said = answer((*prefix, *words), locations)
        if told := _told(said):
            return said, told
    return said, {}


def _told(said: str) -> dict[str, Any]:
    """The answer in what was printed; empty: there is none that can be read."""
    try:
        return marked_answer(said, _MARK)
    except ValueError:
        return {}


def _pythons(python: Program, locations: Locations) -> list[tuple[str, ...]]:
    """Where the engine's Python may be; images have no other name for it than this."""
    others: list[tuple[str, ...]] = [] if locations.inside is None else [("python3",)]
    try:
        return [locations.find(python), *others]
    except MissingProgram:
        return others


def _printed(engine: Description, program: Program, locations: Locations) -> str | None:
    if not engine.version_option:
        return None
    try:
        server = locations.find(program)
    except MissingProgram:
        return None
    lines = answer((*server, engine.version_option), locations).splitlines()
    versions = (_version(line.strip()) for line in reversed(lines))
    return next((version for version in versions if version), None)


def _version(told: object) -> str | None:
    """The version that a text is; None: it is none, as a lone number among log lines."""
    found = _VERSION.match(str(told))
    try:
        return str(Version(found[1])) if found else None
    except InvalidVersion:
        return None


def _commit(told: dict[str, Any], version: str) -> str | None:
    said = str(told.get("commit") or "")
    if _COMMIT.fullmatch(said):
        return said
    local = _LOCAL.search(Version(version).local or "")
    return local[1] if local else None
