"""Extra options: what a scenario gives the engine that the vocabulary of settings has no word for.

What may stand there whatever the engine is said here; which options perfgate or a setting gives
already, the engine says (`Engine.refused_extras`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from perfgate.core.redaction import mask_arguments, mask_plain, visible
from perfgate.scenarios.scenario import EngineChoice, Scenario
from perfgate.scenarios.yaml_document import Keys, Problem

YAML: Keys = ("engine", "extra_yaml")
ARGS: Keys = ("engine", "extra_args")

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OPTION = re.compile(r"--[A-Za-z][A-Za-z0-9_-]*")
_NUMBER = re.compile(r"-[0-9.]+(?:e[-+]?[0-9]+)?", re.IGNORECASE)


class ExtraOption(NamedTuple):
    """One option of `engine.extra_args`.

    Attributes:
        path: where it is written, from the scenario down.
        program: the program that is given it.
        name: its spelling, without a value.
        words: it and its values, as the program gets them.
    """

    path: Keys
    program: str
    name: str
    words: tuple[str, ...]


def extra_options(engine: EngineChoice) -> Iterator[ExtraOption]:
    """The options of `engine.extra_args`, in their order; each with the values behind it."""
    for program, given in (engine.extra_args or {}).items():
        words = tuple(map(str, given))
        starts = [at for at, word in enumerate(words) if word.startswith("--")]
        for at, end in pairwise([*starts, len(words)]):
            name = words[at].partition("=")[0]
            yield ExtraOption((*ARGS, program, at), program, name, words[at:end])


def extra_keys(engine: EngineChoice) -> Iterator[tuple[Keys, Any]]:
    """The leaves of `engine.extra_yaml`: keys from the top of the file down, and the value."""
    yield from leaves(engine.extra_yaml or {})


def leaves(tree: Mapping[str, Any], at: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Keys from the top down and the value there, of all that is no mapping with something in."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*at, name))
        else:
            yield (*at, name), value


def describe_extra_options(engine: EngineChoice) -> str:
    """The extra options in one line for people and records, secrets masked; empty: none."""
    told = [
        f"{program} {' '.join(mask_arguments(map(str, given)))}"
        for program, given in (engine.extra_args or {}).items()
    ]
    masked = mask_plain(dict(engine.extra_yaml or {}))
    if isinstance(masked, dict):
        told += [f"{'.'.join(map(str, keys))}: {_text(value)}" for keys, value in leaves(masked)]
    return visible("; ".join(told))


def _text(value: object) -> str:
    """A value as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_text(one)}' for name, one in value.items())}}}"
    return str(value)


def extra_option_rules(scenario: Scenario) -> Iterator[Problem]:
    """All that is wrong with the extra options, whatever the engine is."""
    engine = scenario.engine
    if engine.extra_yaml is not None:
        yield from _odd(engine.extra_yaml, YAML)
    for program, given in (engine.extra_args or {}).items():
        for at, word in enumerate(map(str, given)):
            yield from _no_option(word, (*ARGS, program, at), is_first=at == 0)
    yield from _said_twice(engine)


def _odd(value: object, path: Keys) -> Iterator[Problem]:
    """What is no name or no value below a key."""
    if value is None:
        problem = "nothing is no value here: it takes away what the defaults block gives"
        expected = "a value; a key that is left out stays at the engine's own default"
        yield Problem(path, problem, expected=expected, hint="take the key out")
    elif isinstance(value, Mapping):
        for name, below in value.items():
            if not _KEY.fullmatch(name):
                expected = "letters, digits, underscores and hyphens; one key a level, without dots"
                yield Problem((*path, name), "malformed name", name, expected)
            yield from _odd(below, (*path, name))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, below in enumerate(value):
            yield from _odd(below, (*path, number))


def _no_option(word: str, path: Keys, *, is_first: bool) -> Iterator[Problem]:
    name, parts = word.partition("=")[0], word.split()
    if word.startswith("-") and not _OPTION.fullmatch(name) and not _NUMBER.fullmatch(word):
        expected = "an option's long name, its values as words of their own"
        hint = f"write [{', '.join(parts)}]" if len(parts) > 1 else None
        yield Problem(path, "not an option", word, expected, hint)
    elif is_first and not word.startswith("--"):
        expected = "an option, such as --num_postprocess_workers, before its value"
        yield Problem(path, "a value without its option", word, expected)


def _said_twice(engine: EngineChoice) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for option in extra_options(engine):
        name = option.name.removeprefix("--").replace("-", "_")
        if name in (engine.extra_yaml or {}):
            expected = f"one of {option.name} and engine.extra_yaml.{name}"
            hint = "take one away: which of the two holds differs from release to release"
            yield Problem(option.path, "said twice", option.name, expected, hint)
        if (option.program, name) in seen and len(option.words) > 1:
            hint = "list all values behind one option where the program takes several"
            yield Problem(option.path, "option given twice", option.name, "it once", hint)
        seen.add((option.program, name))
