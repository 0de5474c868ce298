"""JSON schemas of argument models become keys; what they do not say is not made up."""

from typing import Any

from msgspec import UNSET
from tables import each

from perfgate.engines.tensorrt_llm.installed_options import keys_of


def read(schema: dict[str, Any], defs: dict[str, Any] | None = None, **more: Any) -> Any:
    whole = {"properties": {"key": schema}, "$defs": defs or {}}
    return keys_of({"name": "Top", "schema": whole, **more})["key"]


@each(
    ("schema", "types", "choices"),
    [
        ({"type": "integer", "default": 1}, ("int",), ()),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, ("float", "null"), ()),
        ({"type": ["string", "null"]}, ("str", "null"), ()),
        ({"enum": ["a", "b"], "type": "string"}, (), ("a", "b")),
        ({"const": "MTP", "type": "string"}, (), ("MTP",)),
        ({"enum": [0, 1]}, ("int",), ()),
        ({"items": {"type": "integer"}, "type": "array"}, ("list",), ()),
        ({"additionalProperties": {"type": "string"}, "type": "object"}, ("dict",), ()),
        ({"type": "Optional[QuantConfig]"}, ("any",), ()),
        ({"enum": ["auto", "slow"], "type": "Literal['auto', 'slow']"}, (), ("auto", "slow")),
        ({}, ("any",), ()),
        ({"$ref": "#/$defs/Gone"}, ("any",), ()),
    ],
    ids=str,
)
def test_a_key(schema: dict[str, Any], types: tuple[str, ...], choices: tuple[str, ...]) -> None:
    found = read(schema)
    assert (found.types, found.choices) == (types, choices)


def test_a_model_that_holds_itself_ends() -> None:
    defs = {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}}
    assert read({"$ref": "#/$defs/Node"}, defs).models["Node"]["next"].types == ("Node",)


def test_references_unions_enumerations_and_tags_are_followed() -> None:
    closed = {"properties": {"size": {"type": "integer"}}, "additionalProperties": False}
    defs = {"A": closed, "Mode": {"enum": ["on", "off"], "type": "string"}}
    schema = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/Mode"}, {"type": "null"}]}
    found = read(schema, defs, tags={"A": {"decoding_type": "MTP"}})
    assert (found.types, found.choices, found.unknown) == (("A", "null"), ("on", "off"), "refused")
    assert found.models["A"]["size"].types == ("int",)
    assert found.models["A"]["decoding_type"].choices == ("MTP",)
    both = {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "discriminator": {}}
    found = read(both, {**defs, "B": {"properties": {"x": {}}}})
    assert (set(found.models), found.unknown) == ({"A", "B"}, "ignored")


def test_spellings_and_defaults_are_those_that_are_told() -> None:
    schema = {"properties": {"_mpi": {"type": "string"}, "n": {"default": None}}}
    found = keys_of(
        {"name": "Top", "schema": schema, "spellings": {"Top": {"mpi": ["mpi", "_mpi"]}}}
    )
    assert set(found) == {"mpi", "_mpi", "n"}
    assert (found["mpi"].default, found["n"].default) == (UNSET, None)
