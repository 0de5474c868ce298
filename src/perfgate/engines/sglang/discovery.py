"""Which SGLang is installed: version and commit, asked of its interpreter without an import.

`python -m sglang.version` prints nothing, and importing the package imports torch.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from perfgate.core.errors import MissingProgram
from perfgate.core.git_query import QUIET
from perfgate.core.locations import Locations
from perfgate.core.programs import SGLANG_PYTHON, SGLANG_SERVE
from perfgate.engines.base import EngineBuild
from perfgate.engines.installed_pages import last_line
from perfgate.engines.program_output import answer

_ANSWER = re.compile(r"<perfgate-sglang-build>(?P<json>.*?)</perfgate-sglang-build>", re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_LOCAL = re.compile(r"(?:^|\.)g([0-9a-f]{7,40})(?:\.|$)")


def installed(locations: Locations) -> EngineBuild:
    """The SGLang that the server's interpreter has.

    The version is the package's metadata. The commit is what the package says, else that of the
    checkout that it is run from, else what a version of a nightly build ends in (``+g1a2b3c4``),
    else the version stands for it: wheels from PyPI name none.

    Raises:
        MissingProgram: there is no interpreter, or none with the package.
        InputError: an environment variable names no program.
        RunError: the container cannot be had.
    """
    python = locations.find(SGLANG_PYTHON)
    said = answer((*python, "-c", question(), *QUIET), locations)
    told = _told(said)
    version = _version(told.get("version"))
    if version is None:
        raise MissingProgram(
            f"SGLang is not installed: {' '.join(python)} has no package sglang "
            f"({last_line(said)[:120]})"
            if not told
            else f"SGLang is not installed: {' '.join(python)} has no package sglang",
            hint=f"name the Python that has it in {SGLANG_SERVE.variable}, followed by "
            f"{' '.join(SGLANG_SERVE.arguments)}; or run inside its release container",
        )
    return EngineBuild("sglang", version, _commit(told, version) or version)


@cache
def question() -> str:
    """The program that the engine's Python is given."""
    return Path(__file__).with_name("build_answer.py").read_text(encoding="utf-8")


def _told(said: str) -> dict[str, Any]:
    found = _ANSWER.search(said)
    if found is None:
        return {}
    try:
        told = json.loads(found["json"])
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _version(told: object) -> str | None:
    try:
        return str(Version(str(told)))
    except InvalidVersion:
        return None


def _commit(told: dict[str, Any], version: str) -> str | None:
    said = str(told.get("commit") or "")
    if _COMMIT.fullmatch(said):
        return said
    local = _LOCAL.search(Version(version).local or "")
    return local[1] if local else None
