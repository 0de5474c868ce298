"""Run by the engine's own Python: what its LLM-API model and its click programs say of themselves.

Never imported by perfgate: its text is given to ``python -c``, so it stands alone, and nothing but
the line between the marks is read of what it prints.
"""

import dataclasses
import importlib
import json
import os
import sys
import typing

_MARK = "perfgate-build-answer"
_KINDS = {
    "integer": "integer",
    "integer range": "integer",
    "float": "number",
    "float range": "number",
    "boolean": "boolean",
}


def answer() -> dict[str, typing.Any]:
    """All that could be found out; what could not is named with the reason."""
    told: dict[str, typing.Any] = {"python": sys.version.split()[0], "not_told": {}}
    for name, ask in (("model", _model), ("programs", _programs)):
        try:
            told[name] = ask()
        except BaseException as error:  # importing an engine can even exit
            told["not_told"][name] = f"{type(error).__name__}: {error}"[:500]
    return told


def _model() -> dict[str, typing.Any]:
    """The JSON schema of the model behind the YAML file, and what the schema does not say."""
    arguments = importlib.import_module("tensorrt_llm.llmapi.llm_args")
    model = getattr(arguments, "TorchLlmArgs", None) or arguments.LlmArgs
    classes = {one.__name__: one for one in _reached(model, [])}
    if hasattr(model, "model_json_schema"):
        try:
            schema, by = model.model_json_schema(), "model_json_schema"
        except Exception as error:  # a type that no schema has
            schema, by = _names(model), f"names alone: {type(error).__name__}: {error}"[:500]
    else:
        schema, by = _names(model), "names alone: it has no model_json_schema"
    return {
        "name": model.__name__,
        "by": by,
        "schema": schema,
        "spellings": {name: _spellings(one) for name, one in classes.items()},
        "tags": {name: _tags(one) for name, one in classes.items()},
        "older": _older(model),
    }


def _older(model: typing.Any) -> dict[str, typing.Any]:
    """Mappings that older releases take outside of the model: mapping → names of its keys."""
    extra = getattr(model, "model_config", {}).get("extra", "ignore")
    if extra == "forbid":
        return {}
    try:
        config = importlib.import_module("tensorrt_llm._torch.pyexecutor.config").PyTorchConfig
    except (ImportError, AttributeError):
        return {}
    return {"pytorch_backend_config": sorted(_annotations(config))}


def _reached(model: typing.Any, seen: list[type]) -> list[type]:
    """The model and all models and dataclasses below it."""
    if model in seen or not (hasattr(model, "model_fields") or dataclasses.is_dataclass(model)):
        return seen
    seen.append(model)
    for annotation in _annotations(model).values():
        for one in _classes_in(annotation):
            _reached(one, seen)
    return seen


def _annotations(model: typing.Any) -> dict[str, typing.Any]:
    if hasattr(model, "model_fields"):
        return {name: field.annotation for name, field in model.model_fields.items()}
    return {field.name: field.type for field in dataclasses.fields(model)}


def _classes_in(annotation: object) -> list[type]:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return [annotation]
    return [one for part in typing.get_args(annotation) for one in _classes_in(part)]


def _names(model: typing.Any) -> dict[str, typing.Any]:
    """A schema with the keys' names and nesting, without their types."""
    below: dict[str, dict[str, typing.Any]] = {}
    for one in _reached(model, []):
        properties = {}
        for name, annotation in _annotations(one).items():
            inner = [c.__name__ for c in _classes_in(annotation) if c in _reached(model, [])]
            properties[name] = {"anyOf": [{"$ref": f"#/$defs/{n}"} for n in inner] + [{}]}
        closed = getattr(one, "model_config", {"extra": "forbid"}).get("extra") == "forbid"
        below[one.__name__] = {"properties": properties}
        if closed:
            below[one.__name__]["additionalProperties"] = False
    return {**below[model.__name__], "$defs": below}


def _spellings(model: typing.Any) -> dict[str, typing.Any]:
    """Key of the schema → all spellings of it, for those that have several."""
    found = {}
    for name, field in getattr(model, "model_fields", {}).items():
        alias = getattr(field, "validation_alias", None) or getattr(field, "alias", None)
        if alias is None:
            continue
        choices = getattr(alias, "choices", [alias])
        found[name] = [name, *(one for one in choices if isinstance(one, str))]
    return found


def _tags(model: typing.Any) -> dict[str, typing.Any]:
    """Class variables that are texts: they tell which model of several a mapping is."""
    names = getattr(model, "__class_vars__", ())
    return {name: text for name in names if isinstance(text := getattr(model, name, None), str)}


def _programs() -> dict[str, typing.Any]:
    """Program with subcommands → its click options by name, of what shows no help alone."""
    bench = importlib.import_module("tensorrt_llm.commands.bench").main
    found = {}
    for name in ("prepare-dataset",):
        group = bench.commands.get(name)
        for generator, command in getattr(group, "commands", {}).items():
            found[f"trtllm-bench {name} {generator}"] = _options(command)
    try:
        tasks = importlib.import_module("tensorrt_llm.commands.eval").main.commands
    except (ImportError, AttributeError):
        tasks = {}
    for name, command in tasks.items():
        found[f"trtllm-eval {name}"] = _options(command)
    return found


def _options(command: typing.Any) -> dict[str, typing.Any]:
    return {one.opts[0].lstrip("-"): _option(one) for one in command.params}


def _option(parameter: typing.Any) -> dict[str, typing.Any]:
    kind = _KINDS.get(str(parameter.type.name), "text")
    if type(parameter).__name__ == "Argument":
        kind = "argument"
    elif getattr(parameter, "is_flag", False):
        kind = "flag"
    choices = getattr(parameter.type, "choices", ())
    return {
        "options": list(parameter.opts),
        "kind": kind,
        "off": list(parameter.secondary_opts),
        "choices": [str(getattr(one, "name", one)) for one in choices],
        "required": bool(parameter.required),
        "many": parameter.nargs not in (0, 1),
        "repeated": bool(parameter.multiple),
    }


if __name__ == "__main__":
    line = json.dumps(answer(), default=lambda _: None)
    print(f"\n<{_MARK}>{line}</{_MARK}>", flush=True)
    sys.stderr.flush()
    os._exit(0)  # what the import started, MPI among it, must not keep the answer waiting
