"""Does what perfgate renders fit the installed build? Its server's help page is asked."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import SGLANG_SERVE
from perfgate.engines.base import EngineBuild
from perfgate.engines.installed_pages import verify_pages
from perfgate.engines.option_check import Call
from perfgate.engines.sglang.releases import Release, told_by
from perfgate.engines.sglang.releases.table import SERVE


def verify(
    build: EngineBuild, commands: Iterable[Command], locations: Locations
) -> tuple[str, ...]:
    """Ask the installed server whether it takes all that `commands` give it; see `verify_pages`."""

    def calls_in(command: Command) -> Iterable[Call]:
        return calls(command.argv, locations)

    return verify_pages(
        build, Release.title, commands, calls_in, told_by, locations, dashes_alike=False
    )


def calls(argv: Sequence[str], locations: Locations) -> Iterator[Call]:
    """The call of the server in `argv`, whatever launcher stands before it; none, or one."""
    for position, word in enumerate(argv):
        if " " in word and SERVE in word:
            yield from calls(_words(word), locations)
            return
        prefix = _prefix(argv, position, locations)
        if prefix is not None:
            rest = tuple(argv[position + len(prefix) :])
            yield Call(SERVE, (*prefix, "--help"), rest, SERVE)
            return


def _prefix(argv: Sequence[str], position: int, locations: Locations) -> tuple[str, ...] | None:
    """The words of the server at `position`: as found where it is, or as typed."""
    try:
        found = locations.find(SGLANG_SERVE)
    except (MissingProgram, InputError):
        found = SGLANG_SERVE.bare()
    if tuple(argv[position : position + len(found)]) == found:
        return found
    typed = tuple(argv[position : position + 3])
    is_python = bool(typed) and Path(typed[0]).name.startswith("python")
    return typed if is_python and typed[1:] == SGLANG_SERVE.arguments else None


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []
