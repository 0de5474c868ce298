"""Which release knows what: one table per range of TensorRT-LLM releases, chosen by version.

A range is one YAML file, named after its first release. The oldest is a whole table; each later one
is what changed against the range before it, as a merge patch (RFC 7396): mappings are merged,
anything else is replaced, null takes away.
"""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
import yaml
from packaging.version import InvalidVersion, Version

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm.releases.table import Release

__all__ = [
    "Release",
    "all_releases",
    "parse",
    "read_tables",
    "release",
    "same_release",
    "uncovered",
]

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is many times faster


def read_tables(folder: Path) -> tuple[Release, ...]:
    """The tables of all ranges, oldest first.

    Raises:
        msgspec.ValidationError, KeyError: a file says what no table has, or takes away what the
            range before it lacks.
    """
    tables: list[Release] = []
    fields: dict[str, Any] = {}
    for path in sorted(folder.glob("*.yaml"), key=lambda path: Version(path.stem)):
        # The loader is a safe one: it makes plain values only.
        changes = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506
        fields = _patched(fields, changes)
        programs = {
            program: {name: {"name": name, **option} for name, option in options.items()}
            for program, options in fields["programs"].items()
        }
        table = {**fields, "since": path.stem, "programs": programs}
        tables.append(msgspec.convert(table, Release))
    return tuple(tables)


def _patched(before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`before` with a merge patch applied; taking away what is not there is a mistake."""
    after = dict(before)
    for key, change in changes.items():
        if change is None:
            del after[key]
        elif isinstance(change, dict):
            was = after.get(key)
            after[key] = _patched(was if isinstance(was, dict) else {}, change)
        else:
            after[key] = change
    return after


@cache
def all_releases() -> tuple[Release, ...]:
    """All ranges, oldest first; the last one also stands for every later release.

    Read when they are first needed: a session without TensorRT-LLM is spared a fifth of a second.
    """
    return read_tables(Path(__file__).parent)


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
            hint="give the release that the build was branched from as --engine-version, and its "
            "commit as --engine-commit",
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
    for table in reversed(all_releases()):
        if asked >= Version(table.since):
            return msgspec.structs.replace(table, version=version)
    raise InputError(
        "this release of TensorRT-LLM is too old",
        field="engine version",
        found=version,
        expected=f"{all_releases()[0].since} or later",
        hint="use a newer container; the documents of the scenarios begin with 0.19",
    )


def uncovered(version: str) -> str | None:
    """Why no table is known to hold for a release, and which is used; None: one is.

    The newest table holds for the rest of its minor release: a later one may have moved options.

    Raises:
        InputError: as `release`.
    """
    used, newest = release(version), all_releases()[-1]
    last = Version(newest.since).release[:2]
    if used.since != newest.since or _base(version).release[:2] <= last:
        return None
    return (
        f"no table of releases covers TensorRT-LLM {version}: the newest one is used, of "
        f"{newest.since} to {'.'.join(map(str, last))}; every option is asked of the installed "
        "program before GPU time is spent"
    )


def _base(version: str) -> Version:
    """The version without the build that follows a ``+``."""
    return Version(parse(version).public)
