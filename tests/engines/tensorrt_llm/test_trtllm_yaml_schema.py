"""JSON schemas of argument models become keys; what they do not say is not made up."""

from typing import Any

from msgspec import UNSET
from tables import each

from perfgate.engines.tensorrt_llm.yaml_schema import keys_of, refuses_unknown


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


def test_references_unions_and_enumerations_are_followed() -> None:
    defs = {
        "Config": {"properties": {"size": {"type": "integer"}}, "additionalProperties": False},
        "Mode": {"enum": ["on", "off"], "type": "string"},
    }
    schema = {"anyOf": [{"$ref": "#/$defs/Config"}, {"$ref": "#/$defs/Mode"}, {"type": "null"}]}
    found = read(schema, defs)
    assert (found.types, found.choices) == (("Config", "null"), ("on", "off"))
    assert found.models["Config"]["size"].types == ("int",)
    assert found.unknown == "refused"


def test_a_discriminated_union_has_all_its_models() -> None:
    tagged = {"properties": {"decoding_type": {"const": "MTP"}}}
    other = {"properties": {"decoding_type": {"const": "Eagle"}}}
    refs = [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]
    found = read({"oneOf": refs, "discriminator": {}}, {"A": tagged, "B": other})
    assert found.models["A"]["decoding_type"].choices == ("MTP",)
    assert set(found.models) == {"A", "B"}
    assert found.unknown == "ignored", "neither of them refuses"


def test_class_variables_tell_models_apart_where_the_schema_does_not() -> None:
    defs = {"A": {"properties": {"layers": {"type": "integer"}}}}
    found = read({"$ref": "#/$defs/A"}, defs, tags={"A": {"decoding_type": "MTP"}})
    assert found.models["A"]["decoding_type"].choices == ("MTP",)


def test_a_key_has_all_its_spellings() -> None:
    model = {
        "name": "Top",
        "schema": {"properties": {"_mpi": {"type": "string"}}},
        "spellings": {"Top": {"mpi": ["mpi", "_mpi"]}},
    }
    assert set(keys_of(model)) == {"mpi", "_mpi"}


def test_a_model_that_holds_itself_ends() -> None:
    defs = {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}}
    assert read({"$ref": "#/$defs/Node"}, defs).models["Node"]["next"].types == ("Node",)


def test_a_default_that_is_not_told_is_none() -> None:
    assert read({"type": "integer"}).default is UNSET
    assert read({"type": "integer", "default": None}).default is None


def test_only_a_closed_model_refuses() -> None:
    assert refuses_unknown({"additionalProperties": False})
    assert not refuses_unknown({"additionalProperties": True})
    assert not refuses_unknown({})
