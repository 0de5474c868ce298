"""Which release knows what: one table per range of TensorRT-LLM releases, chosen by version.

A new range is one file with what changed against the one before it, and one line here.
"""

from dataclasses import replace
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm.releases.table import Option, Options, Release
from perfgate.engines.tensorrt_llm.releases.v0_19 import V0_19
from perfgate.engines.tensorrt_llm.releases.v0_20 import V0_20
from perfgate.engines.tensorrt_llm.releases.v0_21 import V0_21
from perfgate.engines.tensorrt_llm.releases.v1_0 import V1_0
from perfgate.engines.tensorrt_llm.releases.v1_0_rc2 import V1_0_RC2
from perfgate.engines.tensorrt_llm.releases.v1_1 import V1_1
from perfgate.engines.tensorrt_llm.releases.v1_2 import V1_2
from perfgate.engines.tensorrt_llm.releases.v1_3 import V1_3, V1_3_RC11, V1_3_RC24

RELEASES: tuple[Release, ...] = (
    V0_19,
    V0_20,
    V0_21,
    V1_0_RC2,
    V1_0,
    V1_1,
    V1_2,
    V1_3,
    V1_3_RC11,
    V1_3_RC24,
)
"""All ranges, oldest first; the last one also stands for every later release."""

__all__ = ["RELEASES", "Option", "Options", "Release", "parse", "release", "same_release"]


def parse(version: str) -> Version:
    """The version as Python packages order them.

    Raises:
        InputError: it is no version.
    """
    try:
        return Version(version)
    except InvalidVersion:
        raise InputError(
            "not a version of TensorRT-LLM",
            field="engine version",
            found=repr(version),
            expected="a release or a candidate, e.g. 1.0.0 or 1.3.0rc7",
            hint="give it as --engine-version",
        ) from None


def same_release(one: str, other: str) -> bool:
    """Whether two versions name one release; what follows a ``+`` names a build of it.

    Raises:
        InputError: one of them is no version.
    """
    return _base(one) == _base(other)


@lru_cache(maxsize=64)
def release(version: str) -> Release:
    """The table of the range that `version` falls into.

    Raises:
        InputError: it is no version, or older than the oldest table.
    """
    asked = _base(version)
    for table in reversed(RELEASES):
        if asked >= Version(table.since):
            return replace(table, version=version)
    raise InputError(
        "this release of TensorRT-LLM is too old",
        field="engine version",
        found=version,
        expected=f"{RELEASES[0].since} or later",
        hint="use a newer container; the documents of the scenarios begin with 0.19",
    )


def _base(version: str) -> Version:
    """The version without the build that follows a ``+``."""
    return Version(parse(version).public)
