"""Kept references: copies of the baselines that a run's verdicts rest on, in the run's own folder.

Stores change: baselines are promoted, retired and pruned. A run that is to be checked years later
carries what it was compared with, byte by byte, as the store had it.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from perfgate.baselines import Baseline
from perfgate.baselines.file import read
from perfgate.baselines.questions import Questions, questions_of
from perfgate.core.durable_files import write_errors_named, write_text
from perfgate.core.errors import InputError
from perfgate.core.input_files import read_input
from perfgate.core.json_text import LARGEST_OWN
from perfgate.core.untrusted_files import make_new_folders, read_regular, refuse_links
from perfgate.runs.folder_contents import REFERENCES


def keep_references(run: Path, files: Iterable[Path]) -> tuple[str, ...]:
    """Copy baselines, and the questions that their answers belong to, into a run's folder.

    Args:
        run: the run's folder.
        files: baselines in a store, ``…/<hardware>/<scenario>/<commit>.json``.

    Returns:
        for each its place below the folder of references.

    Raises:
        InputError: one cannot be read, or was changed while the run was measured.
        RunError: a copy cannot be written (class ``disk_full`` or ``unwritable``).
    """
    return tuple(_kept(run / REFERENCES, file) for file in files)


def _kept(folder: Path, file: Path) -> str:
    store = file.parents[2]
    _copy(file, folder / file.relative_to(store))
    for asked in _questions(read(file)):
        source = asked.file(store)
        if source.is_file():  # an older form of the file holds its questions itself
            _copy(source, asked.file(folder))
    return file.relative_to(store).as_posix()


def _copy(source: Path, target: Path) -> None:
    content = read_input(source, LARGEST_OWN, "baseline")
    with write_errors_named(target), suppress(FileExistsError):
        make_new_folders(target.parent)
    refuse_links(target)
    if target.exists():
        if read_regular(target, LARGEST_OWN) != content:
            raise InputError(
                "the baseline was changed while the run was measured",
                file=source,
                expected=f"what it was when the run first read it: {target}",
                hint="measure again; do not promote baselines that a run is comparing with",
            )
        return
    write_text(target, content.decode())


def _questions(baseline: Baseline) -> set[Questions]:
    """The questions that its answers belong to."""
    return {
        questions_of(metric, given)
        for entry in baseline.entries.values()
        for one in entry.runs
        for metric, given in one.answers.items()
    }
