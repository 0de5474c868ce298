"""The page of a session: where it cannot be written beside the summary, the verdict stands."""

from pathlib import Path

import pytest
from made_runs import run, write_run
from tables import each

from perfgate.core.errors import RunError
from perfgate.core.verdict import Verdict
from perfgate.runs.run_folder import RunFolder
from perfgate.suite import run_end
from perfgate.suite.run_end import write_page


@each(
    ("error", "told"),
    [
        (RunError("disk_full", "no space left"), "could not be written: disk_full: no space left"),
        (PermissionError(13, "Permission denied"), "could not be written"),
        (KeyError("planted"), "a bug of perfgate:\nTraceback"),
    ],
)
def test_a_page_that_cannot_be_made_is_told_and_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(run_end, "write_formats", fails)
    folder = write_run(tmp_path / "one", run("one", "09:00", {"a-c1": Verdict.PASS}))
    assert told in write_page(RunFolder(folder), tmp_path)
