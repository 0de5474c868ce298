"""Options: a command line, read as the real program of the played release reads it.

What is known comes from a recorded page (`recorded_pages`); the help page, the checks of kinds,
choices and what is required, the messages and the status 2 are those of the library that the real
program uses: argparse itself, or click as `click_options` imitates it.

A mock program for another program takes three steps:

1. the program's options in a page of ``recorded/`` (without one it has no options to play);
2. a module with `main`, which takes the words behind the program and begins with `started`; it
   reads values by any spelling of an option:
   ``playbook, given = started("trtllm-eval gpqa_diamond", argv, argparse=False)``. A program with
   subcommands reads its own options first, then `read` reads those of `GivenOptions.command` from
   `GivenOptions.rest`;
3. a line in `setup`, which puts it in place (or in `fake_files`, where it is a script).
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from perfgate.engines.definitions import OptionDefinition, Options
from perfgate.rehearsal.healthy_log import banner
from perfgate.rehearsal.playbook import Playbook, announce, end, here
from perfgate.rehearsal.recorded_pages import label
from perfgate.rehearsal.recorded_pages import read as read_page

# What --help and the command line lose with the fault cli_drift_help: options always in use.
_GONE = {
    *("--dataset", "--tp_size", "--tp-size", "--tensor-parallel-size"),
    *("--model_dir", "--data_dir"),
}


@dataclass(frozen=True)
class GivenOptions:
    """What stood on the command line.

    Attributes:
        options: what the program knows.
        values: name of an option → its words; ``()`` for a flag that was given.
        words: arguments that belong to no option.
        command: the subcommand; empty: the program has none.
        rest: what follows it.
    """

    options: Options
    values: Mapping[str, tuple[str, ...]]
    words: tuple[str, ...] = ()
    command: str = ""
    rest: tuple[str, ...] = ()

    def has(self, spelling: str) -> bool:
        """Whether the option was given."""
        return bool(self._names(spelling) & self.values.keys())

    def all(self, spelling: str) -> tuple[str, ...]:
        """The words of an option; none where it was not given."""
        return next((self.values[name] for name in self._names(spelling) & self.values.keys()), ())

    def text(self, spelling: str, default: str = "") -> str:
        """The value of an option, or its default as the page tells it, or `default`."""
        found = self.all(spelling)
        if found:
            return found[-1]
        told = [self.options[name].default for name in self._names(spelling)]
        return str(told[0]) if told and isinstance(told[0], str | int | float) else default

    def integer(self, spelling: str, default: int) -> int:
        return int(self.text(spelling, str(default)))

    def number(self, spelling: str, default: float) -> float:
        return float(self.text(spelling, str(default)))

    def _names(self, spelling: str) -> set[str]:
        return {name for name, option in self.options.items() if spelling in option.options}


@dataclass(frozen=True)
class Syntax:
    """What one program accepts.

    Attributes:
        program: its name, with its subcommands.
        options: by name.
        subcommands: names of its subcommands.
        drifted: it refuses the last option it is given, although its help page lists it.
    """

    program: str
    options: Options
    subcommands: tuple[str, ...] = ()
    drifted: bool = False


def started(
    program: str,
    argv: Sequence[str],
    *,
    argparse: bool = True,
    engine: bool = False,
) -> tuple[Playbook, GivenOptions]:
    """What every program of TensorRT-LLM does first: say who plays, greet, read its options.

    Args:
        program: as a recorded page names it.
        argv: its arguments.
        argparse: whether the real one reads its options with argparse; else with click.
        engine: whether the fault of an option that drifted belongs to this program.
    """
    playbook = here()
    announce(program)
    banner(playbook.version)
    return playbook, read(playbook, program, argv, argparse=argparse, engine=engine)


def read(
    playbook: Playbook,
    program: str,
    argv: Sequence[str],
    *,
    argparse: bool = False,
    engine: bool = False,
) -> GivenOptions:
    """Read a command line; shows the help page, or what is wrong with it, and ends the program.

    Args:
        playbook: of this program.
        program: as a recorded page names it.
        argv: its arguments.
        argparse: see `started`.
        engine: see `started`.
    """
    syntax = played(playbook, program, engine=engine)
    if argparse:
        from perfgate.rehearsal.argparse_options import given
    else:
        from perfgate.rehearsal.click_options import given
    return given(syntax, argv)


def played(playbook: Playbook, program: str, *, engine: bool = False) -> Syntax:
    """What `program` accepts at the played release; ends the program if that has none such.

    While nobody says which scenario it is for, what any of the releases knows is known.
    """
    pages: dict[str, Options] = {}
    commands: dict[str, None] = {}
    for version, programs in reversed(list(playbook.releases.items())):
        name = programs.get(program)
        if name is not None and name not in pages:
            pages[name] = read_page(name).options(program)
            announce_page(program, version, name)
        begins = f"{program} "
        commands |= dict.fromkeys(
            one.removeprefix(begins) for one in programs if one.startswith(begins)
        )
    if not pages:
        end(f"{playbook.engine} {' and '.join(playbook.releases)} has no {program}")
    options = next(iter(pages.values())) if len(pages) == 1 else _any_of(pages.values())
    fault = playbook.fault_at("engine") if engine else None
    if fault == "cli_drift_help":
        options = {name: one for name, one in options.items() if not _GONE & set(one.options)}
    subcommands = tuple(sorted(name for name in commands if " " not in name))
    return Syntax(program, options, subcommands, drifted=fault == "cli_drift")


def announce_page(program: str, version: str, name: str) -> None:
    """Say on standard error that a release is played from the page of another."""
    if label(name) != version:
        print(
            f"perfgate rehearsal: no option page of {version} is recorded: {program} has the "
            f"options of {label(name)}",
            file=sys.stderr,
        )


def _any_of(pages: Iterable[Options]) -> Options:
    """What any of the pages knows; choices and what is required are those of no release."""
    found: dict[str, OptionDefinition] = {}
    spelled: set[str] = set()
    for page in pages:
        for name, option in page.items():
            if not spelled.intersection(option.spellings):
                spelled.update(option.spellings)
                found[name if name not in found else option.options[0]] = replace(
                    option, choices=(), required=False
                )
    return found
