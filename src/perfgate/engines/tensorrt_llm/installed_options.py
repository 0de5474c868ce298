"""Does what perfgate renders fit the installed build? Its programs and its model are asked.

A release table can be wrong, or a build can stand between two releases: that is found out here,
before any GPU time, not by a program that ends with status 2 after the others were started.

Each program is asked with ``--help``; one short call of the engine's own Python tells the keys of
the YAML file and what no help page shows. Each is asked once a session.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.core.command import Command
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import TENSORRT_LLM_PYTHON
from perfgate.core.redaction import redact
from perfgate.engines.base import EngineBuild
from perfgate.engines.definitions import (
    YAML,
    Definitions,
    KeyDefinition,
    Keys,
    Kind,
    OptionDefinition,
    Options,
)
from perfgate.engines.installed_programs import answer, ask_pages, marked_answer, require_fit
from perfgate.engines.tensorrt_llm.definition_check import mismatches
from perfgate.engines.tensorrt_llm.definition_check import moved_defaults as moved_in
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE
from perfgate.engines.tensorrt_llm.program_calls import calls
from perfgate.engines.tensorrt_llm.table import FACTS, TABLES
from perfgate.engines.tensorrt_llm.yaml_schema import keys_of, refuses_unknown

_MARK = "perfgate-build-answer"
_QUESTION = Path(__file__).with_name("build_answer.py")  # what the engine's Python is given
_KINDS: Mapping[str, Kind] = {
    "integer": "integer",
    "integer range": "integer",
    "float": "number",
    "float range": "number",
    "boolean": "boolean",
}


def verify(
    build: EngineBuild, commands: Sequence[Command], locations: Locations
) -> tuple[str, ...]:
    """Ask the installed build whether it takes all that `commands` give it.

    Returns:
        What could not be asked, and why, for the record; empty: all was asked.

    Raises:
        InputError: an option, choice or key that the build lacks, or a program that lists no
            options.
        RunError: the container that the programs are in cannot be had.
    """
    definitions = _installed_definitions(build, commands, locations)
    require_fit(
        build,
        FACTS.title,
        commands,
        lambda command: mismatches(command, definitions, locations),
        TABLES.told_by,
    )
    return definitions.notes


def moved_defaults(commands: Iterable[Command], locations: Locations) -> tuple[str, ...]:
    """See `Engine.moved_defaults`: the model behind the YAML file tells its defaults."""
    if not any(FILE in command.files for command in commands):
        return ()
    model = _told(locations).get("model")
    return () if model is None else tuple(redact(text) for text in moved_in(keys_of(model)))


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
            pages[name] = {
                str(one["options"][0]).lstrip("-"): _option(one) for one in programs[name]
            }
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
        else ("refused" if refuses_unknown(model["schema"]) else "ignored"),
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
        return marked_answer(answer((*python, "-c", _QUESTION.read_text()), locations), _MARK)
    except ValueError as error:
        return nothing(str(error))


def _option(told: Mapping[str, Any]) -> OptionDefinition:
    kind: Kind = _KINDS.get(told["type"], "text")
    if told["argument"]:
        kind = "argument"
    elif told["flag"]:
        kind = "flag"
    return OptionDefinition(
        options=tuple(told["options"]),
        kind=kind,
        off=tuple(told["off"]),
        choices=tuple(told["choices"]),
        required=told["required"],
        many=told["many"],
        repeated=told["repeated"],
    )


def _older(model: Mapping[str, Any]) -> Keys:
    """Mappings that older releases take outside of the model, with the names of their keys."""
    return {
        name: KeyDefinition(
            models={name: {key: KeyDefinition() for key in keys}}, unknown="refused"
        )
        for name, keys in model.get("older", {}).items()
    }
