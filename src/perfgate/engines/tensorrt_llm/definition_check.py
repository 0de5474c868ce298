"""Does a rendered command fit what a build of TensorRT-LLM accepts? Options, choices, YAML keys.

Pure: the definitions can come from a recorded page, an installed program or a source tree.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.suggestion import nearest
from perfgate.engines.definitions import Definitions, KeyDefinition, Keys, OptionDefinition
from perfgate.engines.tensorrt_llm.installed_options import Call, calls
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE

_HERE = Locations()


class Mismatch(NamedTuple):
    """One thing of a command that the build does not take.

    Attributes:
        program: the program, or ``LLM-API YAML``.
        place: the option, or the YAML key with dots.
        problem: what is wrong, for people.
        found: what the command gives.
        expected: what the build knows there.
    """

    program: str
    place: str
    problem: str
    found: str
    expected: str


def mismatches(
    command: Command, definitions: Definitions, locations: Locations = _HERE
) -> tuple[Mismatch, ...]:
    """All that `command` gives and the build does not take; programs without a page are left out.

    Args:
        command: as rendered, with its files.
        definitions: of the build.
        locations: where programs are, which says how they are spelled.
    """
    found = [
        mismatch
        for call in calls(command.argv, locations)
        if call.program in definitions.programs
        for mismatch in _of_call(call, definitions)
    ]
    text = command.files.get(FILE)
    if text is not None and definitions.keys is not None:
        found += _of_keys(yaml.safe_load(text) or {}, definitions.keys, definitions, ())
    return tuple(found)


def _of_call(call: Call, definitions: Definitions) -> Iterator[Mismatch]:
    options = definitions.programs[call.program]
    given: set[str] = set()
    left = list(call.arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("--") and not (word.startswith("-") and word[1:2].isalpha()):
            continue  # a positional argument
        name, equals, value = word.partition("=")
        option = definitions.option(call.program, name)
        if option is None:
            known = [spelling for one in options.values() for spelling in one.spellings]
            near = nearest(name, known)
            expected = f"{near}?" if near else f"one of its {len(known)} options"
            yield Mismatch(call.program, name, "no such option", name, expected)
            continue
        given.update(option.options)
        if option.kind == "flag":
            continue
        values = [value] if equals else _taken(option, left)
        if not values:
            yield Mismatch(call.program, name, "no value", name, option.kind)
        for value in values:
            yield from _of_value(call.program, name, option, value)
    for option in options.values():
        if option.required and option.kind != "argument" and not given & set(option.options):
            yield Mismatch(call.program, option.options[0], "missing", "nothing", option.kind)


def _taken(option: OptionDefinition, left: list[str]) -> list[str]:
    taken = [left.pop(0)] if left else []
    while option.many and left and not left[0].startswith("-"):
        taken.append(left.pop(0))
    return taken


def _of_value(program: str, name: str, option: OptionDefinition, value: str) -> Iterator[Mismatch]:
    if option.choices and value not in option.choices:
        yield Mismatch(program, name, "no such choice", value, ", ".join(option.choices))
    elif not _is_of(option.kind, value):
        yield Mismatch(program, name, f"not a value of kind {option.kind}", value, option.kind)


def _is_of(kind: str, value: str) -> bool:
    try:
        if kind == "integer":
            int(value)
        elif kind == "number":
            float(value)
    except ValueError:
        return False
    return kind != "boolean" or value.lower() in ("true", "false", "1", "0", "yes", "no")


def _of_keys(
    tree: Mapping[str, Any], keys: Keys, definitions: Definitions, place: Sequence[str]
) -> Iterator[Mismatch]:
    for name, value in tree.items():
        here = (*place, str(name))
        dotted = ".".join(here)
        key = keys.get(name) or next((k for k in keys.values() if k.alias == name), None)
        if key is None:
            near = nearest(str(name), list(keys))
            yield Mismatch(
                "LLM-API YAML", dotted, "no such key", repr(value), f"{near}?" if near else "none"
            )
        elif isinstance(value, Mapping) and key.models:
            yield from _of_models(value, key, definitions, here)
        elif isinstance(value, str) and key.choices and not key.types and value not in key.choices:
            yield Mismatch("LLM-API YAML", dotted, "no such choice", value, ", ".join(key.choices))


def _of_models(
    value: Mapping[str, Any], key: KeyDefinition, definitions: Definitions, place: Sequence[str]
) -> Iterator[Mismatch]:
    """The mismatches with the model that fits best: which one is meant is the engine's choice."""
    tried = [tuple(_of_keys(value, model, definitions, place)) for model in key.models.values()]
    yield from min(tried, key=len)
