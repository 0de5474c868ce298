"""Which TensorRT-LLM is installed, and does what perfgate renders fit it? It is asked itself.

A release table can be wrong, or a build can stand between two releases: that is found out here,
before any GPU time, not by a program that ends with status 2 after the others were started.

Each program is asked with ``--help``; one short call of the engine's own Python tells the keys of
the YAML file and what no help page shows. Each is asked once a session. The engine's own schemas
name types in words of their own (``Optional[int]``), so a type that JSON Schema does not have says
nothing; what is told is what the schema's other parts tell.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from packaging.version import InvalidVersion, Version

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.program_query import git_answer
from perfgate.core.programs.programs import TENSORRT_LLM_PYTHON, TRTLLM_BENCH, Program
from perfgate.core.redaction import redact
from perfgate.engines.base import EngineBuild, OptionsAnswer
from perfgate.engines.definitions import YAML, Definitions, KeyDefinition, Keys, OptionDefinition
from perfgate.engines.installed_programs import (
    LIMIT_S,
    answer,
    ask_pages,
    marked_answer,
    require_fit,
)
from perfgate.engines.tensorrt_llm.checkout import VERSION_CODE
from perfgate.engines.tensorrt_llm.definition_check import calls, mismatches, moved_defaults
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE
from perfgate.engines.tensorrt_llm.table import FACTS, TABLES

# The release containers set both (docker/Dockerfile.multi).
VERSION_VARIABLE = "TRT_LLM_VERSION"
COMMIT_VARIABLE = "TRT_LLM_GIT_COMMIT"

_VERSION = r"v?(\d+\.\d+(?:\.\d+)*(?:rc\d+|a\d+|b\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[\w.]+)?)"
# The banner that every import of the package prints; or the answer to --version.
_BANNER = re.compile(r"TensorRT[- ]LLM version:?\s*" + _VERSION + r"\b", re.IGNORECASE)
_ANSWER = re.compile(
    r"^\s*(?:trtllm-\w+\s*,?\s*|tensorrt[-_]llm\s*)?(?:version:?\s*)?" + _VERSION + r"\s*$",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MARK = "perfgate-build-answer"
_QUESTION = Path(__file__).with_name("build_answer.py")  # what the engine's Python is given
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


def verify(build: EngineBuild, commands: Sequence[Command], locations: Locations) -> OptionsAnswer:
    """See `Engine.verify`: the model behind the YAML file tells its defaults, too.

    Raises:
        InputError: an option, choice or key that the build lacks, or a program that lists no
            options.
        RunError: the container that the programs are in cannot be had.
    """
    definitions = _installed_definitions(build, commands, locations)
    marked = require_fit(
        build,
        FACTS.title,
        commands,
        lambda command: mismatches(command, definitions, locations),
        TABLES.told_by,
    )
    has_file = any(FILE in command.files for command in commands)
    moved = moved_defaults(definitions.keys or {}) if has_file else ()
    return OptionsAnswer(definitions.notes, tuple(redact(text) for text in moved), marked)


def _installed_definitions(
    build: EngineBuild, commands: Sequence[Command], locations: Locations
) -> Definitions:
    """What the installed build says that it takes, of all that `commands` need."""
    found = {at: calls(command.argv, locations) for at, command in enumerate(commands)}
    has_file = any(found[at] and FILE in command.files for at, command in enumerate(commands))
    pages, unasked = ask_pages((call for some in found.values() for call in some), locations)
    notes: list[str] = []
    told = _told(locations) if has_file or unasked else {}
    why: Mapping[str, str] = told.get("not_told", {})
    programs = told.get("programs", {})
    for name in unasked:
        if name in programs:
            pages[name] = msgspec.convert(programs[name], dict[str, OptionDefinition])
        else:
            reason = why.get("programs") or "only a model, or its tokenizer, makes it show them"
            notes.append(f"options of {name}: not asked: {reason}")
    model: Mapping[str, Any] | None = told.get("model")
    if has_file and model is None:
        notes.append(f"keys of the {YAML}: not asked: {why.get('model', 'no answer')}")
    elif has_file and model is not None and model["by"] != "model_json_schema":
        notes.append(f"types of the keys of the {YAML}: not asked: {model['by']}")
    return Definitions(
        engine=build.name,
        version=build.version,
        source="the installed build",
        whole=True,
        programs=pages,
        keys=None if model is None else {**keys_of(model), **_older(model)},
        unknown_keys=None
        if model is None
        else ("refused" if _refuses_unknown(model["schema"]) else "ignored"),
        exact_types=True,
        notes=tuple(redact(note) for note in notes),
    )


def _told(locations: Locations) -> Mapping[str, Any]:
    """What `build_answer` says in the engine's Python; only ``not_told`` where it says nothing."""

    def nothing(why: str) -> Mapping[str, Any]:
        return {"not_told": {"model": why, "programs": why}}

    try:
        python = locations.find(TENSORRT_LLM_PYTHON)
    except (MissingProgram, InputError) as error:
        return nothing(" ".join(str(error).split()))
    try:
        said = answer((*python, "-c", _QUESTION.read_text("utf-8")), locations)
        return marked_answer(said, _MARK)
    except ValueError as error:
        return nothing(str(error))


def _older(model: Mapping[str, Any]) -> Keys:
    """Mappings that older releases take outside of the model, with the names of their keys."""
    return {
        name: KeyDefinition(
            models={name: {key: KeyDefinition() for key in keys}}, unknown="refused"
        )
        for name, keys in model.get("older", {}).items()
    }


# The model's JSON schema. -----------------------------------------------------------------------


def keys_of(model: Json) -> Keys:
    """The keys that the model takes at its top, with all below them.

    Args:
        model: what `build_answer` tells of it.
    """
    return _Schema(model).keys(model["schema"], str(model.get("name", "")), _DEEPEST)


def _refuses_unknown(schema: Json) -> bool:
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
                closed.append(_refuses_unknown(one))
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
            status=_status(schema),
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


def _status(schema: Json) -> str:
    """How the model marks a key: by a ``status`` (`Field` of `llm_args.py`), or by pydantic's."""
    told = "deprecated" if schema.get("deprecated") else schema.get("status")
    return str(told) if told in ("deprecated", "prototype") else ""


def _type_of(word: object) -> str:
    names = {bool: "bool", int: "int", float: "float", type(None): "null"}
    return names.get(type(word), _ANY)


# Which release it is. -----------------------------------------------------------------------------


def installed(locations: Locations) -> EngineBuild:
    """The TensorRT-LLM that `trtllm-bench` belongs to.

    The version is what `trtllm-bench --version` prints, else the package's metadata as its
    interpreter sees them, else ``TRT_LLM_VERSION``. The commit is ``TRT_LLM_GIT_COMMIT``, else that
    of the checkout which `PERFGATE_TENSORRT_LLM_SOURCE` names, else the version stands for it.
    In a container all is asked there; the checkout, which is here, then tells nothing of it, nor of
    a build that is not this environment's.

    Raises:
        MissingProgram: nothing tells a version.
        InputError: an environment variable names no program or folder.
        RunError: the container cannot be had.
    """
    version = (
        version_in(_printed(locations, TRTLLM_BENCH, "--version"))
        or version_in(_printed(locations, TENSORRT_LLM_PYTHON, "-c", VERSION_CODE))
        or version_in(_variable(locations, VERSION_VARIABLE))
    )
    if version is None:
        raise MissingProgram(
            f"TensorRT-LLM is not installed: neither {TRTLLM_BENCH.executable} nor the package "
            f"tensorrt_llm reports a version, and {VERSION_VARIABLE} is not set",
            hint="run inside its release container, name its programs in "
            f"{TRTLLM_BENCH.variable} and {TENSORRT_LLM_PYTHON.variable}, or give "
            "--engine-version",
        )
    return EngineBuild("tensorrt-llm", version, _commit(locations) or version)


def version_in(text: str) -> str | None:
    """The version that a program's output tells, however many log lines stand around it."""
    found = _BANNER.search(text)
    lines = (_ANSWER.match(line) for line in text.splitlines())
    for match in (found, *lines):
        if match is None:
            continue
        try:
            return str(Version(match[1]))
        except InvalidVersion:
            continue
    return None


def _printed(locations: Locations, program: Program, *arguments: str) -> str:
    """What the program prints; nothing where it is not installed or fails."""
    try:
        prefix = locations.find(program)
    except MissingProgram:
        return ""
    return answer((*prefix, *arguments), locations)


def _variable(locations: Locations, name: str) -> str:
    """An environment variable where the engine is; empty where it is not set.

    The environment here is that of the build under test, and tells nothing of another one.
    """
    if locations.inside is None:
        return "" if locations.build is not None else os.environ.get(name, "")
    found = locations.ask(("printenv", name), LIMIT_S, of_engine=True)
    return found.stdout if found.is_good else ""


def _commit(locations: Locations) -> str | None:
    told = _variable(locations, COMMIT_VARIABLE).strip().lower()
    if _COMMIT.fullmatch(told):
        return told
    if locations.source is None or locations.inside or locations.build:
        return None
    head = git_answer(locations.source, "rev-parse", "HEAD", seconds=LIMIT_S).stdout.strip()
    return head if _COMMIT.fullmatch(head) else None
