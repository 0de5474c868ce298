"""Do the installed programs know the options that perfgate gives them? Asked with `--help`.

A release table can be wrong, or a build can stand between two releases: that is found out here,
before any GPU time, not by a program that ends with status 2 after the others were started.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.errors import CliDrift, InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import BENCHMARK_SERVING as BENCHMARK_SERVING_PROGRAM
from perfgate.core.programs import TENSORRT_LLM_PYTHON, TRTLLM_BENCH, TRTLLM_SERVE, Program
from perfgate.core.suggestion import nearest
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.program_output import answer
from perfgate.engines.tensorrt_llm.releases.table import (
    BENCH,
    BENCHMARK_SERVING,
    GPQA,
    PREPARE,
    PREPARE_SCRIPT,
    QUICKSTART,
    SERVE,
    THROUGHPUT,
)

_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_DECLARATION = re.compile(r"^\s*(-.*?)(?:\s{2,}|$)")
_SUBCOMMANDS = {"throughput": THROUGHPUT, "prepare-dataset": PREPARE}
_SCRIPTS = (PREPARE_SCRIPT, QUICKSTART, GPQA)
_GENERATOR = "token-norm-dist"
_HERE = Locations()


@dataclass(frozen=True)
class Call:
    """One program call inside a command: the program, how it tells its options, what it is given.

    Attributes:
        program: name as in the release tables.
        help: the argv that prints the program's options.
        arguments: what the command gives to it.
    """

    program: str
    help: tuple[str, ...]
    arguments: tuple[str, ...]


def verify(build: EngineBuild, commands: Iterable[Command], locations: Locations) -> None:
    """Ask each program once whether it knows all options that `commands` give it.

    Raises:
        InputError: an option that the installed program lacks, or a program that tells none.
        RunError: the container that the programs are in cannot be had.
    """
    for command in commands:
        for call in calls(command.argv, locations):
            said = answer(call.help, locations)
            known = options_in_help(said)
            if not known:
                raise InputError(
                    f"{call.program} does not list its options",
                    field=shlex.join(call.help),
                    found=_last_line(said),
                    expected="a list of options",
                    hint="run it by hand: the installation may be broken",
                )
            for option in missing_options(call.arguments, known):
                raise _drift(build, call.program, option, known)


def calls(argv: Sequence[str], locations: Locations = _HERE) -> tuple[Call, ...]:
    """The calls of known programs in `argv`, whatever launcher stands before them.

    Args:
        argv: a command's words.
        locations: where programs are, which says how they are spelled.
    """
    for position, word in enumerate(argv):
        if " " in word and any(name in word for name in _executables()):
            return calls(_words(word), locations)
        found = _call(argv, position, locations)
        if found:
            return tuple(found)
    return ()


def options_in_help(text: str) -> frozenset[str]:
    """All spellings of all options that a help text declares (of click or argparse)."""
    found: set[str] = set()
    for line in text.splitlines():
        declared = _DECLARATION.match(line)
        if declared is not None:
            found.update(_OPTION.findall(declared[1]))
    return frozenset(found)


def missing_options(arguments: Sequence[str], known: frozenset[str]) -> tuple[str, ...]:
    """The options among `arguments` that are not `known`, in their order; ``-1`` is a value."""
    given = (word.partition("=")[0] for word in arguments)
    return tuple(
        dict.fromkeys(word for word in given if _OPTION.fullmatch(word) and word not in known)
    )


def _call(argv: Sequence[str], position: int, locations: Locations) -> list[Call]:
    word = Path(argv[position]).name
    if word in _SCRIPTS:
        interpreter = _interpreter(argv, position, locations)
        arguments = _until(argv[position + 1 :], _GENERATOR)
        return [Call(word, (*interpreter, argv[position], "--help"), arguments)]
    for name, program in _PROGRAMS:
        prefix = _prefix(argv, position, program, locations)
        if prefix is not None:
            rest = tuple(argv[position + len(prefix) :])
            return list(_split(name, prefix, rest))
    return []


def _split(name: str, prefix: tuple[str, ...], rest: tuple[str, ...]) -> Iterator[Call]:
    """`trtllm-bench` has options before and behind its subcommand."""
    if name == SERVE:
        yield Call(SERVE, (*prefix, "serve", "--help"), rest)
        return
    if name == BENCHMARK_SERVING:
        yield Call(name, (*prefix, "--help"), rest)
        return
    at = next((at for at, word in enumerate(rest) if word in _SUBCOMMANDS), len(rest))
    yield Call(BENCH, (*prefix, "--help"), rest[:at])
    if at < len(rest):
        # click wants --model before it shows the help of a subcommand.
        asked = (*prefix, "--model", "any", rest[at], "--help")
        yield Call(_SUBCOMMANDS[rest[at]], asked, _until(rest[at + 1 :], _GENERATOR))


def _prefix(
    argv: Sequence[str], position: int, program: Program, locations: Locations
) -> tuple[str, ...] | None:
    """The words of `program` at `position`: as typed, or as found where it is."""
    try:
        spellings = [locations.find(program), program.bare()]
    except (MissingProgram, InputError):
        spellings = [program.bare()]
    for words in spellings:
        there = tuple(argv[position : position + len(words)])
        if there == words or (
            len(there) == len(words) and Path(there[0]).name == words[0] and there[1:] == words[1:]
        ):
            return there
    return None


def _interpreter(argv: Sequence[str], position: int, locations: Locations) -> tuple[str, ...]:
    """The words before a script that run it: as found where it is, else the one before it."""
    for before in range(position):
        found = _prefix(argv, before, TENSORRT_LLM_PYTHON, locations)
        if found is not None and before + len(found) == position:
            return found
    return tuple(argv[max(0, position - 1) : position])


def _until(words: Sequence[str], end: str) -> tuple[str, ...]:
    """What stands before `end`: options behind it belong to another program's help."""
    return tuple(words[: words.index(end)] if end in words else words)


_PROGRAMS: tuple[tuple[str, Program], ...] = (
    (BENCH, TRTLLM_BENCH),
    (SERVE, TRTLLM_SERVE),
    (BENCHMARK_SERVING, BENCHMARK_SERVING_PROGRAM),
)


def _executables() -> tuple[str, ...]:
    return (
        TRTLLM_BENCH.executable,
        TRTLLM_SERVE.executable,
        BENCHMARK_SERVING_PROGRAM.arguments[-1],
        *_SCRIPTS,
    )


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing"


def _drift(build: EngineBuild, program: str, option: str, known: frozenset[str]) -> CliDrift:
    near = nearest(option, sorted(known))
    hint = f"the installed program has {near}; " if near else ""
    return CliDrift(
        f"the installed {program} has no option {option}",
        field=f"TensorRT-LLM {build.version}",
        found=option,
        expected="an option of the installed program: perfgate's table of this release names it",
        hint=f"{hint}give the true release with --engine-version, or report that the table in "
        "perfgate.engines.tensorrt_llm.releases is wrong",
    )
