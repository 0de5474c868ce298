"""What a list of waivers must be: its schema, and what a schema cannot say."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from perfgate.core.durable_files import read_json
from perfgate.core.paths import repository
from perfgate.scenarios.metric_rules import unknown_metric
from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.yaml_document import Document

_PROBLEMS = {
    "type": "wrong type",
    "const": "not an allowed value",
    "pattern": "malformed",
    "minLength": "empty",
    "exclusiveMinimum": "out of range",
    "exclusiveMaximum": "out of range",
}
_WHAT = ("scenario", "metric", "hardware", "probe")  # what a waiver is for


@cache
def _validator(schema: Path) -> Draft202012Validator:
    return Draft202012Validator(read_json(schema, what="schema"))


def broken_waiver_rules(document: Document) -> list[Problem]:
    """All that is wrong with the file's value; at each place, what is told first.

    Raises:
        InputError: there is no perfgate checkout here, or its schema is damaged.
    """
    value = document.value
    found: dict[Keys, Problem] = {}  # one a place: the schema names type first, it says most
    for error in _validator(repository() / "waivers.schema.json").iter_errors(value):
        for problem in _misshapen(error):
            found.setdefault(problem.path, problem)
    waivers = value.get("waivers") if isinstance(value, dict) else None
    given: list[Any] = waivers if isinstance(waivers, list) else []
    for problem in _unusable(given):
        found.setdefault(problem.path, problem)
    misshapen = {
        path[1] for path in found if len(path) == 2 or (len(path) > 2 and path[2] in _WHAT)
    }
    named = {number: one for number, one in enumerate(given) if number not in misshapen}
    return [*found.values(), *_overlapping(document, named)]


def _misshapen(error: ValidationError) -> Iterator[Problem]:
    """A violation of the schema in people's words; `expected` is the schema's description."""
    path: Keys = tuple(error.absolute_path)
    rule: Any = error.schema
    instance: Any = error.instance
    if error.validator == "additionalProperties":
        known = list(rule["properties"])
        for name in instance:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]}?" if close else None
                expected = "one of " + ", ".join(known)
                yield Problem((*path, name), "unknown field", expected=expected, hint=hint)
    elif error.validator == "required":
        for name in rule["required"]:
            if name not in instance:
                expected = rule["properties"][name]["description"]
                yield Problem((*path, name), "missing", expected=expected)
    else:
        problem = _PROBLEMS.get(str(error.validator), error.message)
        is_bare = error.validator == "type" and isinstance(instance, bool | int | float)
        hint = "quote it" if is_bare and rule["type"] == "string" else None
        yield Problem(path, problem, expected=rule["description"], hint=hint)


def _unusable(waivers: Iterable[Any]) -> Iterator[Problem]:
    """Names and days of the right shape that do not exist."""
    for number, waiver in enumerate(waivers):
        plain = waiver if isinstance(waiver, dict) else {}
        metric, last_day = plain.get("metric"), plain.get("last_day")
        if isinstance(metric, str):
            problem = unknown_metric(("waivers", number, "metric"), metric)
            if problem is not None:
                yield problem
        if isinstance(last_day, str):
            try:
                date.fromisoformat(last_day)
            except ValueError:
                path = ("waivers", number, "last_day")
                yield Problem(path, "no such day", expected="a day of the calendar")


def _overlapping(document: Document, waivers: Mapping[int, dict[str, Any]]) -> Iterator[Problem]:
    """Two waivers that can match one judgement: nobody could tell which of them holds."""
    for number, waiver in waivers.items():
        for first, other in waivers.items():
            if first == number:
                break
            if _overlap(waiver, other):
                yield Problem(
                    ("waivers", number),
                    "waiver given twice" if waiver == other else "conflicting waivers",
                    found=_what(waiver),
                    expected=f"one waiver for it; line {document.line(('waivers', first))} has "
                    f"one of {_what(other)}",
                    hint="keep one of the two",
                )
                break


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    same = all(one[name] == other[name] for name in ("scenario", "metric", "hardware"))
    probes = {waiver["probe"] for waiver in (one, other) if "probe" in waiver}
    return same and len(probes) < 2  # one without a probe is for all of them


def _what(waiver: Mapping[str, Any]) -> str:
    where = waiver.get("probe", "every probe")
    return f"{waiver['metric']} of {waiver['scenario']} on {waiver['hardware']}, {where}"
