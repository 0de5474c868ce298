"""The events that whoever measures writes, for who looks on."""

import time
from pathlib import Path

import pytest

from perfgate.core.durable_files import read_lines
from perfgate.core.errors import RunError
from perfgate.runs import progress
from perfgate.runs.progress import Progress


def full(*_: object) -> None:
    raise RunError("disk_full", "cannot write progress.jsonl")


def test_a_full_disk_takes_the_place_of_nothing_that_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Progress(tmp_path / "progress.jsonl", "a")

    def interrupted() -> None:
        with told.step("c1", "start 1"):
            monkeypatch.setattr(progress, "append_line", full)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    told.over()
    with pytest.raises(RunError, match="disk_full"), told.step("c1", "start 1"):
        pass


def test_a_step_has_a_beginning_and_an_end_even_if_it_fails(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    events = Progress(file, "a")
    before = time.monotonic()
    events.plan(["start"])
    with pytest.raises(ValueError, match="broken"), events.step("start", "start 1"):
        raise ValueError("broken")
    found = read_lines(file)
    assert [(line["who"], line["event"]) for line in found] == [
        ("a", "plan"),
        ("a", "begin"),
        ("a", "end"),
    ]
    assert found[1]["detail"] == "start 1"
    assert before <= found[1]["clock"] <= found[2]["clock"] <= time.monotonic()


def test_all_else_is_one_event_each(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    Progress(file, "").selection({"a": 60.0, "b": None}, ["b"])
    events = Progress(file, "a")
    events.again(2, "again, as start 1 was disturbed: x")
    events.note("waiting for a GPU")
    events.over()
    found = [{**line, "clock": 0} for line in read_lines(file)]
    assert found == [
        {"who": "", "clock": 0, "event": "selection", "seconds": {"a": 60.0, "b": None},
         "over": ["b"]},
        {"who": "a", "clock": 0, "event": "again",
         "text": "start 2: again, as start 1 was disturbed: x"},
        {"who": "a", "clock": 0, "event": "note", "text": "waiting for a GPU"},
        {"who": "a", "clock": 0, "event": "over"},
    ]  # fmt: skip


def test_without_a_file_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    events = Progress(None, "a")
    events.plan(["start"])
    with events.step("start", "start 1"):
        events.note("waits for a GPU")
    events.over()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
