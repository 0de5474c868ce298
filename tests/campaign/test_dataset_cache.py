"""Kept files: made once per call, used again by every fresh start."""

from dataclasses import replace
from pathlib import Path

import pytest

from perfgate.campaign.dataset_cache import made_once
from perfgate.core.command import Command
from perfgate.core.steps import Step

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
    folder.mkdir()
    return Maker(folder)


def test_the_second_start_uses_what_the_first_made(tmp_path: Path) -> None:
    first, second = start(tmp_path, "first"), start(tmp_path, "second")
    assert made_once(STEP, first.folder, tmp_path / "store", first) is True
    assert made_once(STEP, second.folder, tmp_path / "store", second) is False
    assert second.times == 0
    assert (second.folder / "dataset.txt").read_text() == "prompts"


@pytest.mark.parametrize(
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
