"""A mock program for the model behind the YAML file: it tells the JSON schema of its recorded page.

An engine's own Python is asked for that schema before anything is started, and so is a mock's.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from msgspec import UNSET

from perfgate.engines.definitions import KeyDefinition, Keys
from perfgate.rehearsal.recorded_pages import Page

MODULE = "tensorrt_llm.llmapi.llm_args"


def model_of(page: Page) -> type:
    """A class that can be asked like pydantic's models: fields, settings, JSON schema."""
    keys = page.yaml_keys()
    refused = page.unknown_keys == "refused"
    fields = {
        name: SimpleNamespace(annotation=object, alias=key.alias, validation_alias=None)
        for name, key in keys.items()
    }
    defs: dict[str, Any] = {}
    schema = {**_object(keys, defs, refused=refused), "$defs": defs}
    members = {
        "model_config": {"extra": "forbid" if refused else "allow"},
        "model_fields": fields,
        "model_json_schema": classmethod(lambda cls: schema),  # noqa: ARG005
    }
    return type("TorchLlmArgs", (), members)


def _object(keys: Keys, defs: dict[str, Any], *, refused: bool) -> dict[str, Any]:
    properties = {name: _property(key, defs, refused=refused) for name, key in keys.items()}
    return {"type": "object", "properties": properties, "additionalProperties": not refused}


def _property(key: KeyDefinition, defs: dict[str, Any], *, refused: bool) -> Mapping[str, Any]:
    below = refused if key.unknown is UNSET else key.unknown == "refused"
    for name, model in key.models.items():
        defs[name] = _object(model, defs, refused=below)
    several: list[dict[str, Any]] = [{"$ref": f"#/$defs/{name}"} for name in key.models]
    # A page's types do not tell a list from what is in it, nor whether null is taken.
    several += [{}] if any(one not in key.models for one in key.types) else [{"type": "null"}]
    several += [{"enum": list(key.choices)}] if key.choices else []
    default = {} if key.default is UNSET else {"default": key.default}
    return {"anyOf": several, **default}
