"""Lay out a gate repository: the folder that holds a team's baselines, scenarios and site.

What is there already is left as it is; run again after an update of perfgate, it adds what is new
and names what differs.
"""

import argparse
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.baselines.file import SAMPLE
from perfgate.cli.output import add_format, print_json, print_table
from perfgate.core.durable_files import make_executable, write_text
from perfgate.core.errors import InputError
from perfgate.core.paths import INI_SCENARIOS, packaged, setting_of
from perfgate.scenarios.documented import FOLDER as DOCUMENTED

_TEMPLATE = Path(__file__).with_name("gate_repository")
_NAMED = {"gitignore": ".gitignore"}
# Taken as perfgate brings them along, but for what belongs to a checkout of perfgate alone.
_TAKEN = ("perf_tests", "baselines", "waivers.yaml", "conftest.py")
# Pipeline → what of perfgate goes where; `--ci` asks for it.
_PIPELINES = {
    "github": {
        "ci/github/workflows": ".github/workflows",
        "ci/github/actions": ".github/actions",
    },
    "gitlab": {"ci/gitlab": "ci/gitlab"},
    "slurm": {"ci/slurm/nightly.sbatch": "ci/nightly.sbatch"},
}
# What a job of the first two installs: file of the gate repository → files of perfgate.
_INSTALLED = {
    "ci/build.txt": ("build",),
    "ci/requirements.txt": ("base", "lm_eval"),
}
_EMPTY = ("scenarios/.gitkeep", "fixtures/lm_eval_tasks/.gitkeep")
_IGNORED = ("__pycache__",)
_LEFT_OUT = frozenset({*_IGNORED, DOCUMENTED, SAMPLE, "README.md"})


@dataclass(frozen=True)
class _File:
    """A file of a gate repository: its path in there, and what it holds."""

    path: str
    text: str


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    command.add_argument("folder", type=Path, help="the folder; made if it is not there")
    command.add_argument(
        "--ci",
        choices=list(_PIPELINES),
        action="append",
        default=[],
        help="also the files of a pipeline; may be given again",
    )
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not there.is_dir():
        raise InputError("not a folder", field="FOLDER", found=there, expected="a folder")
    try:
        states = [(one.path, _put(folder, one)) for one in _files(arguments.ci)]
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", file=Path(error.filename or folder)
        ) from error
    is_complete = bool(setting_of(folder, INI_SCENARIOS))
    if arguments.format == "json":
        print_json({"folder": str(folder), "files": dict(states), "complete": is_complete})
        return 0 if is_complete else 1
    print_table(("file", "state"), states)
    if not is_complete:
        print(f"\n{folder / 'pyproject.toml'} was there already. Add to it:\n")
        print((_TEMPLATE / "pyproject.toml").read_text(encoding="utf-8"))
        return 1
    print(f"\nnext: cd {folder} && perfgate doctor")
    return 0


def _files(pipelines: Sequence[str]) -> Iterator[_File]:
    for source in sorted(_TEMPLATE.rglob("*")):
        if source.is_file():
            path = source.relative_to(_TEMPLATE).as_posix()
            yield _file(_NAMED.get(path, path), source)
    for name in _TAKEN:
        root = packaged() / name
        for source in sorted(root.rglob("*")) if root.is_dir() else [root]:
            taken = source.relative_to(packaged())
            if source.is_file() and not _LEFT_OUT & set(taken.parts):
                yield _file(taken.as_posix(), source)
    yield from _of_pipelines(dict.fromkeys(pipelines))
    for empty in _EMPTY:
        yield _File(empty, "")


def _of_pipelines(pipelines: Collection[str]) -> Iterator[_File]:
    for pipeline in pipelines:
        for brought, path in _PIPELINES[pipeline].items():
            yield from _tree(packaged() / brought, path)
    if {"github", "gitlab"} & set(pipelines):
        for path, names in _INSTALLED.items():
            parts = (packaged() / "requirements" / f"{name}.txt" for name in names)
            yield _File(path, "".join(part.read_text(encoding="utf-8") for part in parts))


def _tree(root: Path, path: str) -> Iterator[_File]:
    """A file, or all that is in a folder, to be at `path`."""
    for source in sorted(root.rglob("*")) if root.is_dir() else [root]:
        if source.is_file() and not {*_IGNORED} & set(source.parts):
            yield _file((Path(path) / source.relative_to(root)).as_posix(), source)


def _file(path: str, source: Path) -> _File:
    return _File(path, source.read_text(encoding="utf-8"))


def _put(folder: Path, one: _File) -> str:
    """Write a file that is not there yet; the word for what was found."""
    path = folder / one.path
    if path.is_symlink() or path.exists():
        same = path.is_file() and path.read_bytes() == one.text.encode()
        return "as it was" if same else "differs: left as it is"
    write_text(path, one.text)
    if path.suffix == ".sh":  # a wheel need not keep that it is a program
        make_executable(path)
    return "written"
