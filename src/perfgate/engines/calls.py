"""The call of a program inside a command, whatever launcher stands before it."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import Program


def program_words(
    argv: Sequence[str], program: Program, locations: Locations
) -> tuple[str, ...] | None:
    """The words of `program` with which `argv` begins: as found where it is, or as typed.

    Args:
        argv: words of a command.
        program: the program.
        locations: where programs are, which says how they are spelled.

    Returns:
        its words; None: another program stands there.
    """
    spellings = [program.bare()]
    with suppress(MissingProgram, InputError):
        spellings.insert(0, locations.find(program))
    for words in spellings:
        there = tuple(argv[: len(words)])
        if there == words or (len(there) == len(words) and _is_typed(there, words)):
            return there
    return None


def _is_typed(there: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Whether it is the same program in another folder, or a module of another Python."""
    name, expected = Path(there[0]).name, Path(words[0]).name
    is_python = words[1:2] == ("-m",) and name.startswith("python")
    return there[1:] == words[1:] and (name == expected or is_python)


def shell_words(line: str) -> list[str]:
    """The words of a line that a launcher gives to a shell; none where a quote is left open."""
    try:
        return shlex.split(line)
    except ValueError:
        return []
