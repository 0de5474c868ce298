"""Record lines: a damaged one is an error with file, line and field, and with the next step."""

import json
from pathlib import Path
from typing import Any

import pytest
from plain_records import plain, record
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.plain import to_plain
from perfgate.runs.record import SCHEMA_VERSION, read_records


def line(kind: str, **fields: Any) -> dict[str, Any]:
    return {**to_plain(record(kind, **fields)), "schema_version": SCHEMA_VERSION}


MEASURED = line("measurement", metrics={"output_throughput": 1.5, "requests": 3})
VERDICT = {name: value for name, value in line("verdict").items() if name != "resumed_from"}


def written(folder: Path, *lines: object) -> Path:
    file = folder / "records.jsonl"
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    file.write_text("".join(f"{text}\n" for text in texts))
    return file


def refused(folder: Path, *lines: object) -> InputError:
    file = written(folder, *lines)
    with pytest.raises(InputError) as caught:
        read_records(file)
    assert caught.value.file == file
    assert "in a new run folder" in str(caught.value.hint)
    return caught.value


def test_whole_lines_are_as_they_were_written(tmp_path: Path) -> None:
    group = line("group", engine=None, tests=["t"])
    found = plain(read_records(written(tmp_path, MEASURED, VERDICT, group)))
    assert [{**one, "schema_version": SCHEMA_VERSION} for one in found] == [
        MEASURED,
        {**VERDICT, "resumed_from": ""},
        group,
    ]


@each(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        ('{"a": NaN}', "not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": ' + "9" * 6000 + "}", "holds a number of too many digits"),
        ('{"verdict": "REGRESSION", "verdict": "PASS"}', "has a field twice"),
    ],
)
def test_a_line_that_is_not_json(tmp_path: Path, text: str, problem: str) -> None:
    error = refused(tmp_path, MEASURED, text, VERDICT)
    assert (error.problem, error.line) == (problem, 2)
    assert len(str(error.found)) < 400


def test_a_line_that_was_cut_by_a_kill_is_no_fault(tmp_path: Path) -> None:
    file = written(tmp_path, MEASURED)
    file.write_text(file.read_text() + '{"record": "verd')
    assert len(read_records(file)) == 1


@each(
    ("kind", "change", "field", "expected"),
    [
        ("measurement", {"metrics": 5}, "metrics", "object"),
        ("measurement", {"metrics": {"output_throughput": "fast"}}, "metrics[...]", "float"),
        ("measurement", {"scenario": None}, "scenario", "str"),
        ("measurement", {"engine": {"name": "e"}}, "engine.version", "missing"),
        ("measurement", {"disturbed": "no"}, "disturbed", "array"),
        ("measurement", {"injected": [1]}, "injected[0]", "str"),
        ("measurement", {"role": ...}, "role", "missing"),
        ("measurement", {"record": 7}, "record", "str"),
        ("measurement", {"record": "measured"}, "record", "measured"),
        ("measurement", {"record": ...}, "record", "missing"),
        ("measurement", {"schema_version": SCHEMA_VERSION + 1}, "schema_version", "3"),
        ("verdict", {"verdict": "GOOD"}, "verdict", "GOOD"),
        ("verdict", {"error": {"error_class": "oom"}}, "error.message", "missing"),
        ("verdict", {"judgements": {}}, "judgements", "array"),
        ("verdict", {"judgements": [{"metric": "m"}]}, "judgements[0].verdict", "missing"),
        ("verdict", {"resumed_from": "yesterday"}, "resumed_from", "no such field"),
        ("verdict", {"starts": "two"}, "starts", "int"),
    ],
)
def test_a_field_of_another_type(
    tmp_path: Path, kind: str, change: dict[str, Any], field: str, expected: str
) -> None:
    changed = {**(MEASURED if kind == "measurement" else VERDICT), **change}
    damaged = {name: value for name, value in changed.items() if value is not ...}
    error = refused(tmp_path, VERDICT, damaged)
    assert (error.problem, error.line, error.field) == ("a record is not whole", 2, field)
    assert expected in str(error.expected)


def test_nothing_is_real_in_a_rehearsal(tmp_path: Path) -> None:
    file = written(tmp_path, VERDICT)
    with pytest.raises(InputError, match=r"records\.jsonl:1: synthetic: a record is not whole"):
        read_records(file, is_rehearsal=True)


def test_a_folder_in_its_place_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").mkdir()
    with pytest.raises(InputError, match="found: a folder\n  expected: a regular file"):
        read_records(tmp_path / "records.jsonl")
