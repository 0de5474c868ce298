"""Command line: argparse with a did-you-mean, options before the verb, version and completion."""

import argparse
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import perfgate
from perfgate.core.errors import did_you_mean

SHELLS = ("bash", "zsh", "tcsh")
# Each of many verbs: they may also stand before the verb.
_SHARED = ("--format", "--scenarios", "--import")
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


def verb_first(words: Sequence[str]) -> list[str]:
    """The words with the shared options and their values after all others."""
    end = words.index("--") if "--" in words else len(words)
    others: list[str] = []
    shared: list[str] = []
    position = 0
    while position < end:
        name, has_value, _ = words[position].partition("=")
        size = 2 if name in _SHARED and not has_value else 1
        (shared if name in _SHARED else others).extend(words[position : min(position + size, end)])
        position += size
    return [*others, *shared, *words[end:]]


def _hint(message: str, parser: argparse.ArgumentParser) -> str | None:
    choice = _CHOICE.search(message)
    if choice is not None:
        return did_you_mean(choice["word"], _PUNCTUATION.split(choice["choices"]))
    if not message.startswith(_UNKNOWN):
        return None
    known = {
        option
        for command in parsers_of(parser)
        for action in command._actions
        for option in action.option_strings
    }
    words = message.removeprefix(_UNKNOWN).split()
    hints = (did_you_mean(word.partition("=")[0], known) for word in words if word[0] == "-")
    return next((hint for hint in hints if hint), None)


class PrintVersion(argparse.Action):
    """Prints perfgate's version, Python's, and where perfgate is installed, in one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version  # takes longer than all of --help

        folder = Path(perfgate.__file__).parent
        print(
            f"perfgate {version('perfgate')} "
            f"(Python {platform.python_version()}, installed in {folder})"
        )
        parser.exit()


class PrintCompletion(argparse.Action):
    """Prints a script that completes commands and options in a shell.

    Args:
        whole: makes the command line with the options of every command.
    """

    def __init__(self, *, whole: Callable[[], argparse.ArgumentParser], **settings: Any) -> None:
        super().__init__(choices=SHELLS, **settings)
        self._whole = whole

    def __call__(self, parser: argparse.ArgumentParser, _: Any, shell: Any, *_name: Any) -> None:
        import shtab  # only needed here

        whole = self._whole()
        for parser_of_command in parsers_of(whole):
            for action in parser_of_command._actions:
                if action.type is Path or action.dest == "scenarios":
                    action.complete = shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(whole, shell))
        parser.exit()
