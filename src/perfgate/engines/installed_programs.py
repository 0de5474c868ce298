"""The installed programs of an engine: what they print, and does what perfgate renders fit them?

A release table can be wrong, or a build can stand between two releases: that is found out here,
before any GPU time, not by a program that ends with status 2 after the others were started.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.errors import CliDrift, InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import Program
from perfgate.engines.base import EngineBuild
from perfgate.engines.definitions import YAML, Definitions, Options
from perfgate.engines.help_page import options_in
from perfgate.engines.option_check import Call, Mismatch, of_call

LIMIT_S = 180.0  # importing torch and the bindings from a cold network disk takes minutes
_MOST_TOLD = 4  # mismatches in one message; the rest is counted

Calls = Callable[[Command], Iterable[Call]]
"""The calls of an engine's programs inside a command, whatever launcher stands before them."""
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


def verify_pages(
    build: EngineBuild,
    title: str,
    commands: Iterable[Command],
    calls: Calls,
    told_by: ToldBy,
    locations: Locations,
    *,
    dashes_alike: bool = True,
) -> tuple[str, ...]:
    """Ask the installed programs, each once, whether they take all that `commands` give them.

    For an engine whose programs read their options with argparse and take no settings file.

    Args:
        build: the engine's.
        title: name of the engine, for people.
        commands: as rendered.
        calls: finds the engine's programs in a command.
        told_by: finds the line of the release tables.
        locations: where the programs are.
        dashes_alike: whether they take ``_`` for ``-`` in an option's name.

    Returns:
        What could not be asked, and why, for the record; empty: all was asked.

    Raises:
        InputError: an option or choice that the build lacks, or a program that lists no options.
        RunError: the container that the programs are in cannot be had.
    """
    asked = tuple(commands)
    pages: dict[str, Options] = {}
    notes: list[str] = []
    for call in (call for command in asked for call in calls(command)):
        if call.help and call.page not in pages:
            pages[call.page] = page(call, locations)
        elif not call.help:
            notes.append(f"options of {call.page}: not asked")
    definitions = Definitions(
        engine=build.name,
        version=build.version,
        source="the installed build",
        whole=True,
        programs=pages,
        abbreviates=True,
        dashes_alike=dashes_alike,
    )
    found = dict.fromkeys(
        mismatch
        for command in asked
        for call in calls(command)
        if call.page in pages
        for mismatch in of_call(call, definitions)
    )
    if found:
        asked_by = {place: by for command in asked for place, by in command.asked_by.items()}
        raise unknown_extra(build, title, found, asked_by) or drift(
            build, title, tuple(found), told_by
        )
    return tuple(dict.fromkeys(notes))


def page(call: Call, locations: Locations) -> Options:
    """The options that a program lists for itself.

    Raises:
        InputError: it lists none.
        RunError: the container that it is in cannot be had.
    """
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


def unknown_extra(
    build: EngineBuild, title: str, found: Iterable[Mismatch], asked_by: Mapping[str, str]
) -> InputError | None:
    """What is wrong with the first that a scenario itself gives; None: all are of the tables."""
    for one in found:
        if one.place in asked_by:
            return InputError(
                f"the installed {title} {build.version} does not take this: {one.problem}",
                field=asked_by[one.place],
                found=f"{one.place} {one.found}" if one.found != one.place else one.found,
                expected=one.expected,
                hint="correct it, or take it out of the scenario",
            )
    return None


def drift(build: EngineBuild, title: str, found: tuple[Mismatch, ...], told_by: ToldBy) -> CliDrift:
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
