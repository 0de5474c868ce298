"""Whether a value fits is what jsonschema, our reference here, says of it."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from perfgate.scenarios.schema_fit import UnknownRuleError, fits

RULES = (
    *({"type": name} for name in ("string", "number", "boolean", "object", "array", "null")),
    {"type": ["string", "null"]},
    {"enum": ["a", 1, False]},
    {"const": 1},
    {"pattern": "^a"},
    *({name: 1} for name in ("minLength", "minItems", "minProperties", "minimum")),
    *({name: 1} for name in ("maxLength", "maxItems", "maxProperties", "maximum")),
    *({name: 1} for name in ("exclusiveMinimum", "exclusiveMaximum")),
    {"items": {"type": "string"}},
    {"required": ["a"]},
    {"properties": {"a": {"const": 1}}},
    {"properties": {"a": True}, "additionalProperties": False},
    {"properties": {"a": False}, "additionalProperties": {"type": "array"}},
    {"propertyNames": {"pattern": "a"}},
    {"allOf": [{"minLength": 2}, {"pattern": "b"}]},
    {"anyOf": [{"type": "array"}, {"pattern": "b"}]},
    {"not": {"required": ["b"]}},
    {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 0}},
    {"if": {"type": "object"}, "else": False},
    {"$ref": "#/$defs/x", "$defs": {"x": {"minProperties": 1, "maxItems": 1}}},
)
VALUES = (
    *(None, True, False, 0, 1, 2, 1.0, 1.5, "", "a", "ab", "b", [], [1], ["a", "a"], [[1], True]),
    *({}, {"a": 1}, {"a": True}, {"b": []}, {"b": 1}, {"a": 1, "b": [2]}),
)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_each_rule_is_that_of_json_schema(rule: dict[str, Any]) -> None:
    reference = Draft202012Validator(rule)
    refused = [value for value in VALUES if not fits(rule, value, rule)]
    assert refused == [value for value in VALUES if not reference.is_valid(value)]
    assert refused, "a value that breaks the rule is among them"


@pytest.mark.parametrize("rule", [{"const": [1]}, {"uniqueItems": True}, {"$ref": "#"}], ids=str)
def test_what_only_jsonschema_knows_is_left_to_it(rule: dict[str, Any]) -> None:
    inside = {"not": {"properties": {"a": rule}}}
    with pytest.raises(UnknownRuleError):
        fits(inside, {"a": [1]}, inside)


@pytest.mark.parametrize("value", [64.0, True, "a\n"], ids=repr)
def test_what_json_schema_would_let_through_does_not_fit(value: object) -> None:
    rule = {"type": ["integer", "string"], "pattern": "^a$"}
    assert not fits(rule, value, rule)
