"""Command parser: argparse, with a did-you-mean for a mistyped command, choice or option."""

import argparse
import re
from collections.abc import Iterator
from typing import NoReturn

from perfgate.core.suggestion import did_you_mean

_CHOICE = re.compile(r"invalid choice: '(?P<word>[^']*)' \(choose from (?P<choices>.*)\)$")
_UNKNOWN = "unrecognized arguments: "
_PUNCTUATION = re.compile(r"[', ]+")


class CommandParser(argparse.ArgumentParser):
    """A parser whose commands have parsers of this class, too."""

    def error(self, message: str) -> NoReturn:
        """End with status 2, the usage and the message on standard error."""
        hint = _hint(message, self)
        super().error(f"{message}; {hint}" if hint else message)


def parsers_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its commands, as far as they were made."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers_of(command)


def _hint(message: str, parser: argparse.ArgumentParser) -> str | None:
    choice = _CHOICE.search(message)
    if choice is not None:
        return did_you_mean(choice["word"], _PUNCTUATION.split(choice["choices"]))
    if not message.startswith(_UNKNOWN):
        return None
    known = {
        option
        for one in parsers_of(parser)
        for action in one._actions
        for option in action.option_strings
    }
    words = message.removeprefix(_UNKNOWN).split()
    hints = (did_you_mean(word.partition("=")[0], known) for word in words if word[0] == "-")
    return next((hint for hint in hints if hint), None)
