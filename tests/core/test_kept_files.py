"""A kept folder is whole or made again, whatever was done to its files."""

import os
from functools import partial
from pathlib import Path

import pytest
from power_cut import Disk
from tables import each

from perfgate.core.kept_files import CHECKSUMS, kept_folder


def write(draft: Path) -> None:
    (draft / "a.txt").write_text("prompts")


@each(
    "name, damage",
    [
        ("a.txt", partial(os.truncate, length=3)),
        ("a.txt", lambda file: file.write_text("prompt5")),
        ("a.txt", Path.unlink),
        (CHECKSUMS, partial(os.truncate, length=0)),
        (CHECKSUMS, partial(os.truncate, length=20)),
    ],
)
def test_what_is_damaged_is_made_again(tmp_path, name, damage) -> None:
    folder = tmp_path / "one"
    assert [kept_folder(folder, write), kept_folder(folder, write)] == [True, False]
    damage(folder / name)
    assert [kept_folder(folder, write), kept_folder(folder, write)] == [True, False]
    assert [*tmp_path.iterdir()] == [folder]
    assert (folder / "a.txt").read_text() == "prompts"


def test_what_could_not_be_made_leaves_nothing(tmp_path) -> None:
    def fails(draft: Path) -> None:
        write(draft)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        kept_folder(tmp_path / "one", fails)
    assert [*tmp_path.iterdir()] == []


def test_a_power_cut_leaves_it_whole_or_to_be_made_again(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "one"
    with Disk(tmp_path, monkeypatch) as disk:
        kept_folder(folder, write)
        assert disk.possible(folder / "a.txt") == {b"prompts"}
        assert disk.possible(folder / CHECKSUMS) == {(folder / CHECKSUMS).read_bytes()}
