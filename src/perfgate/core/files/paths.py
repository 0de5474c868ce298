"""Where the suite's folders are: what perfgate brings along, and the gate repository.

A gate repository is a person's own: baselines, scenarios, waivers, the facts of a site. `perfgate
init` lays one out; docs/reference/settings.md has the table of what names its folders. What is
found there rather than named is believed only where nobody else could have written it.
"""

import os
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.files.remembered import remembered
from perfgate.core.files.untrusted_files import doubt, keeps_its_entries, read_input

ROOT = "PERFGATE_ROOT"
HOME = "PERFGATE_HOME"
SCENARIOS = "PERFGATE_SCENARIOS"
BASELINES = "PERFGATE_BASELINES"

INI_SCENARIOS = "perfgate_scenarios"
INI_BASELINES = "perfgate_baselines"

_SETTINGS = "pyproject.toml"
_LARGEST = 2**20  # bytes of it
_MOST_DOTS = 200  # in a line of it

PACKAGED = "packaged"  # among scenario folders: those that perfgate brings along


def packaged() -> Path:
    """The folder of what perfgate brings along: `scenarios/`, `baselines/`, `perf_tests/`, ….

    That of an installed package, else the checkout that perfgate was installed from.
    """
    return _brought_along(__file__)


@cache  # it is asked for with every file
def _brought_along(module: str) -> Path:
    above = Path(module).resolve().parents
    return above[2] / "packaged" if (above[2] / "packaged").is_dir() else above[4]


def repository() -> Path:
    """The gate repository: the folder that holds a person's `baselines/`, `waivers.yaml`, ….

    `PERFGATE_ROOT` if set, else the nearest folder from the working directory upwards whose
    `pyproject.toml` has settings of perfgate, else the checkout that perfgate was installed from,
    else the working directory.

    Raises:
        InputError: `PERFGATE_ROOT` is no folder; a `pyproject.toml` on the way is not TOML, or has
            settings of perfgate and could be another user's.
    """
    named = _named()
    if named is not None:
        return named
    here = Path.cwd()
    brought = packaged()
    for folder in (here, *here.parents):
        # What runs already needs no other proof.
        why = None if folder == brought else doubt(folder) or doubt(folder / _SETTINGS)
        if why is None and _settings(folder):
            return folder
        if why is not None and "perfgate_" in _text(folder / _SETTINGS):
            raise _not_ours(folder, folder, why)
    return brought if (brought / _SETTINGS).is_file() else here


def found_in_repository(name: str) -> Path:
    """A file or folder of the gate repository, which need not be there.

    Raises:
        InputError: the repository was found, not named, and this could be another user's.
    """
    return require_own(repository() / name)


def require_own(path: Path) -> Path:
    """`path` again, unless it is in a gate repository that was found, not named, and could be
    another user's: scenarios and tasks run programs as the user, baselines and waivers decide.

    Args:
        path: a file or folder, which need not be there. What is in a folder is not looked at.

    Raises:
        InputError: it could; with why, and what to do about it.
    """
    accepted = os.environ.get(BASELINES)
    if os.environ.get(ROOT) or (accepted and path.is_relative_to(Path(accepted).absolute())):
        return path
    root = repository()
    if root == packaged() or not path.is_relative_to(root):
        return path
    above = [one for one in reversed(path.parents) if one != root and one.is_relative_to(root)]
    _require(root, (*above, path))
    return path


def require_own_settings(file: Path, *beside: str) -> None:
    """Refuse settings that pytest found, and what is beside them, where they could be another
    user's.

    Args:
        file: the settings.
        beside: names in the same folder, which need not be there.

    Raises:
        InputError: they could, and `PERFGATE_ROOT` does not name their folder.
    """
    root = file.parent
    if root not in (_named(), packaged()):
        _require(root, (root, file, *(root / name for name in beside)))


def _require(root: Path, paths: Iterable[Path]) -> None:
    for path in paths:
        why = doubt(path)
        if why is not None:
            raise _not_ours(root, path, why)


def _named() -> Path | None:
    """The gate repository that `PERFGATE_ROOT` names."""
    root = named_folder(ROOT, expected="a gate repository, as perfgate init lays one out")
    return root and root.resolve()


def named_folder(
    variable: str, *, expected: str = "a folder", hint: str | None = None
) -> Path | None:
    """The folder that an environment variable names, as an absolute path; None: it names none.

    Args:
        variable: its name.
        expected: what should be there, for the message.
        hint: the next step where it is not.

    Raises:
        InputError: no such folder.
    """
    setting = os.environ.get(variable)
    if not setting:
        return None
    folder = Path(setting).absolute()
    if not folder.is_dir():
        raise InputError(
            "no such folder", field=variable, found=setting, expected=expected, hint=hint
        )
    return folder


def _not_ours(root: Path, path: Path, why: str) -> InputError:
    return InputError(
        "could be another user's, and was found, not named",
        file=path,
        found=why,
        expected="what belongs to you or root, and nobody else may write to: it can run programs "
        "as you",
        hint=f"if you trust all that is in it, name it: export {ROOT}={root}; "
        "else work in a folder of your own",
    )


def scenario_folders(named: Iterable[str] | None = None) -> tuple[Path, ...]:
    """The files and folders of the scenarios, as they are named.

    Args:
        named: names to use instead of the settings', relative to the working directory. The word
            ``packaged`` stands for the folder that perfgate brings along.

    Without `named` they are those of `PERFGATE_SCENARIOS` (separated as in PATH), else of
    `perfgate_scenarios` in the gate repository's `pyproject.toml`, else its `scenarios/`, else the
    packaged ones. A gate repository has none of its own at first: a folder of the settings that
    holds no file counts for nothing beside another.
    """
    if named is not None:
        return _folders(named, Path.cwd())
    setting = os.environ.get(SCENARIOS)
    root = Path.cwd() if setting else repository()
    names = setting.split(os.pathsep) if setting else setting_of(root, INI_SCENARIOS)
    found = _folders(names or ["scenarios" if (root / "scenarios").is_dir() else PACKAGED], root)
    if not setting:
        for one in found:
            require_own(one)
    return tuple(one for one in found if not _is_empty(one)) or found


def baselines_folder() -> Path:
    """The folder of the baselines that people accepted.

    `PERFGATE_BASELINES` if set, else `perfgate_baselines` of the gate repository's
    `pyproject.toml`, else its `baselines/`.

    Raises:
        InputError: it was found, not named, and could be another user's.
    """
    setting = os.environ.get(BASELINES)
    if setting:
        return Path(setting).absolute()
    root = repository()
    return require_own(root / (setting_of(root, INI_BASELINES) or ["baselines"])[0])


def machine_store() -> Path:
    """The git-ignored folder of what belongs to this machine alone: baselines, caches, locks.

    Raises:
        InputError: it was found, not named, and could be another user's, now or once made.
    """
    setting = os.environ.get(HOME)
    if setting:
        return Path(setting).resolve()
    store = found_in_repository(".perfgate")
    root = store.parent
    if not (os.environ.get(ROOT) or root == packaged() or keeps_its_entries(root)):
        _require(root, [root])
    return store


def _folders(names: Iterable[str], start: Path) -> tuple[Path, ...]:
    brought = packaged() / "scenarios"
    return tuple(brought if name == PACKAGED else start / name for name in names if name)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(one.suffix in (".yaml", ".yml") for one in folder.rglob("*"))


def setting_of(folder: Path, name: str) -> list[str]:
    """The words of a setting of perfgate in the folder's ``pyproject.toml``; empty: not set.

    A list as it is, a text as a shell splits it, as pytest reads them.

    Raises:
        InputError: the file is not TOML.
    """
    found = _settings(folder).get(name, [])
    return shlex.split(found) if isinstance(found, str) else [str(word) for word in found]


def _settings(folder: Path) -> Mapping[str, Any]:
    """The settings of perfgate in the folder's ``pyproject.toml``; empty: it has none."""
    return _read(folder / _SETTINGS)


@remembered(64)
def _read(file: Path) -> Mapping[str, Any]:
    text = _text(file)
    if "perfgate_" not in text:
        return {}
    try:
        # A key of many parts costs their square in time and memory.
        if max(line.count(".") for line in text.split("\n")) > _MOST_DOTS:
            raise tomllib.TOMLDecodeError(f"more than {_MOST_DOTS} dots in one line")
        tool = tomllib.loads(text).get("tool", {})
    except (RecursionError, ValueError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else error
        expected = "settings of pytest and perfgate"
        raise InputError(f"not TOML: {why}", file=file, expected=expected) from None
    pytest_settings = tool.get("pytest", {})
    found = {**pytest_settings.get("ini_options", {}), **pytest_settings}
    return {name: value for name, value in found.items() if name.startswith("perfgate_")}


def _text(file: Path) -> str:
    """The text of a settings file; empty: it is none that could be ours.

    Anybody may have made what an upward search meets: a pipe that nobody writes to, a device.
    """
    try:
        return read_input(file, _LARGEST).decode()
    except (OSError, UnicodeDecodeError, InputError):
        return ""  # another project's: ours could be read
