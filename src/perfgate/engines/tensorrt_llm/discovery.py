"""Which TensorRT-LLM is installed: its version and commit, asked of the programs themselves."""

import os
import re

from packaging.version import InvalidVersion, Version

from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.program_query import git_answer
from perfgate.core.programs import TENSORRT_LLM_PYTHON, TRTLLM_BENCH, Program
from perfgate.engines.base import EngineBuild
from perfgate.engines.installed_programs import LIMIT_S, answer
from perfgate.engines.tensorrt_llm.checkout import VERSION_CODE

# The release containers set both (docker/Dockerfile.multi).
VERSION_VARIABLE = "TRT_LLM_VERSION"
COMMIT_VARIABLE = "TRT_LLM_GIT_COMMIT"

_VERSION = r"v?(\d+\.\d+(?:\.\d+)*(?:rc\d+|a\d+|b\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[\w.]+)?)"
# The banner that every import of the package prints; or the answer to --version.
_BANNER = re.compile(r"TensorRT[- ]LLM version:?\s*" + _VERSION + r"\b", re.IGNORECASE)
_ANSWER = re.compile(
    r"^\s*(?:trtllm-\w+\s*,?\s*|tensorrt[-_]llm\s*)?(?:version:?\s*)?" + _VERSION + r"\s*$",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def installed(locations: Locations) -> EngineBuild:
    """The TensorRT-LLM that `trtllm-bench` belongs to.

    The version is what `trtllm-bench --version` prints, else the package's metadata as its
    interpreter sees them, else ``TRT_LLM_VERSION``. The commit is ``TRT_LLM_GIT_COMMIT``, else that
    of the checkout which `PERFGATE_TENSORRT_LLM_SOURCE` names, else the version stands for it.
    In a container all is asked there; the checkout, which is here, then tells nothing of it, nor of
    a build that is not this environment's.

    Raises:
        MissingProgram: nothing tells a version.
        InputError: an environment variable names no program or folder.
        RunError: the container cannot be had.
    """
    version = (
        version_in(_printed(locations, TRTLLM_BENCH, "--version"))
        or version_in(_printed(locations, TENSORRT_LLM_PYTHON, "-c", VERSION_CODE))
        or version_in(_variable(locations, VERSION_VARIABLE))
    )
    if version is None:
        raise MissingProgram(
            f"TensorRT-LLM is not installed: neither {TRTLLM_BENCH.executable} nor the package "
            f"tensorrt_llm reports a version, and {VERSION_VARIABLE} is not set",
            hint="run inside its release container, name its programs in "
            f"{TRTLLM_BENCH.variable} and {TENSORRT_LLM_PYTHON.variable}, or give "
            "--engine-version",
        )
    return EngineBuild("tensorrt-llm", version, _commit(locations) or version)


def version_in(text: str) -> str | None:
    """The version that a program's output tells, however many log lines stand around it."""
    found = _BANNER.search(text)
    lines = (_ANSWER.match(line) for line in text.splitlines())
    for match in (found, *lines):
        if match is None:
            continue
        try:
            return str(Version(match[1]))
        except InvalidVersion:
            continue
    return None


def _printed(locations: Locations, program: Program, *arguments: str) -> str:
    """What the program prints; nothing where it is not installed or fails."""
    try:
        prefix = locations.find(program)
    except MissingProgram:
        return ""
    return answer((*prefix, *arguments), locations)


def _variable(locations: Locations, name: str) -> str:
    """An environment variable where the engine is; empty where it is not set.

    The environment here is that of the build under test, and tells nothing of another one.
    """
    if locations.inside is None:
        return "" if locations.build is not None else os.environ.get(name, "")
    found = locations.ask(("printenv", name), LIMIT_S, of_engine=True)
    return found.stdout if found.is_good else ""


def _commit(locations: Locations) -> str | None:
    told = _variable(locations, COMMIT_VARIABLE).strip().lower()
    if _COMMIT.fullmatch(told):
        return told
    if locations.source is None or locations.inside or locations.build:
        return None
    head = git_answer(locations.source, "rev-parse", "HEAD", seconds=LIMIT_S).stdout.strip()
    return head if _COMMIT.fullmatch(head) else None
