"""Record lines: a damaged one is told with its file, line and field, and with the next step."""

import json
from pathlib import Path
from typing import Any

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.runs.record_lines import RecordLine, read_records
from perfgate.runs.records import RunFolder

WHOLE: dict[str, Any] = {
    "record": "measurement",
    "scenario": "s",
    "probe": "c1",
    "role": "new",
    "start": 1,
    "metrics": {"output_throughput": 1.5, "requests": 3},
    "engine": {"name": "e", "version": "1", "commit": "c"},
    "disturbed": [],
}
VERDICT: dict[str, Any] = {"record": "verdict", "verdict": "PASS", "error": None, "judgements": []}


def written(folder: Path, *lines: object) -> Path:
    file = folder / "records.jsonl"
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    file.write_text("".join(f"{text}\n" for text in texts))
    return file


def refused(folder: Path, *lines: object) -> InputError:
    file = written(folder, *lines)
    with pytest.raises(InputError) as told:
        read_records(file)
    assert told.value.file == file
    assert told.value.hint is not None
    assert "in a run of its own" in told.value.hint
    return told.value


def test_whole_lines_are_as_they_were_written(tmp_path: Path) -> None:
    group = {"record": "group", "engine": None, "starts": {"made": 1}, "tests": ["t"]}
    assert read_records(written(tmp_path, WHOLE, VERDICT, group)) == [WHOLE, VERDICT, group]


@each(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ('{"a": NaN}', "not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": ' + "9" * 6000 + "}", "holds a number of too many digits"),
        ('{"verdict": "REGRESSION", "verdict": "PASS"}', "has a field twice"),
    ],
)
def test_a_line_that_is_not_json(tmp_path: Path, line: str, problem: str) -> None:
    error = refused(tmp_path, WHOLE, line, VERDICT)
    assert (error.problem, error.line) == (problem, 2)
    assert len(str(error.found)) < 400


def test_a_line_that_was_cut_by_a_kill_is_no_fault(tmp_path: Path) -> None:
    file = written(tmp_path, WHOLE)
    file.write_text(file.read_text() + '{"record": "verd')
    assert read_records(file) == [WHOLE]


@each(
    ("change", "field"),
    [
        ({"metrics": 5}, "metrics"),
        ({"metrics": {"output_throughput": "fast"}}, "metrics"),
        ({"scenario": None}, "scenario"),
        ({"engine": {"name": "e"}}, "engine"),
        ({"disturbed": "no"}, "disturbed"),
        ({"injected": [1]}, "injected"),
        ({"record": 7}, "record"),
        ({}, "record"),
        ({"verdict": "GOOD"}, "verdict"),
        ({"error": {"class": "oom"}}, "error"),
        ({"judgements": {}}, "judgements"),
        ({"starts": "two"}, "starts"),
    ],
)
def test_a_field_of_another_type(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    error = refused(tmp_path, VERDICT, {**WHOLE, **change} if change else {})
    assert (error.problem, error.line, error.field) == ("a record is not whole", 2, field)


def test_a_field_that_is_missing_is_told_where_it_is_needed(tmp_path: Path) -> None:
    *_, line = read_records(written(tmp_path, VERDICT, VERDICT, WHOLE))
    assert isinstance(line, RecordLine)
    assert line["role"] == "new"
    assert line.get("seconds") is None
    with pytest.raises(InputError, match=r"records\.jsonl:3: seconds: a record is not whole"):
        _ = line["seconds"]


def test_a_run_reads_its_records_so(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema_version": 3}')
    RunFolder(tmp_path).record("resumed", {"keeps": [], "repeats": "all"})
    with pytest.raises(InputError, match=r"records\.jsonl:1: repeats: "):
        RunFolder(tmp_path).records()


def test_a_folder_in_its_place_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").mkdir()
    with pytest.raises(InputError, match="found: a folder\n  expected: a regular file"):
        read_records(tmp_path / "records.jsonl")
