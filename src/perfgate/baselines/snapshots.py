"""Snapshots: copies of the baselines that a run's verdicts rest on, in the run's own folder.

Stores change: baselines are promoted, retired and pruned. A run that is to be checked years later
carries what it was compared with, byte by byte, as the store had it; likewise its waivers.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from perfgate.baselines import Baseline, ChosenBaseline, Entry
from perfgate.baselines.baseline import Window
from perfgate.baselines.file import read, read_head
from perfgate.baselines.questions import Questions, questions_of
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import write_errors_named, write_text
from perfgate.core.files.json_text import LARGEST_OWN
from perfgate.core.files.untrusted_files import make_new_folders, read_input, read_regular
from perfgate.runs.run_folder import REFERENCES

_NAME = re.compile(r"[1-9]\d*/(\w[\w.+-]*/)*\w[\w.+-]*", re.ASCII)


def keep_baseline(run: Path, file: Path | None) -> str:
    """Copy a baseline, and the questions that its answers belong to, into a run's folder.

    Two stores can have files of one name, and a store may change while a run goes on: what is
    already kept stays, and another content gets a folder of its own, ``2``, ``3``, ….

    Args:
        run: the run's folder.
        file: in a store, ``…/<hardware>/<scenario>/<commit>.json``; None: there is none.

    Returns:
        its place below the folder of references: ``1/cpu/local-serve/abc.json``; empty: of none.

    Raises:
        InputError: it cannot be read.
        RunError: a copy cannot be written (class ``disk_full`` or ``unwritable``).
    """
    if file is None:
        return ""
    store = file.parents[2]
    sources = [file, *(asked.file(store) for asked in _questions(read(file)))]
    contents = {
        source.relative_to(store): read_input(source, LARGEST_OWN, "baseline")
        for source in sources
        if source.is_file()  # an older form of the file holds its questions itself
    }
    return f"{_keep(run / REFERENCES, contents)}/{file.relative_to(store).as_posix()}"


def keep_waivers(run: Path, file: Path) -> str:
    """Copy a file of waivers likewise; gives its place and raises as `keep_baseline`."""
    content = read_input(file, LARGEST_OWN, "file of waivers")
    return f"{_keep(run / REFERENCES, {Path(file.name): content})}/{file.name}"


def kept_file(run: Path, name: str) -> Path:
    """A file of a run's kept references; no name leads out of them.

    Raises:
        InputError: it is the name of none.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            "no file of the run's references",
            file=run / "records.jsonl",
            field="provenance",
            found=name,
            expected="<number>/<hardware>/<scenario>/<commit>.json",
        )
    return run / REFERENCES / name


def kept_entry(run: Path, window: Sequence[str], label: str) -> Entry | None:
    """A probe's part of baselines that a run kept; None: of none.

    Args:
        run: the run's folder.
        window: their names, newest first.
        label: of the probe.

    Raises:
        InputError: one is missing or damaged.
    """
    heads = tuple(read_head(kept_file(run, name)) for name in window)
    if not heads:
        return None
    stored = Window(heads, read)
    return ChosenBaseline(stored[0], "", stored).entry(label)


def _keep(folder: Path, contents: Mapping[Path, bytes]) -> str:
    """Write files that belong together, unless they are there; gives the name of their place."""
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
    return place.name


def _fits(target: Path, content: bytes) -> bool:
    """Whether nothing else is kept there."""
    return not target.exists() or read_regular(target, LARGEST_OWN) == content


def _questions(baseline: Baseline) -> set[Questions]:
    """The questions that its answers belong to."""
    return {
        questions_of(metric, given)
        for entry in baseline.entries.values()
        for run in entry.runs
        for metric, given in run.answers.items()
    }
