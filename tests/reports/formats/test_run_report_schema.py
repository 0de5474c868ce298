"""The published schema of report.json: reports hold to it, and nothing else does."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from run_reports import hostile, of_size, report, result
from tables import each

from perfgate.core.measurement import Change, ChangedQuestions
from perfgate.reports.formats.json import JsonFormat
from perfgate.reports.run_report import SCHEMA_VERSION, RunReport

FILE = Path(__file__).parents[3] / "docs" / "reference" / "run_report.schema.json"
SCHEMA: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def plain(of: RunReport) -> Any:
    return json.loads(JsonFormat().render(of))


def faults(held: Any) -> list[str]:
    return [f"{one.json_path}: {one.message}"[:200] for one in VALIDATOR.iter_errors(held)]


def test_the_schema_is_one_and_of_this_version() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION
    assert SCHEMA["$id"] == f"urn:perfgate:run-report:{SCHEMA_VERSION}"


def test_reports_hold_to_it() -> None:
    """Also a hostile one, and what was observed beside the gate."""
    moved = Change("ttft_p99_ms", 1.0, 1.2, 0.2, (0.1, 0.3), 3, 0.01)
    answers = ChangedQuestions("accuracy:a:b:c", "baseline", 9, 1, 0, ("q",), ())
    observed = report(result(0, observed=(moved,), changed=(answers,)))
    for made in (*map(of_size, (0, 1, 50)), hostile(), observed):
        assert faults(plain(made)) == []


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
