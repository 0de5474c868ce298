"""Kept references: copies of the baselines that a run's verdicts rest on, in the run's own folder.

Stores change: baselines are promoted, retired and pruned. A run that is to be checked years later
carries what it was compared with, byte by byte, as the store had it.
"""

from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from perfgate.baselines import Baseline
from perfgate.baselines.file import read
from perfgate.baselines.questions import Questions, questions_of
from perfgate.core.durable_files import write_errors_named, write_text
from perfgate.core.input_files import read_input
from perfgate.core.json_text import LARGEST_OWN
from perfgate.core.untrusted_files import make_new_folders, read_regular
from perfgate.runs.folder_contents import REFERENCES


def keep_references(run: Path, files: Iterable[Path]) -> tuple[str, ...]:
    """Copy baselines, and the questions that their answers belong to, into a run's folder.

    Two stores can have files of one name, and a store may change while a run goes on: what is
    already kept stays, and another content gets a folder of its own, ``2``, ``3``, ….

    Args:
        run: the run's folder.
        files: baselines in a store, ``…/<hardware>/<scenario>/<commit>.json``.

    Returns:
        for each its place below the folder of references: ``1/cpu/local-serve/abc.json``.

    Raises:
        InputError: one cannot be read.
        RunError: a copy cannot be written (class ``disk_full`` or ``unwritable``).
    """
    return tuple(_kept(run / REFERENCES, file) for file in files)


def _kept(folder: Path, file: Path) -> str:
    store = file.parents[2]
    sources = [file, *(asked.file(store) for asked in _questions(read(file)))]
    contents = {
        source.relative_to(store): read_input(source, LARGEST_OWN, "baseline")
        for source in sources
        if source.is_file()  # an older form of the file holds its questions itself
    }
    for number in count(1):
        place = folder / str(number)
        if all(_fits(place / name, content) for name, content in contents.items()):
            break
    for name, content in contents.items():
        target = place / name
        if not target.exists():
            with write_errors_named(target), suppress(FileExistsError):
                make_new_folders(target.parent)
            write_text(target, content.decode())
    return f"{place.name}/{file.relative_to(store).as_posix()}"


def _fits(target: Path, content: bytes) -> bool:
    """Whether nothing else is kept there."""
    return not target.exists() or read_regular(target, LARGEST_OWN) == content


def _questions(baseline: Baseline) -> set[Questions]:
    """The questions that its answers belong to."""
    return {
        questions_of(metric, given)
        for entry in baseline.entries.values()
        for one in entry.runs
        for metric, given in one.answers.items()
    }
