"""The installed programs of an engine: what they print, and does what perfgate renders fit them?

A release table can be wrong, or a build can stand between two releases: that is found out here,
before any GPU time, not by a program that ends with status 2 after the others were started.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfgate.core.errors import CliDrift, InputError, MissingProgram
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import Program
from perfgate.engines.base import EngineBuild
from perfgate.engines.definitions import YAML, Options
from perfgate.engines.help_page import options_in
from perfgate.engines.option_check import Call, Mismatch

LIMIT_S = 180.0  # importing torch and the bindings from a cold network disk takes minutes
_MOST_TOLD = 4  # mismatches in one message; the rest is counted

ToldBy = Callable[[str, Mismatch], str]
"""Release and mismatch → the line of the release tables that makes perfgate write it."""


@lru_cache(maxsize=64)
def answer(argv: tuple[str, ...], locations: Locations) -> str:
    """Everything that the program prints, log lines included; one that fails says why instead.

    Args:
        argv: a program of the engine, and what it is asked.
        locations: where it is.

    Raises:
        RunError, InputError, MissingProgram: the container that it is in cannot be had.
    """
    return locations.ask(argv, LIMIT_S, of_engine=True).text


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


def ask_pages(
    calls: Iterable[Call], locations: Locations
) -> tuple[dict[str, Options], tuple[str, ...]]:
    """Page → the options that its program lists, each asked once; and the pages that none lists.

    Raises:
        InputError: a program lists no options.
        RunError: the container that the programs are in cannot be had.
    """
    pages: dict[str, Options] = {}
    unasked: dict[str, None] = {}
    for call in calls:
        if call.help and call.page not in pages:
            pages[call.page] = _page(call, locations)
        elif not call.help:
            unasked[call.page] = None
    return pages, tuple(unasked)


def require_fit(
    build: EngineBuild,
    title: str,
    commands: Sequence[Command],
    mismatches: Callable[[Command], Iterable[Mismatch]],
    told_by: ToldBy,
) -> tuple[str, ...]:
    """Refuse commands that give the installed build what it does not take.

    Args:
        build: the engine's.
        title: name of the engine, for people.
        commands: as rendered.
        mismatches: what of a command does not fit what the build says of itself.
        told_by: finds the line of the release tables.

    Returns:
        What they give and the build marks as deprecated or as a prototype.

    Raises:
        InputError: an option, choice or key that the build lacks.
    """
    found = dict.fromkeys(one for command in commands for one in mismatches(command))
    asked_by = {place: by for command in commands for place, by in command.asked_by.items()}
    wrong = tuple(one for one in found if not one.is_taken)
    for one in wrong:
        if one.place in asked_by:
            raise InputError(
                f"the installed {title} {build.version} does not take this: {one.problem}",
                field=asked_by[one.place],
                found=f"{one.place} {one.found}" if one.found != one.place else one.found,
                expected=one.expected,
                hint="correct it, or take it out of the scenario",
            )
    if wrong:
        raise _drift(build, title, wrong, told_by)
    return tuple(f"{one.program} {one.place}: {one.problem}" for one in found if one.is_taken)


def marked_answer(said: str, mark: str) -> dict[str, Any]:
    """The JSON object that a program prints between marks, among log lines.

    Raises:
        ValueError: there is none; with the reason.
    """
    found = re.search(rf"<{mark}>(.*?)</{mark}>", said, re.DOTALL)
    if found is None:
        raise ValueError(f"no answer: it printed {last_line(said)}")
    try:
        told = json.loads(found[1])
    except ValueError:
        raise ValueError("its answer is no JSON") from None
    if not isinstance(told, dict):
        raise ValueError("its answer is no mapping")
    return told


def _page(call: Call, locations: Locations) -> Options:
    """The options that a program lists for itself."""
    said = answer(call.help, locations)
    options = options_in(said)
    if not options:
        raise InputError(
            f"{call.program} does not list its options",
            field=shlex.join(call.help),
            found=last_line(said),
            expected="a list of options",
            hint="run it by hand: the installation may be broken, or the machine too busy: it is "
            f"waited for {LIMIT_S:g} s",
        )
    return options


def last_line(text: str) -> str:
    """The last line with anything in it, shortened; ``nothing`` where there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing"


def _drift(
    build: EngineBuild, title: str, found: tuple[Mismatch, ...], told_by: ToldBy
) -> CliDrift:
    """The error that names what the release tables got wrong, and their line."""
    first, *others = found
    more = "".join(
        f"; {one.program} {one.place}: {one.problem}, {one.found}" for one in others[:_MOST_TOLD]
    )
    left = len(others) - _MOST_TOLD
    more += f"; and {left} more" if left > 0 else ""
    kind = "a key" if first.program == YAML else "an option"
    if first.problem.startswith("no such option"):
        problem = f"the installed {first.program} has no option {first.place}"
    elif first.problem.startswith("no such key"):
        problem = f"the installed build has no key {first.place} in its YAML file"
    else:
        problem = f"the installed {first.program} does not take {first.place}: {first.problem}"
    near = first.expected.removesuffix("?") if first.expected.endswith("?") else ""
    hint = f"the installed program has {near}; " if near else ""
    line = told_by(build.version, first)
    return CliDrift(
        problem + more,
        field=f"{title} {build.version}",
        found=first.found,
        expected=first.expected if not near else f"{kind} of the installed build",
        hint=f"{hint}{line or 'the release table'} makes perfgate write it: give the true release "
        "with --engine-version, or report that the table is wrong",
    )
