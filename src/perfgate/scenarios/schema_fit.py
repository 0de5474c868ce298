"""Schema fit: whether a value fits a JSON Schema, without what is wrong: nearly every value fits.

`schema` has jsonschema look at the others, which takes a hundred times as long, and to import.
"""

import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any


class UnknownRuleError(Exception):
    """The schema, or the value, has what only jsonschema knows."""


def fits(rule: Any, value: Any, whole: Mapping[str, Any]) -> bool:
    """Whether `value` fits the rule, as `schema.Schema` would find it.

    Args:
        rule: a schema, or a part of one.
        value: plain.
        whole: the schema that the rule is part of.

    Raises:
        UnknownRuleError: that cannot be told here.
    """
    if isinstance(rule, bool):
        return rule
    for keyword, argument in rule.items():
        if keyword in _SAY_NOTHING:
            continue
        if keyword not in _KEYWORDS:
            raise UnknownRuleError(keyword)
        kind, check = _KEYWORDS[keyword]
        if isinstance(value, kind) and not check(argument, value, rule, whole):
            return False
    return True


@cache
def pattern(text: str) -> re.Pattern[str]:
    """A pattern of a schema, whose ``$`` is the end of the text.

    In Python it is also the place before a last newline.
    """
    return re.compile(rf"{text[:-1]}\Z" if text.endswith("$") else text)


def is_integer(value: object) -> bool:
    """Whether it is whole; JSON Schema would let 64.0 through to fields that count things."""
    return type(value) is int


def _type(names: str | list[str], value: Any, _: Any, __: Any) -> bool:
    if isinstance(names, str):
        return _TYPES[names](value)
    return any(_TYPES[name](value) for name in names)


def _enum(allowed: list[Any], value: Any, _: Any, __: Any) -> bool:
    if any(isinstance(one, dict | list) for one in allowed):
        raise UnknownRuleError("a collection that another must equal")
    is_truth = isinstance(value, bool)  # True == 1
    return any(one == value and isinstance(one, bool) == is_truth for one in allowed)


def _properties(rules: Mapping[str, Any], value: Any, _: Any, whole: Any) -> bool:
    return all(fits(rules[name], part, whole) for name, part in value.items() if name in rules)


def _additional(others: Any, value: Any, rule: Any, whole: Any) -> bool:
    known = rule.get("properties", ())
    return all(name in known or fits(others, part, whole) for name, part in value.items())


def _reference(place: str, value: Any, _: Any, whole: Any) -> bool:
    _, _, name = place.partition("#/$defs/")
    if name not in whole.get("$defs", ()):
        raise UnknownRuleError(place)
    return fits(whole["$defs"][name], value, whole)


def _if(condition: Any, value: Any, rule: Any, whole: Any) -> bool:
    branch = "then" if fits(condition, value, whole) else "else"
    return fits(rule.get(branch, True), value, whole)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bound(is_outside: Callable[[Any, Any], bool]) -> tuple[type, "_Check"]:
    return object, lambda bound, value, *_: not (_is_number(value) and is_outside(value, bound))


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": is_integer,
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}
_SAY_NOTHING = {"$schema", "$defs", "$comment", "title", "description", "then", "else"}

_Check = Callable[[Any, Any, Any, Any], bool]
# Keyword → the values that it speaks of, and whether one fits: of the keyword's argument, the
# value, the rule around it, and the whole schema.
_KEYWORDS: Mapping[str, tuple[type, _Check]] = {
    "type": (object, _type),
    "enum": (object, _enum),
    "const": (object, lambda only, value, rule, whole: _enum([only], value, rule, whole)),
    "$ref": (object, _reference),
    "allOf": (object, lambda all_, value, _, whole: all(fits(one, value, whole) for one in all_)),
    "anyOf": (object, lambda any_, value, _, whole: any(fits(one, value, whole) for one in any_)),
    "not": (object, lambda one, value, _, whole: not fits(one, value, whole)),
    "if": (object, _if),
    "pattern": (str, lambda text, value, *_: pattern(text).search(value) is not None),
    "minLength": (str, lambda least, value, *_: len(value) >= least),
    "maxLength": (str, lambda most, value, *_: len(value) <= most),
    "minItems": (list, lambda least, value, *_: len(value) >= least),
    "maxItems": (list, lambda most, value, *_: len(value) <= most),
    "items": (list, lambda one, value, _, whole: all(fits(one, part, whole) for part in value)),
    "minProperties": (dict, lambda least, value, *_: len(value) >= least),
    "maxProperties": (dict, lambda most, value, *_: len(value) <= most),
    "required": (dict, lambda names, value, *_: all(name in value for name in names)),
    "properties": (dict, _properties),
    "additionalProperties": (dict, _additional),
    "propertyNames": (dict, lambda one, value, _, whole: all(fits(one, x, whole) for x in value)),
    "minimum": _bound(operator.lt),
    "maximum": _bound(operator.gt),
    "exclusiveMinimum": _bound(operator.le),
    "exclusiveMaximum": _bound(operator.ge),
}
