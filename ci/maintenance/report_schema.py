"""Report schema: the JSON Schema of report.json, made from the values that it is written from.

Types, limits and choices are those of the fields; what each is for stands in the docstrings.
`make reference` writes it.
"""

import inspect
import json
import re
from typing import Any

import msgspec

from perfgate.reports.run_report import SCHEMA_VERSION, RunReport

_FIELDS = re.compile(r"\n(?=    \w[\w, ]*: )")


def report_schema() -> str:
    """The schema as its file has it: JSON Schema 2020-12, all fields required, no other allowed."""
    _, parts = msgspec.json.schema_components([RunReport], ref_template="#/$defs/{name}")
    whole = _closed(parts.pop(RunReport.__name__))
    whole["properties"]["schema_version"]["const"] = SCHEMA_VERSION
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:perfgate:run-report:{SCHEMA_VERSION}",
        **whole,
        "title": "Run report: a run of perfgate, or several merged into one (report.json)",
        "$defs": {name: _closed(part) for name, part in parts.items()},
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def described(text: str | None) -> tuple[str, dict[str, str]]:
    """A docstring's parts: what stands before its attributes, and what is said of each of them."""
    head, _, attributes = inspect.cleandoc(text or "").partition("Attributes:\n")
    told: dict[str, str] = {}
    for item in _FIELDS.split("\n" + attributes):
        names, _, said = item.partition(":")
        told |= dict.fromkeys((name.strip() for name in names.split(",")), said)
    return head, told


def _closed(part: dict[str, Any]) -> dict[str, Any]:
    """A part with a description of each field; no field may be missing, none be added."""
    head, told = described(part.get("description"))
    del part["title"]  # the name of the type, which is that of the definition
    part["description"] = _one_line(head)
    if "properties" not in part:
        return part
    for name, held in part["properties"].items():
        held.pop("default", None)
        if name in told:
            held["description"] = _one_line(told[name])
    return part | {"required": [*part["properties"]], "additionalProperties": False}


def _one_line(text: str) -> str:
    """A docstring's text as a sentence of its own, in JSON's words."""
    line = re.sub(r"\bNone\b", "null", " ".join(text.split()))
    return line[:1].upper() + line[1:]
