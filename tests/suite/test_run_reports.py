"""The page of a session: written beside the summary; where it cannot be, the verdict stands."""

from pathlib import Path

import pytest
from made_runs import run, write_run

from perfgate.core.errors import RunError
from perfgate.gate.verdict import Verdict
from perfgate.runs.records import RunFolder
from perfgate.suite import run_reports
from perfgate.suite.run_reports import write_page


@pytest.fixture
def ended(tmp_path: Path) -> RunFolder:
    return RunFolder(write_run(tmp_path / "one", run("one", "09:00", {"a-c1": Verdict.PASS})))


def test_the_page_is_written_into_the_run_folder(ended: RunFolder) -> None:
    assert write_page(ended, ended.path.parent) == ""
    page = (ended.path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
    assert "a-c1" in page


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RunError("disk_full", "no space left"), "could not be written: disk_full: no space left"),
        (PermissionError(13, "Permission denied"), "could not be written"),
        (KeyError("planted"), "a bug of perfgate:\nTraceback"),
    ],
)
def test_a_page_that_cannot_be_made_is_told_and_raises_nothing(
    ended: RunFolder, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(run_reports, "write_formats", fails)
    assert told in write_page(ended, ended.path.parent)
    assert not (ended.path / "report.html").exists()
