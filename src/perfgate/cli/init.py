"""Lay out a gate repository: the folder that holds a team's baselines, scenarios and site.

What is there already is left as it is; run again after an update of perfgate, it adds what is new
and names what differs.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfgate.baselines.file import SAMPLE
from perfgate.cli.output import add_format, answer, table
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import make_executable, write_text
from perfgate.core.files.paths import INI_SCENARIOS, packaged, setting_of
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
_IGNORED = frozenset({"__pycache__"})
_LEFT_OUT = frozenset({*_IGNORED, DOCUMENTED, SAMPLE, "README.md"})


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    command.add_argument("folder", type=Path, help="the folder; created if missing")
    command.add_argument(
        "--ci",
        choices=list(_PIPELINES),
        action="append",
        default=[],
        help="add the files of a pipeline; repeatable",
    )
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise InputError("not a folder", field="FOLDER", found=existing, expected="a folder")
    try:
        states = [(name, _put(folder / name, text)) for name, text in _files(arguments.ci)]
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", file=Path(error.filename or folder)
        ) from error
    is_complete = bool(setting_of(folder, INI_SCENARIOS))
    plain = {"folder": str(folder), "files": dict(states), "complete": is_complete}
    advice = f"\nnext: cd {folder} && perfgate doctor"
    if not is_complete:
        settings = (_TEMPLATE / "pyproject.toml").read_text(encoding="utf-8")
        advice = f"\n{folder / 'pyproject.toml'} was there already. Add to it:\n\n{settings}"
    shown = table(("file", "state"), states)
    return answer(arguments, plain, shown, advice, status=0 if is_complete else 1)


def _files(pipelines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The path of each file in the gate repository, and what it holds."""
    yield from _tree(_TEMPLATE, "")
    for name in _TAKEN:
        yield from _tree(packaged() / name, name, _LEFT_OUT)
    for pipeline in dict.fromkeys(pipelines):
        for brought, path in _PIPELINES[pipeline].items():
            yield from _tree(packaged() / brought, path)
    if {"github", "gitlab"} & set(pipelines):
        for path, names in _INSTALLED.items():
            parts = (packaged() / "requirements" / f"{name}.txt" for name in names)
            yield path, "".join(part.read_text(encoding="utf-8") for part in parts)
    for empty in _EMPTY:
        yield empty, ""


def _tree(root: Path, path: str, left_out: frozenset[str] = _IGNORED) -> Iterator[tuple[str, str]]:
    """A file, or all that is in a folder, to be at `path`."""
    for source in sorted(root.rglob("*")) if root.is_dir() else [root]:
        relative = source.relative_to(root)
        if source.is_file() and not left_out & set(relative.parts):
            name = (Path(path) / relative).as_posix()
            yield _NAMED.get(name, name), source.read_text(encoding="utf-8")


def _put(path: Path, text: str) -> str:
    """Write a file that is not there yet; the word for what was there."""
    if path.is_symlink() or path.exists():
        same = path.is_file() and path.read_bytes() == text.encode()
        return "as it was" if same else "differs: left as it is"
    write_text(path, text)
    if path.suffix == ".sh":  # a wheel need not keep that it is a program
        make_executable(path)
    return "written"
