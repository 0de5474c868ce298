"""Which release knows what: one table per range of TensorRT-LLM releases, chosen by version.

A range is one YAML file, named after its first release. The oldest is a whole table; each later one
is what changed against the range before it, as a merge patch (RFC 7396): mappings are merged,
anything else is replaced, null takes away. Further files can stand in a folder of one's own.
"""

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import yaml
from packaging.version import InvalidVersion, Version

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm.releases.table import Release

__all__ = [
    "TABLES",
    "Release",
    "all_releases",
    "parse",
    "read_tables",
    "release",
    "same_release",
    "uncovered",
]

TABLES = "PERFGATE_TENSORRT_LLM_TABLES"
_OURS = Path(__file__).parent
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is many times faster


def read_tables(*folders: Path) -> tuple[Release, ...]:
    """The tables of all ranges in `folders`, oldest first.

    Raises:
        InputError: a file is not named after a release, two are after the same, or one says what
            no table has, or takes away what the range before it lacks.
    """
    tables: list[Release] = []
    fields: dict[str, Any] = {}
    for path in _files(folders):
        try:
            # The loader is a safe one: it makes plain values only.
            changes = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506
            fields = _patched(fields, _spelled_out(changes))
            table = {**fields, "since": path.stem, "file": str(path)}
            tables.append(msgspec.convert(table, Release))
        except KeyError as error:
            raise _wrong(path, f"null for {error}, which the range before it lacks") from None
        except (yaml.YAMLError, msgspec.ValidationError, TypeError, OSError) as error:
            raise _wrong(path, str(error)) from error
    return tuple(tables)


def _files(folders: Iterable[Path]) -> list[Path]:
    """The tables' files, in the order of their releases."""
    found: dict[Version, Path] = {}
    for path in (path for folder in folders for path in folder.glob("*.yaml")):
        since = parse(path.stem)
        if since in found:
            raise _wrong(path, f"the release of {found[since]}")
        found[since] = path
    return [found[since] for since in sorted(found)]


def _wrong(path: Path, found: str) -> InputError:
    return InputError(
        "not a table of TensorRT-LLM releases",
        file=path,
        found=found,
        expected="what changed against the range before, under the names of "
        "perfgate.engines.tensorrt_llm.releases.table",
        hint='see "Add a release" in docs/reference/dialects.md',
    )


_Programs = dict[str, dict[str, str | dict[str, Any] | None] | None]


def _spelled_out(content: object) -> dict[str, Any]:
    """Options that are only a name, as mappings, so that they can be merged."""
    changes = msgspec.convert(content or {}, dict[str, Any])
    programs = msgspec.convert(changes.get("programs") or {}, _Programs)
    return {
        **changes,
        "programs": {
            program: options
            and {
                setting: {"name": option} if isinstance(option, str) else option
                for setting, option in options.items()
            }
            for program, options in programs.items()
        },
    }


def _patched(before: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
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


def all_releases() -> tuple[Release, ...]:
    """All ranges, oldest first; the last one also stands for every later release.

    Raises:
        InputError: the folder that `TABLES` names is none, or has a file that is no table.
    """
    return _tables(os.environ.get(TABLES) or None)


@lru_cache(maxsize=8)
def _tables(more: str | None) -> tuple[Release, ...]:
    if more is None:
        return read_tables(_OURS)
    folder = Path(more)
    if not folder.is_dir():
        raise InputError(
            "no such folder",
            field=TABLES,
            found=more,
            expected="a folder with tables of further releases",
            hint="set it to where they are, or unset it",
        )
    return read_tables(_OURS, folder)


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


def release(version: str) -> Release:
    """The table of the range that `version` falls into.

    Raises:
        InputError: it is no version, or older than the oldest table.
    """
    return _release(version, os.environ.get(TABLES) or None)


@lru_cache(maxsize=64)
def _release(version: str, more: str | None) -> Release:
    asked, tables = _base(version), _tables(more)
    for table in reversed(tables):
        if asked >= Version(table.since):
            return msgspec.structs.replace(table, version=version)
    raise InputError(
        "this release of TensorRT-LLM is too old",
        field="engine version",
        found=version,
        expected=f"{tables[0].since} or later",
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
