"""Calls of `vllm serve` inside a command, whatever launcher stands before it."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import VLLM_SERVE
from perfgate.engines.option_check import Call
from perfgate.engines.vllm.releases import Release
from perfgate.engines.vllm.releases.table import SERVE

_SUBCOMMAND = "serve"


def calls(argv: Sequence[str], known: Release, locations: Locations) -> Iterator[Call]:
    """The call of the server, if the command has one.

    Args:
        argv: a command's words.
        known: the release, which says how its options are asked for.
        locations: where programs are, which says how they are spelled.
    """
    for position, word in enumerate(argv):
        if " " in word and f"{VLLM_SERVE.executable} {_SUBCOMMAND}" in word:
            yield from calls(_words(word), known, locations)
            return
        prefix = _prefix(argv[position:], locations)
        if prefix:
            asked = (*prefix, _SUBCOMMAND, known.help)
            yield Call(SERVE, asked, tuple(argv[position + len(prefix) + 1 :]), SERVE)
            return


def _prefix(words: Sequence[str], locations: Locations) -> tuple[str, ...]:
    """The words of the program before its subcommand, as found or as typed; none: it is another."""
    spellings = [VLLM_SERVE.bare()]
    with suppress(MissingProgram, InputError):
        spellings.insert(0, locations.find(VLLM_SERVE))
    for one in spellings:
        there = tuple(words[: len(one)])
        is_it = there == one or (
            there[1:] == one[1:] and bool(there) and Path(there[0]).name == one[0]
        )
        if is_it and list(words[len(one) : len(one) + 1]) == [_SUBCOMMAND]:
            return there
    return ()


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []
