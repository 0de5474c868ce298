"""Kept files: made once per call, used again by every fresh start."""

import errno
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import made_runs
import pytest
from power_cut import Disk
from tables import each

from perfgate.campaign.fresh_start import made_once
from perfgate.core.command import Command, Step
from perfgate.core.errors import RunError
from perfgate.core.kept_files import CHECKSUMS, kept_folder
from perfgate.release.pack_contents import run_files

STEP = Step("prepare_dataset", Command(("prepare", "--num-requests", "8")), "c4", "dataset.txt")


class Maker:
    """Counts how often the file is made."""

    def __init__(self, folder: Path, content: str = "prompts") -> None:
        self.folder = folder
        self.content = content
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
        (self.folder / "dataset.txt").write_text(self.content)


def start(tmp_path: Path, name: str) -> Maker:
    folder = tmp_path / name
    folder.mkdir(parents=True)
    return Maker(folder)


def test_the_second_start_uses_what_the_first_made(tmp_path: Path) -> None:
    first, second = start(tmp_path, "first"), start(tmp_path, "second")
    assert made_once(STEP, first.folder, tmp_path / "store", first) is True
    assert made_once(STEP, second.folder, tmp_path / "store", second) is False
    assert second.times == 0
    assert (second.folder / "dataset.txt").read_text() == "prompts"


def test_a_run_folder_with_a_kept_dataset_can_be_packed(tmp_path: Path) -> None:
    first, second = start(tmp_path, "run/first"), start(tmp_path, "run/second")
    made_once(STEP, first.folder, tmp_path / "store", first)
    made_once(STEP, second.folder, tmp_path / "store", second)
    files = run_files(replace(made_runs.run("one", "08:00", {}), folder=tmp_path / "run"))
    assert [(file.path, Path(file.source).read_bytes()) for file in files.packed] == [
        ("runs/one/first/dataset.txt", b"prompts"),
        ("runs/one/second/dataset.txt", b"prompts"),
    ]


def test_a_program_that_writes_into_its_dataset_leaves_the_kept_one_whole(tmp_path: Path) -> None:
    first, second = start(tmp_path, "first"), start(tmp_path, "second")
    made_once(STEP, first.folder, tmp_path / "store", first)
    (first.folder / "dataset.txt").write_text("damaged")
    assert made_once(STEP, second.folder, tmp_path / "store", second) is False
    assert (second.folder / "dataset.txt").read_text() == "prompts"


@each("damage", ["cut", "changed", "no checksums", "cut checksums", "gone"])
def test_what_is_damaged_is_made_anew(tmp_path: Path, damage: str) -> None:
    first = start(tmp_path, "first")
    made_once(STEP, first.folder, tmp_path / "store", first)
    kept = next((tmp_path / "store").glob("*/dataset.txt"))
    if damage == "cut":
        os.truncate(kept, 3)
    elif damage == "changed":
        kept.write_text("prompt5")
    elif damage == "gone":
        kept.unlink()
    else:
        sums = kept.with_name(CHECKSUMS)
        sums.write_bytes(sums.read_bytes()[: 20 if damage == "cut checksums" else 0])
    second, third = start(tmp_path, "second"), start(tmp_path, "third")
    assert made_once(STEP, second.folder, tmp_path / "store", second) is True
    assert (second.folder / "dataset.txt").read_text() == "prompts"
    assert made_once(STEP, third.folder, tmp_path / "store", third) is False
    assert [path.name for path in (tmp_path / "store").iterdir()] == [kept.parent.name]


def test_the_store_may_be_on_another_disk(tmp_path: Path) -> None:
    store = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        if store.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("needs two file systems: /dev/shm is on that of the temporary files")
        first, second = start(tmp_path, "first"), start(tmp_path, "second")
        assert made_once(STEP, first.folder, store, first) is True
        assert made_once(STEP, second.folder, store, second) is False
        assert (first.folder / "dataset.txt").read_text() == "prompts"
    finally:
        shutil.rmtree(store)


def test_a_store_that_is_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    maker = start(tmp_path, "first")
    monkeypatch.setattr(shutil, "move", full)
    with pytest.raises(RunError, match="disk_full: cannot write") as caught:
        made_once(STEP, maker.folder, tmp_path / "store", maker)
    assert "PERFGATE_HOME" in caught.value.hint
    assert list((tmp_path / "store").iterdir()) == []


def test_a_power_cut_leaves_it_whole_or_to_be_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store" / "one"
    with Disk(tmp_path, monkeypatch) as disk:
        kept_folder(folder, lambda draft: (draft / "a.txt").write_text("prompts") and None)
        assert disk.possible(folder / "a.txt") == {b"prompts"}
        assert disk.possible(folder / CHECKSUMS) == {(folder / CHECKSUMS).read_bytes()}


@each(
    "other",
    [
        replace(STEP, command=Command(("prepare", "--num-requests", "9"))),
        replace(STEP, command=replace(STEP.command, env={"SEED": "2"})),
        replace(STEP, command=replace(STEP.command, files={"config.yml": "a: 1"})),
    ],
)
def test_another_call_makes_its_own_file(tmp_path: Path, other: Step) -> None:
    first, second = start(tmp_path, "first"), start(tmp_path, "second")
    made_once(STEP, first.folder, tmp_path / "store", first)
    assert made_once(other, second.folder, tmp_path / "store", second) is True


def test_a_step_that_fails_leaves_nothing_to_be_used_again(tmp_path: Path) -> None:
    maker = start(tmp_path, "first")

    def fail() -> None:
        maker()
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        made_once(STEP, maker.folder, tmp_path / "store", fail)
    again = start(tmp_path, "second")
    assert made_once(STEP, again.folder, tmp_path / "store", again) is True


def test_a_step_that_produces_nothing_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="produces nothing"):
        made_once(replace(STEP, produces=None), tmp_path, tmp_path / "store", lambda: None)
