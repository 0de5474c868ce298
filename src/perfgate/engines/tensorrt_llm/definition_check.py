"""Does a rendered command fit what a build of TensorRT-LLM accepts? Options, choices, YAML keys.

Pure: the definitions come from a recorded page or an installed program. What they do not tell is
not judged.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import UNSET

from perfgate.core.errors import nearest
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import (
    BENCHMARK_SERVING,
    TENSORRT_LLM_PYTHON,
    TRTLLM_BENCH,
    TRTLLM_EVAL,
    TRTLLM_SERVE,
    Program,
)
from perfgate.engines.definitions import YAML, Definitions, KeyDefinition, Keys
from perfgate.engines.installed_programs import program_words, shell_words
from perfgate.engines.option_check import TRUTH, Call, Mismatch, is_number, marked, of_call
from perfgate.engines.tensorrt_llm import table
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE
from perfgate.engines.tensorrt_llm.programs import TASKS

_HERE = Locations()
_SUBCOMMANDS = {"throughput": table.THROUGHPUT, "prepare-dataset": table.PREPARE}
_SCRIPTS = (table.PREPARE_SCRIPT, table.QUICKSTART, table.GPQA)
_PROGRAMS: tuple[tuple[str, Program], ...] = (
    (table.BENCH, TRTLLM_BENCH),
    (table.SERVE, TRTLLM_SERVE),
    (table.EVAL, TRTLLM_EVAL),
    (table.BENCHMARK_SERVING, BENCHMARK_SERVING),
)
_NAMES = (table.BENCH, table.SERVE, table.EVAL, table.BENCHMARK_SERVING, *_SCRIPTS)
_TAGS = ("decoding_type", "algorithm")  # keys whose value chooses the model of its mapping
_SCALARS = frozenset({"int", "float", "bool", "str"})
_NUMBERS = frozenset({"int", "float", "bool"})
_RECIPE = "quick-start-recipe-for-deepseek-r1-on-trtllm.md, Extra LLM API Options"
# Of that section, at 1.0.0rc6. The kernels of the experts are not among them: their default moved,
# which the release tables know and pin.
_DOCUMENTED_DEFAULTS: Mapping[tuple[str, ...], Any] = {
    ("kv_cache_config", "dtype"): "auto",
    ("cuda_graph_config", "enable_padding"): False,
    ("cuda_graph_config", "max_batch_size"): 0,
    ("cuda_graph_config", "batch_sizes"): None,
    ("attn_backend",): "TRTLLM",
}


def mismatches(
    command: Command, definitions: Definitions, locations: Locations = _HERE
) -> tuple[Mismatch, ...]:
    """All that `command` gives and the build does not take, or marks, of programs with a page.

    Args:
        command: as rendered, with its files.
        definitions: of the build.
        locations: where programs are, which says how they are spelled.
    """
    found = [
        mismatch
        for call in calls(command.argv, locations)
        if call.page in definitions.programs
        for mismatch in of_call(call, definitions)
    ]
    text = command.files.get(FILE)
    if text is not None and definitions.keys is not None:
        tree = yaml.safe_load(text) or {}
        found += _of_keys(tree, definitions.keys, definitions, ())
    return tuple(found)


def moved_defaults(keys: Keys) -> Iterator[str]:
    """Defaults that a build has and the quick start recipe documents otherwise, for people.

    A key, or a default, that the build does not tell is left out.

    Args:
        keys: of the build's YAML file.
    """
    for place, documented in _DOCUMENTED_DEFAULTS.items():
        for key in _at(keys, place):
            found = key.default
            if found is not UNSET and (type(found), found) != (type(documented), documented):
                name = ".".join(place)
                yield f"default of {name}: found {found!r}, documented {documented!r} ({_RECIPE})"


def _at(keys: Keys, place: Sequence[str]) -> Iterator[KeyDefinition]:
    """The key at a place, in each model that has it."""
    first, *below = place
    key = _key(keys, first)
    if key is not None and not below:
        yield key
    elif key is not None:
        for model in key.models.values():
            yield from _at(model, below)


# YAML keys. ---------------------------------------------------------------------------------


def _of_keys(
    tree: Mapping[str, Any],
    keys: Keys,
    definitions: Definitions,
    place: Sequence[str],
    unknown: str | None = None,
) -> Iterator[Mismatch]:
    unknown = unknown or definitions.unknown_keys
    for name, value in tree.items():
        here = (*place, str(name))
        key = _key(keys, str(name))
        if key is None:
            yield _unknown_key(here, value, keys, unknown)
            continue
        yield from marked(YAML, ".".join(here), key.status)
        if isinstance(value, Mapping) and key.models:
            below = definitions.unknown_keys if key.unknown is UNSET else key.unknown
            yield from _of_models(value, key, definitions, here, below)
        else:
            yield from _of_key_value(value, key, definitions, ".".join(here))


def _key(keys: Keys, name: str) -> KeyDefinition | None:
    return keys.get(name) or next((key for key in keys.values() if key.alias == name), None)


def _unknown_key(
    place: Sequence[str],
    value: object,
    keys: Keys,
    unknown: str | None,
) -> Mismatch:
    near = nearest(place[-1], list(keys))
    problem = "no such key"
    if unknown == "ignored":
        problem += ": it would be ignored without a word"
    expected = f"{near}?" if near else ", ".join(list(keys)[:_FEW]) or "no keys"
    return Mismatch(YAML, ".".join(place), problem, repr(value), expected)


_FEW = 12  # keys that are named where none is near


def _of_key_value(
    value: object, key: KeyDefinition, definitions: Definitions, dotted: str
) -> Iterator[Mismatch]:
    kinds = frozenset(key.types) - {"null"}
    if isinstance(value, str) and key.choices and not kinds and value not in key.choices:
        problem = "no such choice"
    elif not definitions.exact_types or not (key.types or key.choices):
        return  # nothing is known for certain
    elif isinstance(value, str):
        problem = _problem_of_text(value, kinds, key)
    else:
        problem = _problem_of(value, kinds, key)
    if problem:
        told = ", ".join((*key.choices, *key.types))
        yield Mismatch(YAML, dotted, problem, repr(value), told)


def _problem_of_text(value: str, kinds: frozenset[str], key: KeyDefinition) -> str:
    """What is wrong with a text; a number or a truth value may be written as one."""
    if value in key.choices or not kinds:
        return ""
    if kinds <= {"list", "dict"}:
        return "a text where it takes none"
    is_value = is_number(value) or ("bool" in kinds and value.lower() in TRUTH)
    return "not a value of its type" if kinds <= _NUMBERS and not is_value else ""


def _problem_of(value: object, kinds: frozenset[str], key: KeyDefinition) -> str:
    """What is wrong with a value that is no text; nothing where a type is not understood."""
    if not kinds <= {*_SCALARS, "list", "dict", *key.models}:
        return ""
    if value is None:
        return "" if "null" in key.types else "null where it takes none"
    if isinstance(value, list):
        return "" if "list" in kinds else "a list where it takes none"
    if isinstance(value, Mapping):
        return "" if kinds & {"dict", *key.models} else "a mapping where it takes none"
    return "" if kinds & _SCALARS or key.choices else "a single value where it takes none"


def _of_models(
    value: Mapping[str, Any],
    key: KeyDefinition,
    definitions: Definitions,
    place: Sequence[str],
    unknown: str | None,
) -> Iterator[Mismatch]:
    """The mismatches with the model that the mapping's tag chooses, else with the best fitting."""
    tag = next((name for name in _TAGS if isinstance(value.get(name), str)), None)
    meant = dict(key.models)
    if tag is not None and len(meant) > 1:
        meant = _tagged(tag, value[tag], key.models)
        if not meant:
            known = sorted(_tag_values(tag, key.models))
            dotted = ".".join((*place, tag))
            yield Mismatch(YAML, dotted, "no such choice", repr(value[tag]), ", ".join(known))
            return
    tried = []
    for name, model in meant.items():
        rest = {k: v for k, v in value.items() if k != tag or k in model}
        found = _of_keys(rest, model, definitions, place, unknown)
        suffix = f" in {name}" if len(key.models) > 1 else ""
        tried.append(tuple(one._replace(problem=one.problem + suffix) for one in found))
    yield from min(tried, key=lambda found: sum(not one.is_taken for one in found))


def _tagged(tag: str, value: str, models: Mapping[str, Keys]) -> dict[str, Keys]:
    """The models that the tag's value chooses: by what they say of the tag, else by their names."""
    said = {name: model for name, model in models.items() if tag in model and model[tag].choices}
    chosen = {name: model for name, model in said.items() if value in model[tag].choices}
    if chosen:
        return chosen
    word = _plain(value)
    unsaid = {name: model for name, model in models.items() if name not in said}
    return {name: model for name, model in unsaid.items() if _plain(name).startswith(word)}


def _tag_values(tag: str, models: Mapping[str, Keys]) -> Iterator[str]:
    for name, model in models.items():
        if tag in model and model[tag].choices:
            yield from model[tag].choices
        else:
            yield name


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


# Calls of programs in a command. ----------------------------------------------------------------


def calls(argv: Sequence[str], locations: Locations = _HERE) -> tuple[Call, ...]:
    """The calls of known programs in `argv`, whatever launcher stands before them.

    Args:
        argv: a command's words.
        locations: where programs are, which says how they are spelled.
    """
    for position, word in enumerate(argv):
        if " " in word and any(name in word for name in _NAMES):
            return calls(shell_words(word), locations)
        found = _call(argv, position, locations)
        if found:
            return tuple(found)
    return ()


def _call(argv: Sequence[str], position: int, locations: Locations) -> list[Call]:
    word = Path(argv[position]).name
    if word in _SCRIPTS:
        asked = (*_interpreter(argv, position, locations), argv[position], "--help")
        return list(_with_generator(word, asked, argv[position + 1 :]))
    for name, program in _PROGRAMS:
        prefix = program_words(argv[position:], program, locations)
        if prefix is not None:
            rest = tuple(argv[position + len(prefix) :])
            return list(_split(name, prefix, rest))
    return []


def _split(name: str, prefix: tuple[str, ...], rest: tuple[str, ...]) -> Iterator[Call]:
    """`trtllm-bench` and `trtllm-eval` have options before and behind their subcommands."""
    if name == table.SERVE:
        yield Call(table.SERVE, (*prefix, "serve", "--help"), rest, f"{table.SERVE} serve")
        return
    if name == table.BENCHMARK_SERVING:
        yield Call(name, (*prefix, "--help"), rest, name)
        return
    parts: Collection[str] = TASKS if name == table.EVAL else _SUBCOMMANDS
    at = next((at for at, word in enumerate(rest) if word in parts), len(rest))
    yield Call(name, (*prefix, "--help"), rest[:at], name)
    if at == len(rest):
        return
    if name == table.EVAL:
        task = f"{table.EVAL} {rest[at]}"
        yield Call(task, (), rest[at + 1 :], task)
        return
    # click wants --model before it shows the help of a subcommand.
    asked = (*prefix, "--model", "any", rest[at], "--help")
    yield from _with_generator(_SUBCOMMANDS[rest[at]], asked, rest[at + 1 :])


def _with_generator(name: str, asked: tuple[str, ...], words: Sequence[str]) -> Iterator[Call]:
    """A program, and the generator of prompts behind its own options, where there is one."""
    at = words.index(table.GENERATOR) if table.GENERATOR in words else len(words)
    yield Call(name, asked, tuple(words[:at]), name)
    if at < len(words):
        generator = f"{name} {table.GENERATOR}"
        yield Call(generator, (), tuple(words[at + 1 :]), generator)


def _interpreter(argv: Sequence[str], position: int, locations: Locations) -> tuple[str, ...]:
    """The words before a script that run it: as found where it is, else the one before it."""
    for before in range(position):
        found = program_words(argv[before:], TENSORRT_LLM_PYTHON, locations)
        if found is not None and before + len(found) == position:
            return found
    return tuple(argv[max(0, position - 1) : position])
