"""TensorRT-LLM's LLM API: its YAML file, the model behind it, and what a checkpoint says.

The file is read as the played release reads it, from its recorded page. An engine's own Python is
asked for the JSON schema of the model before anything is started, and so is a mock's.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

from msgspec import UNSET

from perfgate.engines.definitions import KeyDefinition, Keys
from perfgate.rehearsal.options import GivenOptions, announce_page
from perfgate.rehearsal.playbook import Playbook, crash
from perfgate.rehearsal.recorded_pages import YAML, Page, read

MODULE = "tensorrt_llm.llmapi.llm_args"


class _Problem(NamedTuple):
    """What pydantic would say of one key.

    Attributes:
        place: the key and those above it.
        value: what was given.
        choices: what it may be; none: the key is unknown.
        model: the class that has no such key.
    """

    place: tuple[str, ...]
    value: Any
    choices: tuple[str, ...]
    model: str


def read_options(playbook: Playbook, given: GivenOptions) -> dict[str, Any]:
    """The options in the file that the command line names; none without a file.

    Ends the program as the release does on a key or choice that it does not know.
    """
    name = given.text("--extra_llm_api_options")
    if not name:
        return {}
    import yaml  # takes as long as all other imports together, and few programs need it

    path = Path(name)
    if not path.is_file():
        crash(f"FileNotFoundError: [Errno 2] No such file or directory: '{name}'")
    found = yaml.safe_load(path.read_text())
    if not isinstance(found, dict):
        crash(f"TypeError: argument of type '{type(found).__name__}' is not a mapping")
    recorded = playbook.releases[playbook.version][YAML]
    announce_page("the YAML file", playbook.version, recorded)
    page = read(recorded)
    unknown = page.unknown_keys or "ignored"
    problems = list(_problems(found, page.yaml_keys(), unknown, ()))
    if problems:
        _refuse(problems)
    return found


def _problems(
    tree: Mapping[str, Any], keys: Keys, unknown: str, place: tuple[str, ...], model: str = ""
) -> Iterator[_Problem]:
    aliases = {key.alias: key for key in keys.values() if key.alias}
    for name, value in tree.items():
        here = (*place, str(name))
        key = keys.get(name) or aliases.get(name)
        if key is None:
            if unknown == "refused":
                yield _Problem(here, value, (), model)
        elif isinstance(value, Mapping) and key.models:
            below = unknown if key.unknown is UNSET else key.unknown
            yield from _of_mapping(value, key, below, here)
        elif isinstance(value, str) and key.choices and not key.types and value not in key.choices:
            yield _Problem(here, value, key.choices, model)


def _of_mapping(
    value: Mapping[str, Any], key: KeyDefinition, unknown: str, place: tuple[str, ...]
) -> list[_Problem]:
    """Those with the class that fits best; which one is meant, ``decoding_type`` says."""
    tried = [
        list(_problems(value, keys, unknown, place, model)) for model, keys in key.models.items()
    ]
    meant = str(value.get("decoding_type", "")).replace("_", "").lower()
    if meant:
        for model, found in zip(key.models, tried, strict=True):
            if model.lower().startswith(meant):
                return found
    return min(tried, key=len)


def _refuse(problems: list[_Problem]) -> NoReturn:
    first = problems[0]
    if first.model == "PyTorchConfig":  # a dataclass, where all others are pydantic's
        name = first.place[-1]
        crash(f"TypeError: PyTorchConfig.__init__() got an unexpected keyword argument '{name}'")
    count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''}"
    lines = [f"pydantic_core._pydantic_core.ValidationError: {count} for TorchLlmArgs"]
    for problem in problems:
        told, kind = "Extra inputs are not permitted", "extra_forbidden"
        if problem.choices:
            *some, last = map(repr, problem.choices)
            listed = f"{', '.join(some)} or {last}" if some else last
            told, kind = f"Input should be {listed}", "literal_error"
        value = problem.value
        lines += [
            ".".join(problem.place),
            f"  {told} [type={kind}, input_value={value!r}, input_type={type(value).__name__}]",
            f"    For further information visit https://errors.pydantic.dev/2.11/v/{kind}",
        ]
    crash("\n".join(lines))


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
        "model_json_schema": staticmethod(lambda: schema),
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


def weight_quantization(folder: str) -> str | None:
    """Algorithm of the weights, as the checkpoint says; None: it does not."""
    return _quantization(folder).get("quant_algo")


def kv_cache_quantization(options: Mapping[str, Any], folder: str) -> str | None:
    """Type of the KV cache: as the YAML says, in any release's spelling, else the checkpoint.

    Args:
        options: the YAML file's content.
        folder: the model's; empty: there is none.
    """
    locations = (
        options.get("kv_cache_config") or {},
        options.get("pytorch_backend_config") or {},
        options,
    )
    for place in locations:
        for name in ("dtype", "kv_cache_dtype"):
            said = place.get(name)
            if isinstance(said, str) and said != "auto":
                return said.upper()
    return _quantization(folder).get("kv_cache_quant_algo")


def _quantization(folder: str) -> dict[str, str]:
    path = Path(folder) / "hf_quant_config.json"
    if not folder or not path.is_file():
        return {}
    found: dict[str, str] = json.loads(path.read_text()).get("quantization", {})
    return found
