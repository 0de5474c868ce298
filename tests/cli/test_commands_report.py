"""`perfgate report`: run folders in, every format and one exit status out."""

import json
import os
from pathlib import Path

import pytest
from command_line import Perfgate
from made_runs import PARTS, SHARDS, run, write_run
from tables import each

from perfgate.cli.main import main
from perfgate.core.verdict import Verdict
from perfgate.reports.formats.base import report_format

PASS, REGRESSION, ERROR = Verdict.PASS, Verdict.REGRESSION, Verdict.ERROR


@pytest.fixture
def shards(tmp_path: Path) -> tuple[str, str]:
    first = run("one", "10:00", {"a-c1": PASS, "b-c1": REGRESSION}, shard=SHARDS[0], end=1)
    second = run("two", "10:05", {"c-c1": PASS}, shard=SHARDS[1])
    return str(write_run(tmp_path / "one", first)), str(write_run(tmp_path / "two", second))


def test_shards_become_one_report_in_every_format(
    shards: tuple[str, str], tmp_path: Path, perfgate: Perfgate
) -> None:
    told = perfgate.printed(["report", *shards, "--to", str(tmp_path / "out")], 1)
    assert "runs: one (shard 1/2, exit status 1), two (shard 2/2, exit status 0)" in told
    assert "tests: 3 (1 REGRESSION, 2 PASS)" in told
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == sorted(one.file for one in report_format.values())
    assert json.loads((tmp_path / "out" / "report.json").read_text())["status"] == 1


def test_one_format_on_standard_output_stands_alone(
    shards: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *shards, "--format", "json"]) == 1
    told = capsys.readouterr()
    assert [one["test"] for one in json.loads(told.out)["results"]] == ["a-c1", "b-c1", "c-c1"]
    assert "exit status 1" in told.err


def test_a_missing_shard_is_an_error_and_nothing_is_written(
    shards: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["report", shards[0], "--to", str(out)]) == 2
    told = capsys.readouterr()
    assert "shard 2/2 is missing" in told.err
    assert told.out == ""
    assert not out.exists()


def test_every_row_of_a_matrix_must_be_there(
    shards: tuple[str, str], tmp_path: Path, perfgate: Perfgate
) -> None:
    hardware = {"gpu": "b200", "gpus": 8, "nodes": 1}
    job = {**hardware, "hours": 1.0, "hours_known": True, "timeout_minutes": 90}
    rows: list[dict[str, object]] = [
        {
            **job,
            "name": f"b200-{number}",
            "expression": "b200",
            "shard": f"{number}/2",
            "scenarios": part,
        }
        for number, part in enumerate(map(list, PARTS), 1)
    ]
    file = tmp_path / "matrix.json"
    file.write_text(json.dumps({"include": rows}))
    assert main(["report", *shards, "--matrix", str(file)]) == 1
    other = {"name": "h200-1", "expression": "h200", "shard": "1/1", "scenarios": ["d"]}
    rows.append({**job, **other})
    file.write_text(json.dumps({"include": rows}))
    assert "row h200-1 of the matrix has no run" in perfgate.refused(
        ["report", *shards, "--matrix", str(file)]
    )


@each("text", ["", '{"include": []}', '{"include": [{}]}'])
def test_an_unusable_matrix_is_told(shards: tuple[str, str], tmp_path: Path, text: str) -> None:
    file = tmp_path / "matrix.json"
    file.write_text(text)
    assert main(["report", *shards, "--matrix", str(file)]) == 2


def test_a_gate_can_be_asked_for(tmp_path: Path) -> None:
    folder = str(write_run(tmp_path / "one", run("one", "10:00", {"a-c1": PASS, "a-c4": "lack"})))
    assert main(["report", folder]) == 0
    assert main(["report", folder, "--gate"]) == 12


def test_a_changed_record_is_refused(shards: tuple[str, str], perfgate: Perfgate) -> None:
    records = Path(shards[0], "records.jsonl")
    records.write_text(records.read_text().replace('"REGRESSION"', '"PASS"'))
    assert "checksum" in perfgate.refused(["report", *shards])


def test_a_record_that_was_taken_away_at_the_end_is_a_run_that_did_not_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], perfgate: Perfgate
) -> None:
    folder = write_run(tmp_path / "one", run("one", "10:00", {"a-c1": PASS}))
    records = folder / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:-1]))
    capsys.readouterr()
    assert "run one did not end" in perfgate.printed(f"report {folder}", 11)


@pytest.mark.parametrize("file", ["records.jsonl", "run.json"])
def test_a_link_in_a_run_is_not_followed(
    shards: tuple[str, str], tmp_path: Path, file: str, perfgate: Perfgate
) -> None:
    moved = tmp_path / "elsewhere"
    Path(shards[0], file).rename(moved)
    Path(shards[0], file).symlink_to(moved)
    assert "link" in perfgate.refused(["report", *shards])


def test_a_folder_that_others_may_write_to_is_refused(
    shards: tuple[str, str], perfgate: Perfgate
) -> None:
    Path(shards[0]).chmod(0o777)
    assert "others could have put there" in perfgate.refused(["report", *shards])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_refused(shards: tuple[str, str], perfgate: Perfgate) -> None:
    os.chown(shards[0], 65534, 65534)
    assert "others could have put there" in perfgate.refused(["report", *shards])


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
    out = tmp_path / "out"
    monkeypatch.setattr(report_format["html"], "render", lambda *_: "<p>quick</p>")
    assert main(["report", *shards, "--to", str(out)]) == 1
    before = {path.name: path.read_text() for path in out.iterdir()}

    def fails(*_: object) -> str:
        raise OSError(28, "No space left on device", "report.md")

    last = sorted(report_format)[-1]
    monkeypatch.setattr(report_format[last], "render", fails)
    assert main(["report", *shards, "--to", str(out)]) == 16
    assert {path.name: path.read_text() for path in out.iterdir()} == before


def test_what_a_terminal_would_obey_is_shown_as_text(tmp_path: Path, perfgate: Perfgate) -> None:
    hostile = "\x1b]0;mine\x07\x1b[2J"
    found = run("one", "10:00", {"a-c1": PASS}, faults=[hostile], end=14)
    told = perfgate.printed(f"report {write_run(tmp_path / 'one', found)}", 14)
    assert "\x1b" not in told
    assert "\\x1b[2J" in told


def test_a_run_without_its_facts_is_told(tmp_path: Path, perfgate: Perfgate) -> None:
    found = run("one", "10:00", {"a-c1": PASS}, changes={"started": None})
    assert "started: run.json is not whole" in perfgate.refused(
        f"report {write_run(tmp_path / 'one', found)}"
    )


def test_a_folder_that_is_no_run_is_told(tmp_path: Path, perfgate: Perfgate) -> None:
    assert "run.json" in perfgate.refused(f"report {tmp_path}")
