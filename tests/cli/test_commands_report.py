"""`perfgate report`: run folders in, every format and one exit status out."""

import json
from pathlib import Path

import pytest
from command_line import Perfgate
from made_runs import SHARDS, run, write_run

from perfgate.cli.main import main
from perfgate.core.verdict import Verdict
from perfgate.reports.formats.base import report_format

PASS, REGRESSION, ERROR = Verdict.PASS, Verdict.REGRESSION, Verdict.ERROR


@pytest.fixture
def shards(tmp_path: Path) -> tuple[str, str]:
    first = run("one", "10:00", {"a-c1": PASS, "b-c1": REGRESSION}, shard=SHARDS[0], end=1)
    second = run("two", "10:05", {"c-c1": PASS}, shard=SHARDS[1])
    return str(write_run(tmp_path / "one", first)), str(write_run(tmp_path / "two", second))


def test_a_link_where_a_report_would_be_is_replaced_and_not_followed(
    shards: tuple[str, str], tmp_path: Path
) -> None:
    file, precious = tmp_path / "r.json", tmp_path / "precious"
    precious.write_text("mine")
    file.symlink_to(precious)
    assert main(["report", *shards, "--format", "json", "--output", str(file)]) == 1
    assert precious.read_text() == "mine"
    assert not file.is_symlink()
    assert json.loads(file.read_text())["schema_version"] == 1
    assert main(["report", *shards, "--output", str(file)]) == 2  # without a format


def test_what_cannot_be_written_leaves_the_reports_before_it(
    shards: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise OSError(28, "No space left on device", "report.md")

    out = tmp_path / "out"
    words = ["report", *shards, "--to", str(out)]
    assert main(words) == 1
    for path in out.iterdir():
        path.write_text("of before")
    monkeypatch.setattr(report_format[sorted(report_format)[-1]], "text", fails)
    assert main(words) == 16
    assert {path.read_text() for path in out.iterdir()} == {"of before"}


def test_what_a_terminal_would_obey_is_shown_as_text(tmp_path: Path, perfgate: Perfgate) -> None:
    hostile = "\x1b]0;mine\x07\x1b[2J"
    found = run("one", "10:00", {"a-c1": PASS}, faults=[hostile], end=14)
    told = perfgate.printed(f"report {write_run(tmp_path / 'one', found)}", 14)
    assert "\x1b" not in told
    assert "\\x1b[2J" in told
