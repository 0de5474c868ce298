"""Check plain values against scenario.schema.json and say in people's words what does not fit.

Most files are right, so the way through a right file is short: each section (`engine`, `limits`,
…) is only asked whether it is valid, and a section that occurred before is not asked again. Only a
file that fails is walked for all its errors.
"""

import difflib
import json
import marshal
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from perfgate.core.measurement import Json
from perfgate.core.paths import repository
from perfgate.scenarios.problem import Keys, Problem

# JSON Schema takes 64.0 for an integer and would let it through to fields that count things.
_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: type(value) is int
    ),
)

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
}
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


class ScenarioSchema:
    """The schema of scenario files, compiled once."""

    def __init__(self, schema: dict[str, Any]) -> None:
        scenario = schema["$defs"]["scenario"]
        self._file = schema
        self._whole = _Validator(schema)
        self._defaults = _Validator({"$ref": "#/$defs/defaults", "$defs": schema["$defs"]})
        self._complete = _Validator(schema["$defs"]["complete"])
        self._claims = _Validator(schema["properties"]["claims"] | {"$defs": schema["$defs"]})
        self._sections = {
            name: _Validator(section) for name, section in scenario["properties"].items()
        }
        self._right: set[bytes] = set()

    def problems(self, value: Json) -> list[Problem]:
        """All that is wrong with a file's value whose defaults are merged into its scenarios."""
        return [] if self._is_right(value) else self._explain(self._whole, value)

    def problems_of_defaults(self, value: Json) -> list[Problem]:
        """All that is wrong with a defaults block; required fields may be missing."""
        return self._explain(self._defaults, value, ("defaults",))

    def _is_right(self, value: Json) -> bool:
        return (
            isinstance(value, dict)
            and {"schema_version", "scenarios"} <= set(value)
            and set(value) <= {"schema_version", "scenarios", "claims"}
            and type(value["schema_version"]) is int
            and value["schema_version"] == 1
            and isinstance(value["scenarios"], list)
            and bool(value["scenarios"])
            and all(self._is_right_scenario(scenario) for scenario in value["scenarios"])
            and ("claims" not in value or self._claims.is_valid(value["claims"]))
        )

    def _is_right_scenario(self, value: Json) -> bool:
        return (
            isinstance(value, dict)
            and all(self._is_right_section(name, part) for name, part in value.items())
            and self._complete.is_valid(value)
        )

    def _is_right_section(self, name: str, value: Json) -> bool:
        # Version 2 of the format: the same bytes for equal values, whatever they share; and it
        # keeps 1, 1.0 and true apart, which == does not.
        key = marshal.dumps((name, value), 2)
        if key in self._right:
            return True
        if name not in self._sections or not self._sections[name].is_valid(value):
            return False
        self._right.add(key)
        return True

    def _explain(self, validator: Any, value: Json, at: Keys = ()) -> list[Problem]:
        found: dict[Keys, Problem] = {}  # one a place: the schema names type first, it says most
        for error in validator.iter_errors(value):
            for problem in self._translate(error, at):
                found.setdefault(problem.path, problem)
        return list(found.values())

    def _translate(self, error: ValidationError, at: Keys) -> Iterator[Problem]:
        path: Keys = (*at, *error.absolute_path)
        kind = str(error.validator)
        rule: Any = error.schema
        instance: Any = error.instance
        if kind == "additionalProperties":
            known = rule["properties"]
            for name in instance:
                if name not in known:
                    yield _unknown((*path, name), known)
        elif kind == "required":
            for name in rule["required"]:
                if name not in instance:
                    yield Problem((*path, name), "missing", expected=self._meaning((*path, name)))
        elif "propertyNames" in error.absolute_schema_path:
            yield Problem((*path, str(instance)), "malformed name", expected=rule["$comment"])
        elif kind in _EXPLANATIONS:
            hint = _hint(kind, instance, rule)
            yield Problem(path, _EXPLANATIONS[kind], expected=_expected(rule), hint=hint)
        elif kind == "not":
            yield Problem(path, "not allowed in defaults", hint="give each scenario its own")
        else:
            yield Problem(path, error.message)

    def _meaning(self, path: Keys) -> str:
        """The schema's description of the field at `path`."""
        rule: Any = self._file
        for part in path:
            while "$ref" in rule:
                rule = self._file["$defs"][rule["$ref"].rpartition("/")[2]]
            rule = rule["items"] if isinstance(part, int) else rule["properties"][part]
        return str(rule["description"])


_EXPLANATIONS = {
    "type": "wrong type",
    "enum": "not an allowed value",
    "const": "not an allowed value",
    "pattern": "malformed",
    "minLength": "empty",
    "minItems": "empty",
    "minimum": "out of range",
    "exclusiveMinimum": "out of range",
    "maximum": "out of range",
    "exclusiveMaximum": "out of range",
}


@cache
def scenario_schema(file: Path | None = None) -> ScenarioSchema:
    """The schema in `file`, by default the suite's own."""
    path = file or repository() / "scenarios" / "scenario.schema.json"
    return ScenarioSchema(json.loads(path.read_text(encoding="utf-8")))


def _unknown(path: Keys, known: Iterable[str]) -> Problem:
    expected = "one of " + ", ".join(known)
    return Problem(path, "unknown field", expected=expected, hint=_closest(path[-1], known))


def _hint(kind: str, value: object, rule: Mapping[str, Any]) -> str | None:
    if kind == "enum":
        return _closest(value, rule["enum"])
    if kind != "type":
        return None
    if rule["type"] == "string" and isinstance(value, bool | int | float):
        return "quote it"
    if isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if isinstance(value, str) and ("number" in rule["type"] or "integer" in rule["type"]):
        return _number_hint(value)
    return None


def _number_hint(text: str) -> str | None:
    """How to write a number that YAML takes for text: ``1e3``, ``7,680``, ``"8"``."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return f"write {int(value) if value.is_integer() else value}, without quotes"


def _closest(word: object, known: Iterable[str]) -> str | None:
    """A did-you-mean, for what only differs in a letter or in case."""
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(word).lower(), lower, n=1)
    return f"did you mean {lower[close[0]]}?" if close else None


def _expected(rule: Mapping[str, Any]) -> str:
    """What a rule of the schema allows, e.g. ``a whole number, at least 1``."""
    if "const" in rule:
        return str(rule["const"])
    if "enum" in rule:
        return "one of " + ", ".join(rule["enum"])
    types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    parts = [" or ".join(_TYPES[name] for name in types)]
    parts += [f"{words} {rule[bound]}" for bound, words in _BOUNDS.items() if bound in rule]
    if "$comment" in rule:
        parts.append(rule["$comment"])
    elif rule.get("minLength") or rule.get("minItems"):
        parts.append("not empty")
    return ", ".join(parts)
