"""Run files: what of a run's folder goes into an evidence pack, and what does not.

Nothing in the folder is trusted: programs wrote there. No link is followed; one is an error, since
what it names may be gone when the pack is read.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from perfgate.core.errors import InputError
from perfgate.core.untrusted_files import kind_of
from perfgate.release.pack_layout import RUNS, Role
from perfgate.release.pack_names import problem_of_name
from perfgate.release.pack_writer import Ingredient
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.folder_contents import REFERENCES

LEFT_OUT_FOLDERS = (
    *("__pycache__", ".cache", ".pytest_cache", ".triton", "torch_compile_cache"),
    *(".ipynb_checkpoints", "huggingface_cache"),
)
LEFT_OUT_FILES = (
    *("core", "core.[0-9]*", "*.core", "*.dmp", "*.nsys-rep"),  # what is left of memory, traces
    *("*.evidence.txt", "*.pyc"),  # what hung processes were doing; compiled code
    *("*.lock", ".*.lock"),
)
_HINT = "remove it, or keep it elsewhere, and pack again"
_RAW_OUTPUT = ("server", "ranks")  # what these print is a log, not a result


@dataclass(frozen=True)
class RunFiles:
    """The files of one run's folder.

    Attributes:
        packed: those that go into the pack.
        left_out: paths in the pack of those that do not, each with its size in bytes.
    """

    packed: tuple[Ingredient, ...]
    left_out: tuple[tuple[str, int], ...]


def run_files(run: EndedRun) -> RunFiles:
    """All that a run's folder holds.

    Raises:
        InputError: there is a link, a socket, a FIFO or a device in it, or a name that no pack has.
        OSError: it cannot be read.
    """
    packed, left_out = [], []
    for path in _files(run.folder, run.folder):
        inside = path.relative_to(run.folder).as_posix()
        name = f"{RUNS}/{run.id}/{inside}"
        status = path.stat(follow_symlinks=False)
        if is_left_out(inside):
            left_out.append((name, status.st_size))
            continue
        if not stat.S_ISREG(status.st_mode):
            raise InputError(
                "not a regular file, so it cannot be packed",
                file=path,
                found=kind_of(status),
                expected="regular files and folders, as a run leaves them",
                hint=_HINT,
            )
        if problem := problem_of_name(name):
            raise InputError(f"a file has {problem}", file=path, found=repr(name), hint=_HINT)
        packed.append(Ingredient(name, role_of(inside), path))
    return RunFiles(tuple(packed), tuple(left_out))


def is_left_out(inside: str) -> bool:
    """Whether a file of a run's folder is none that evidence rests on.

    Args:
        inside: its path in that folder.
    """
    *folders, name = PurePosixPath(inside).parts
    return any(one in LEFT_OUT_FOLDERS for one in folders) or any(
        fnmatchcase(name, pattern) for pattern in LEFT_OUT_FILES
    )


def role_of(inside: str) -> Role:
    """What a file of a run's folder is there for.

    Args:
        inside: its path in that folder.
    """
    path = PurePosixPath(inside)
    if inside == "run.json":
        return "run"
    if inside == "records.jsonl":
        return "records"
    if inside == "summary.md":
        return "report"
    if path.parts[0] == REFERENCES:
        return "noise" if "noise" in path.name else "baseline"
    if path.suffix == ".sh":
        return "script"
    if path.suffix in (".err", ".log") or inside == "progress.jsonl":
        return "log"
    return "log" if path.suffix == ".out" and path.stem.startswith(_RAW_OUTPUT) else "raw"


def _files(folder: Path, root: Path) -> Iterator[Path]:
    """What is below a folder and no folder itself, sorted; links are not followed.

    What a folder that is left out holds is given all the same: it is told.
    """
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda one: one.name)
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _files(path, root)
        else:
            yield path
