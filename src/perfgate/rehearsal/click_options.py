"""click's way of reading a command line, from a recorded page: its checks, messages and status.

click is no dependency of perfgate. What it does that no scenario meets is left out: prompts,
variables of the environment, short options that are joined, a number of values above one.
"""

import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NoReturn

from perfgate.engines.definitions import OptionDefinition
from perfgate.rehearsal.options import GivenOptions, Syntax

_WORDS = {"true", "t", "1", "yes", "y", "on", "false", "f", "0", "no", "n", "off"}
_KINDS = {"integer": ("integer", int), "number": ("float", float)}


def given(syntax: Syntax, argv: Sequence[str]) -> GivenOptions:
    """Read `argv`; ends the program as click does."""
    values: dict[str, tuple[str, ...]] = {}
    words: list[str] = []
    last, left = "", list(argv)
    while left:
        word = left.pop(0)
        if word == "--":
            words += left
            left = []
        elif word.startswith("-") and word != "-":
            last = _take(syntax, word, left, values)
        else:
            words.append(word)
            if syntax.subcommands:
                break
    if syntax.drifted and last:
        _wrong(syntax, f"No such option: {last}")
    return _checked(syntax, values, words, left)


def _take(syntax: Syntax, word: str, left: list[str], values: dict[str, tuple[str, ...]]) -> str:
    """Put the option `word` and its value, which may be the first of `left`, into `values`.

    Returns:
        How the option was spelled.
    """
    spelling, equals, value = word.partition("=")
    if spelling == "--help":
        _show_help(syntax)
    known = {one: name for name, option in syntax.options.items() for one in option.spellings}
    if spelling not in known:
        _wrong(syntax, f"No such option: {spelling}{_near(spelling, known)}")
    name = known[spelling]
    option = syntax.options[name]
    if option.kind == "flag":
        if equals:
            _wrong(syntax, f"Option '{spelling}' does not take a value.")
        values.pop(name, None)
        if spelling not in option.off:
            values[name] = ()
        return spelling
    if not equals and not left:
        _wrong(syntax, f"Option '{spelling}' requires an argument.")
    before = values.get(name, ()) if option.repeated else ()
    values[name] = (*before, value if equals else left.pop(0))
    return spelling


def _checked(
    syntax: Syntax, values: dict[str, tuple[str, ...]], words: list[str], left: list[str]
) -> GivenOptions:
    for name, option in syntax.options.items():
        spelled = " / ".join(f"'{one}'" for one in option.options)
        for value in values.get(name, ()):
            problem = _problem(option, value)
            if problem:
                _wrong(syntax, f"Invalid value for {spelled}: {problem}")
        if option.required and option.kind != "argument" and name not in values:
            _wrong(syntax, f"Missing option {spelled}.")
    if syntax.subcommands:
        command = next(iter(words), "")
        if not command:
            _wrong(syntax, "Missing command.")
        if command not in syntax.subcommands:
            _wrong(syntax, f"No such command '{command}'.")
        return GivenOptions(syntax.options, values, (), command, tuple(left))
    arguments = _arguments(syntax)
    if len(words) < len(arguments):
        _wrong(syntax, f"Missing argument '{arguments[len(words)]}'.")
    if len(words) > len(arguments):
        extra = words[len(arguments) :]
        plural = "s" if len(extra) > 1 else ""
        _wrong(syntax, f"Got unexpected extra argument{plural} ({' '.join(extra)})")
    return GivenOptions(syntax.options, values, tuple(words))


def _problem(option: OptionDefinition, value: str) -> str | None:
    if option.choices:
        listed = ", ".join(map(repr, option.choices))
        return None if value in option.choices else f"{value!r} is not one of {listed}."
    if option.kind == "boolean":
        return None if value.lower() in _WORDS else f"{value!r} is not a valid boolean."
    word, kind = _KINDS.get(option.kind, ("", str))
    try:
        kind(value)
    except ValueError:
        return f"{value!r} is not a valid {word}."
    return None


def _near(spelling: str, known: Iterable[str]) -> str:
    found = sorted(get_close_matches(spelling, list(known)))
    if len(found) > 1:
        return f" (Possible options: {', '.join(found)})"
    return f" Did you mean {found[0]}?" if found else ""


def _wrong(syntax: Syntax, message: str) -> NoReturn:
    print(
        f"Usage: {_usage(syntax)}\nTry '{syntax.program} --help' for help.\n\nError: {message}",
        file=sys.stderr,
    )
    raise SystemExit(2)


def _usage(syntax: Syntax) -> str:
    commands = ["COMMAND [ARGS]..."] if syntax.subcommands else []
    return " ".join([syntax.program, "[OPTIONS]", *_arguments(syntax), *commands])


def _arguments(syntax: Syntax) -> list[str]:
    return [one.options[0].upper() for one in syntax.options.values() if one.kind == "argument"]


def _show_help(syntax: Syntax) -> NoReturn:
    lines = [f"Usage: {_usage(syntax)}", "", "Options:"]
    for option in syntax.options.values():
        if option.kind == "argument":
            continue
        spelled = ", ".join(sorted(option.options, key=len))
        off = f" / {', '.join(option.off)}" if option.off else ""
        taken = "" if option.kind == "flag" else f" {_metavar(option)}"
        mark = f"  :tag:`{option.status}`" if option.status else ""  # as TensorRT-LLM's help has it
        lines.append(f"  {spelled}{off}{taken}{mark}")
    lines.append("  --help  Show this message and exit.")
    if syntax.subcommands:
        lines += ["", "Commands:", *(f"  {name}" for name in syntax.subcommands)]
    print("\n".join(lines))
    raise SystemExit(0)


def _metavar(option: OptionDefinition) -> str:
    if option.choices:
        return f"[{'|'.join(option.choices)}]"
    return {"integer": "INTEGER", "number": "FLOAT", "boolean": "BOOLEAN"}.get(option.kind, "TEXT")
