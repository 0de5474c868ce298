"""Schema: a JSON Schema, and what does not fit it in people's words, for all files."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import Any

import jsonschema_rs

from perfgate.core.errors import InputError, did_you_mean
from perfgate.core.files.durable_files import read_json
from perfgate.core.measurement import Json
from perfgate.core.redaction import control_character_in, escaped
from perfgate.scenarios.yaml_document import MOST_ERRORS, Keys, Problem

# Type of JSON Schema → its name for people, and Python's types of such a value.
_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "string": ("text", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "object": ("a mapping", (dict,)),
    "array": ("a list", (list,)),
    "null": ("nothing", (type(None),)),
}
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
_EXPLANATIONS = {
    "type": "wrong type",
    "pattern": "malformed",
    **dict.fromkeys(("enum", "const"), "not an allowed value"),
    **dict.fromkeys(("minLength", "minItems", "minProperties"), "empty"),
    **dict.fromkeys(_BOUNDS, "out of range"),
}
_LONGEST_FOUND = 60  # characters of a value in a message


class _Type:
    """The rule of that name; 64.0 is no whole number, which JSON Schema would take it for."""

    def __init__(self, _: object, names: str | list[str], __: object) -> None:
        names = [names] if isinstance(names, str) else names
        self._kinds = tuple(chain.from_iterable(_TYPES[name][1] for name in names))

    def validate(self, value: object) -> None:
        if type(value) not in self._kinds:
            raise ValueError


@dataclass(frozen=True, eq=False)
class Schema:
    """A schema, compiled once.

    Attributes:
        rules: the schema.
        described: whether its descriptions say what is expected; else its rules do.
        one_line: whether every text, names too, is one line without control characters.
    """

    rules: dict[str, Any]
    described: bool = False
    one_line: bool = False

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        keywords: dict[str, type[Any]] = {"type": _Type}
        return jsonschema_rs.validator_for(self.rules, keywords=keywords, mask="the value")

    def problems(self, value: Json) -> list[Problem]:
        """All that is wrong with a file's value, one problem a place."""
        controls = with_control_characters(value) if self.one_line else ()
        found: dict[Keys, Problem] = {}
        for error in self._validator.iter_errors(value):
            for problem in self._translate(error):
                if error.schema_path[-1] == "type":  # of several at one place it says most
                    found[problem.path] = problem
                found.setdefault(problem.path, problem)
            if len(found) >= MOST_ERRORS:
                break
        found |= {problem.path: problem for problem in controls}
        return list(found.values())[:MOST_ERRORS]

    def require(self, file: Path, value: Json, hint: str) -> None:
        """Refuse the value of a JSON file that does not fit.

        Raises:
            InputError: what is wrong nearest to the file's top.
        """
        problems = self.problems(value)
        if problems:
            raise in_json(min(problems, key=lambda one: len(one.path)), file, value, hint)

    def _translate(self, error: jsonschema_rs.ValidationError) -> Iterator[Problem]:
        path: Keys = tuple(error.instance_path)
        *place, kind = error.schema_path
        whole: Any = self.rules
        rule = reduce(getitem, place, whole)
        instance: Any = error.instance
        if kind == "additionalProperties":
            known = list(rule["properties"])
            expected = "one of " + ", ".join(known)
            for name in [name for name in instance if name not in known]:
                hint = did_you_mean(name, known)
                yield Problem((*path, name), "unknown field", expected=expected, hint=hint)
        elif kind == "required":
            for name in rule["required"]:
                if name not in instance:
                    yield Problem((*path, name), "missing", expected=self._meaning((*path, name)))
        elif isinstance(error.kind, jsonschema_rs.ValidationErrorKind.PropertyNames):
            name = str(error.kind.error.instance)
            yield Problem((*path, name), "malformed name", expected=rule["$comment"])
        elif kind in _EXPLANATIONS:
            described = rule.get("description") if self.described else None
            expected, hint = described or _expected(rule), _hint(kind, instance, rule)
            yield Problem(path, _EXPLANATIONS[kind], expected=expected, hint=hint)
        elif rule.get(kind) is False:
            yield Problem(path, "not allowed here")
        elif kind == "not":
            yield Problem(path, "not allowed in defaults", hint="give each scenario its own")
        else:
            yield Problem(path, error.message)

    def _meaning(self, path: Keys) -> str | None:
        """The schema's description of the field at `path`."""
        rule: Any = self.rules
        for part in path:
            while "$ref" in rule:
                rule = self.rules["$defs"][rule["$ref"].rpartition("/")[2]]
            below = {"items": {}, "properties": {}} | rule
            rule = below["items"] if isinstance(part, int) else below["properties"].get(part, {})
        meaning: str | None = rule.get("description")
        return meaning


@cache
def read_schema(file: Path, **options: bool) -> Schema:
    """The schema in `file`; `options` as `Schema` has them.

    Raises:
        InputError: it is missing or no JSON.
    """
    return Schema(read_json(file, what="schema"), **options)


def with_control_characters(value: Json, at: Keys = ()) -> Iterator[Problem]:
    """The texts of a file that have control characters, names of fields among them."""
    if isinstance(value, str) and (found := control_character_in(value)) is not None:
        yield Problem(at, "a control character", found, "one line of printable text")
    elif isinstance(value, dict):
        for name, part in value.items():
            if (found := control_character_in(str(name))) is not None:
                path = (*at, escaped(str(name)))
                yield Problem(path, "a control character in a name", found, "a printable name")
            else:
                yield from with_control_characters(part, (*at, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from with_control_characters(part, (*at, number))


def in_json(problem: Problem, file: Path, value: Json, hint: str | None = None) -> InputError:
    """The problem of a JSON file that holds `value`, with what is found there.

    Args:
        problem: what is wrong.
        file: the file.
        value: all that it holds.
        hint: how to fix any such file; None: as the problem says.
    """
    fixed = problem if hint is None else replace(problem, hint=hint)
    found: Any = value
    try:
        for part in problem.path:
            found = found[part]
    except LookupError:
        return fixed.error(file)
    shown = json.dumps(found, ensure_ascii=False)
    is_long = len(shown) > _LONGEST_FOUND
    return fixed.error(file, found=f"{shown[:_LONGEST_FOUND]}…" if is_long else shown)


def _hint(kind: str, value: object, rule: Mapping[str, Any]) -> str | None:
    if kind == "enum":
        return did_you_mean(str(value), map(str, rule["enum"]))
    if kind != "type":
        return None
    if "string" in rule["type"] and isinstance(value, bool | int | float):
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


def _expected(rule: Mapping[str, Any]) -> str:
    """What a rule of the schema allows, e.g. ``a whole number, at least 1``."""
    if "const" in rule:
        return str(rule["const"])
    if "enum" in rule:
        return "one of " + ", ".join(map(str, rule["enum"]))
    types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    parts = [" or ".join(_TYPES[name][0] for name in types)]
    parts += [f"{words} {rule[bound]}" for bound, words in _BOUNDS.items() if bound in rule]
    if "$comment" in rule:
        parts.append(rule["$comment"])
    elif rule.get("minLength") or rule.get("minItems") or rule.get("minProperties"):
        parts.append("not empty")
    return ", ".join(parts)
