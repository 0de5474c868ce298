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
    made = {**to_plain(record(kind, **fields)), "schema_version": SCHEMA_VERSION}
    return {name: value for name, value in made.items() if name != "resumed_from"}


MEASURED = line("measurement", metrics={"output_throughput": 1.5, "requests": 3})
VERDICT = line("verdict")


def written(folder: Path, *lines: object) -> Path:
    file = folder / "records.jsonl"
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    file.write_text("".join(f"{text}\n" for text in texts))
    return file


def refused(folder: Path, *lines: object) -> InputError:
    file = written(folder, *lines)
    with pytest.raises(InputError) as caught:
        read_records(file)
    assert (caught.value.file, caught.value.line) == (file, 2)
    assert "in a new run folder" in str(caught.value.hint)
    return caught.value


def test_whole_lines_are_as_they_were_written_and_one_cut_by_a_kill_is_no_fault(
    tmp_path: Path,
) -> None:
    lines = [MEASURED, VERDICT, line("group", engine=None, tests=["t"])]
    file = written(tmp_path, *lines)
    file.write_text(file.read_text() + '{"record": "verd')
    found = [{**one, "schema_version": SCHEMA_VERSION} for one in plain(read_records(file))]
    assert found[1].pop("resumed_from") == ""
    assert found == lines


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
    assert error.problem == problem
    assert len(str(error.found)) < 400


@each(
    ("whole", "change", "field", "expected"),
    [
        (MEASURED, {"metrics": 5}, "metrics", "object"),
        (MEASURED, {"metrics": {"output_throughput": "fast"}}, "metrics[...]", "float"),
        (MEASURED, {"scenario": None}, "scenario", "str"),
        (MEASURED, {"engine": {"name": "e"}}, "engine.version", "missing"),
        (MEASURED, {"disturbed": "no"}, "disturbed", "array"),
        (MEASURED, {"injected": [1]}, "injected[0]", "str"),
        (MEASURED, {"role": ...}, "role", "missing"),
        (MEASURED, {"record": 7}, "record", "str"),
        (MEASURED, {"record": "measured"}, "record", "measured"),
        (MEASURED, {"record": ...}, "record", "missing"),
        (MEASURED, {"schema_version": SCHEMA_VERSION + 1}, "schema_version", str(SCHEMA_VERSION)),
        (VERDICT, {"verdict": "GOOD"}, "verdict", "GOOD"),
        (VERDICT, {"error": {"error_class": "oom"}}, "error.message", "missing"),
        (VERDICT, {"judgements": {}}, "judgements", "array"),
        (VERDICT, {"judgements": [{"metric": "m"}]}, "judgements[0].verdict", "missing"),
        (VERDICT, {"resumed_from": "yesterday"}, "resumed_from", "no such field"),
        (VERDICT, {"starts": "two"}, "starts", "int"),
    ],
)
def test_a_field_of_another_type(
    tmp_path: Path, whole: dict[str, Any], change: dict[str, Any], field: str, expected: str
) -> None:
    damaged = {name: value for name, value in (whole | change).items() if value is not ...}
    error = refused(tmp_path, VERDICT, damaged)
    assert (error.problem, error.field) == ("a record is not whole", field)
    assert expected in str(error.expected)
