"""argparse's own parser, made from a recorded page: the real one's abbreviations and messages."""

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Sequence
from typing import Any

from perfgate.engines.definitions import OptionDefinition
from perfgate.rehearsal.options import GivenOptions, Syntax

_TYPES = {"integer": int, "number": float}


def given(syntax: Syntax, argv: Sequence[str]) -> GivenOptions:
    """Read `argv`; ends the program as argparse does."""
    parser = ArgumentParser(prog=syntax.program.split()[0])
    for name, option in syntax.options.items():
        if option.kind == "argument":
            parser.add_argument(name)
            continue
        parser.add_argument(*option.options, dest=name, default=SUPPRESS, **_settings(option))
        shown = [word for word in option.off if word not in option.hidden]
        for words, told in ((shown, None), (option.hidden, SUPPRESS)):
            if words:
                parser.add_argument(
                    *words, dest=name, default=SUPPRESS, action="store_false", help=told
                )
    found = vars(parser.parse_args(argv))
    if syntax.drifted and found:
        parser.error(f"unrecognized arguments: {syntax.options[next(reversed(found))].options[0]}")
    words = tuple(
        found.pop(name) for name, option in syntax.options.items() if option.kind == "argument"
    )
    values = {name: _words(value) for name, value in found.items() if value is not False}
    return GivenOptions(syntax.options, values, words)


def _settings(option: OptionDefinition) -> dict[str, Any]:
    settings: dict[str, Any] = {"required": option.required}
    if option.kind == "flag":
        return {**settings, "action": "store_true"}
    kind = _TYPES.get(option.kind, str)
    settings |= {"type": kind, "choices": [kind(one) for one in option.choices] or None}
    if option.many:
        settings["nargs"] = "+"
    if option.repeated:
        settings["action"] = "append"
    return settings


def _words(value: Any) -> tuple[str, ...]:
    if value is True:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
