"""The JSON schema of TensorRT-LLM's argument model as definitions of YAML keys.

The engine's own schemas name types in words of their own (``Optional[int]``), so a type that JSON
Schema does not have says nothing; what is told is what the schema's other parts tell.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET

from perfgate.engines.definitions import KeyDefinition, Keys

_TYPES = {
    "integer": "int",
    "number": "float",
    "string": "str",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "null",
}
_ANY = "any"
_DEEPEST = 12  # mappings below each other; a schema can be recursive

Json = Mapping[str, Any]


def keys_of(model: Json) -> Keys:
    """The keys that the model takes at its top, with all below them.

    Args:
        model: what `build_answer` tells of it.
    """
    return _Schema(model).keys(model["schema"], str(model.get("name", "")), _DEEPEST)


def refuses_unknown(schema: Json) -> bool:
    """Whether a key that the schema lacks is an error; else it is dropped without a word."""
    return schema.get("additionalProperties") is False


class _Schema:
    """A schema whose references can be followed."""

    def __init__(self, model: Json) -> None:
        self._defs: Json = model["schema"].get("$defs", {})
        self._spellings: Json = model.get("spellings", {})
        self._tags: Json = model.get("tags", {})

    def keys(self, schema: Json, name: str, depth: int) -> dict[str, KeyDefinition]:
        found = {key: self._key(one, depth) for key, one in schema.get("properties", {}).items()}
        for spellings in self._spellings.get(name, {}).values():
            known = next((found[one] for one in spellings if one in found), None)
            if known is not None:
                found.update(dict.fromkeys(spellings, known))
        for tag, text in self._tags.get(name, {}).items():
            found.setdefault(tag, KeyDefinition(choices=(text,)))
        return found

    def _key(self, schema: Json, depth: int) -> KeyDefinition:
        types: list[str] = []
        choices: list[str] = []
        models: dict[str, Keys] = {}
        closed = []
        for name, one in self._alternatives(schema):
            if "properties" in one:
                types.append(name or "dict")
                closed.append(refuses_unknown(one))
                models[name or "dict"] = self.keys(one, name, depth - 1) if depth else {}
            elif "enum" in one or "const" in one:
                words = one.get("enum", [one.get("const")])
                choices += [word for word in words if isinstance(word, str)]
                types += [_type_of(word) for word in words if not isinstance(word, str)]
            else:
                types.append(_TYPES.get(str(one.get("type")), _ANY))
        return KeyDefinition(
            types=tuple(dict.fromkeys(types)),
            choices=tuple(dict.fromkeys(choices)),
            default=schema.get("default", UNSET),
            models={name: keys for name, keys in models.items() if keys},
            unknown=("refused" if all(closed) else "ignored") if closed else UNSET,
        )

    def _alternatives(self, schema: Json) -> Iterator[tuple[str, Json]]:
        """What a value may be, each with its class's name; references are followed."""
        several = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if several:
            for one in several:
                yield from self._alternatives(one)
        elif "$ref" in schema:
            name = str(schema["$ref"]).rpartition("/")[2]
            target = self._defs.get(name)
            if not isinstance(target, Mapping):
                yield name, {}
            elif "properties" in target or "enum" in target:
                yield name, target
            else:
                yield from self._alternatives(target)
        elif isinstance(schema.get("type"), list):
            for one in schema["type"]:
                yield "", {"type": one}
        else:
            yield "", schema


def _type_of(word: object) -> str:
    names = {bool: "bool", int: "int", float: "float", type(None): "null"}
    return names.get(type(word), _ANY)
