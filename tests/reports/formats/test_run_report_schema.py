"""The published schema of report.json: reports hold to it, and it has the fields that they have."""

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from run_reports import hostile, of_size
from tables import each

from perfgate.gate.verdict import Verdict
from perfgate.reports.formats.base import ReportContext
from perfgate.reports.formats.json import JsonFormat
from perfgate.reports.run_report import SCHEMA_VERSION, RunReport

FILE = Path(__file__).parents[3] / "docs" / "reference" / "run_report.schema.json"
SCHEMA: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def plain(of: RunReport) -> Any:
    return json.loads(JsonFormat().render(of, ReportContext()))


def faults(held: Any) -> list[str]:
    return [f"{one.json_path}: {one.message}"[:200] for one in VALIDATOR.iter_errors(held)]


def test_the_schema_is_one_and_of_this_version() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION
    assert SCHEMA["$id"] == f"urn:perfgate:run-report:{SCHEMA_VERSION}"


@pytest.mark.parametrize("number", [0, 1, 50])
def test_reports_hold_to_it(number: int) -> None:
    assert faults(plain(of_size(number))) == []


def test_a_hostile_report_holds_to_it() -> None:
    assert faults(plain(hostile())) == []


@each(
    ("path", "value"),
    [
        ("schema_version", 2),
        ("status", "1"),
        ("unknown", 1),
        ("results.0.verdict", "GOOD"),
        ("results.0.measured.0.values", []),
        ("results.0.judgements.0.interval", [1.0]),
        ("runs.0.shard", {}),
    ],
)
def test_what_is_no_report_does_not(path: str, value: object) -> None:
    held = plain(of_size(5))
    *steps, last = path.split(".")
    part = held
    for step in steps:
        part = part[int(step) if step.isdigit() else step]
    part[last] = value
    assert faults(held)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, behind references and beside null."""
    for one in schema.get("anyOf", ()):
        if one.get("type") != "null":
            return resolved(one)
    if "$ref" in schema:
        return resolved(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    return schema


def held_by(hint: Any) -> Any:
    """The type of a field without None and without the tuple that it is many of."""
    if isinstance(hint, types.UnionType):
        (hint,) = [one for one in typing.get_args(hint) if one is not type(None)]
    return typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else hint


def compared(kind: type, schema: dict[str, Any], seen: set[type]) -> None:
    """The dataclass and its schema have the same fields, each described, all the way down."""
    seen.add(kind)
    properties = schema["properties"]
    names = [one.name for one in dataclasses.fields(kind)]
    assert [*properties] == names == schema["required"], kind.__name__
    assert schema["additionalProperties"] is False
    hints = typing.get_type_hints(kind)
    for name, one in properties.items():
        where = f"{kind.__name__}.{name}"
        assert resolved(one).get("description") or one.get("description"), where
        optional = isinstance(hints[name], types.UnionType)
        assert optional == _takes_null(one), where
        inner = held_by(hints[name])
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            compared(inner, resolved(one.get("items", one)), seen)
        elif typing.get_origin(inner) is typing.Literal:
            assert one["enum"] == [*typing.get_args(inner)], where
        elif inner is Verdict:
            assert resolved(one)["enum"] == [one.value for one in Verdict], where


def _takes_null(schema: dict[str, Any]) -> bool:
    return Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]}).is_valid(None)


def test_schema_and_dataclasses_have_the_same_fields() -> None:
    seen: set[type] = set()
    compared(RunReport, SCHEMA, seen)
    assert len(seen) == len(SCHEMA["$defs"])  # all but the verdicts, and the whole
