"""Options: read a command line as the imitated release would, and refuse what it would refuse."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from perfgate.rehearsal.healthy_log import banner
from perfgate.rehearsal.playbook import Playbook, announce, end, here
from perfgate.rehearsal.release_tables import Option

Style = Literal["click", "argparse"]

# What --help and the command line lose with the fault cli_drift_help: options always in use.
_GONE = ("--dataset", "--tp_size", "--model_dir", "--data_dir")


@dataclass(frozen=True)
class GivenOptions:
    """What stood on the command line.

    Attributes:
        values: option name → its values; ``()`` for a flag that was given, by its own name.
        words: arguments that belong to no option.
        rest: what follows the first word, where that names a subcommand.
    """

    values: Mapping[str, tuple[str, ...]]
    words: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """The value of an option."""
        found = self.values.get(name)
        return found[-1] if found else default

    def integer(self, name: str, default: int) -> int:
        return int(self.text(name, str(default)))

    def number(self, name: str, default: float) -> float:
        return float(self.text(name, str(default)))


@dataclass(frozen=True)
class Syntax:
    """The options of one program.

    Attributes:
        program: its name, with its subcommands.
        style: the library that the real program reads its options with.
        options: what it knows, by name.
        subcommands: names of subcommands; the first of them takes all that follows.
        drifted: it refuses the last option it is given, although its help page lists it.
    """

    program: str
    style: Style
    options: Mapping[str, Option]
    subcommands: tuple[str, ...] = ()
    drifted: bool = False
    _spelled: Mapping[str, Option] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        spelled = {word: option for option in self.options.values() for word in option.spellings}
        object.__setattr__(self, "_spelled", spelled)

    def read(self, argv: Sequence[str]) -> GivenOptions:
        """Read `argv`; prints the help page, or what is wrong with it, and ends the program.

        Args:
            argv: without the program's name.
        """
        values: dict[str, tuple[str, ...]] = {}
        words: list[str] = []
        left = list(argv)
        while left:
            word = left.pop(0)
            if word == "--help" or (word == "-h" and self.style == "argparse"):
                self._show_help()
            if not word.startswith("-") or word == "-":
                words.append(word)
                if self.subcommands:
                    break
                continue
            name, equals, value = word.partition("=")
            option = self._spelled.get(name)
            if option is None:
                self.refuse(name)
            if option.flag:
                values[name if name == option.negation else option.name] = ()
                continue
            taken = [value] if equals else self._taken(left)
            if not taken:
                self._lacks_argument(name)
            values[option.name] = tuple(taken)
        if self.drifted and values:
            self.refuse(next(reversed(values)))
        return GivenOptions(values, tuple(words), tuple(left))

    def refuse(self, name: str) -> NoReturn:
        """End with what the real program prints for an option it does not know."""
        if self.style == "click":
            self._wrong(f"No such option: {name}")
        self._wrong(f"unrecognized arguments: {name}")

    def require(self, given: GivenOptions, *names: str) -> None:
        """End as the real program does where an option that it needs was not given."""
        for name in names:
            if given.has(name):
                continue
            if self.style == "click":
                self._wrong(f"Missing option '{name}'.")
            self._wrong(f"the following arguments are required: {name}")

    def no_command(self, name: str) -> NoReturn:
        """End as the real program does for a subcommand that the release has not."""
        self._wrong(f"No such command '{name}'.")

    def _taken(self, left: list[str]) -> list[str]:
        """The value of an option: one word; argparse's lists run to the next option."""
        taken = [left.pop(0)] if left else []
        if self.style == "argparse":
            while left and not left[0].startswith("-"):
                taken.append(left.pop(0))
        return taken

    def _lacks_argument(self, name: str) -> NoReturn:
        if self.style == "click":
            self._wrong(f"Option '{name}' requires an argument.")
        self._wrong(f"argument {name}: expected one argument")

    def _wrong(self, message: str) -> NoReturn:
        if self.style == "click":
            print(
                f"Usage: {self.program} [OPTIONS]\nTry '{self.program} --help' for help.\n\n"
                f"Error: {message}",
                file=sys.stderr,
            )
        else:
            name = self.program.split()[0]
            print(f"usage: {name} [-h] [options]\n{name}: error: {message}", file=sys.stderr)
        raise SystemExit(2)

    def _show_help(self) -> NoReturn:
        lines = [f"  {_helped(option)}" for option in self.options.values()]
        if self.style == "click":
            lines = [
                f"Usage: {self.program} [OPTIONS] [ARGS]...",
                "",
                "Options:",
                *lines,
                "  --help  Show this message and exit.",
            ]
        else:
            lines = [
                f"usage: {self.program.split()[0]} [-h] [options]",
                "",
                "options:",
                "  -h, --help  show this help message and exit",
                *lines,
            ]
        if self.subcommands:
            lines += ["", "Commands:", *(f"  {name}" for name in self.subcommands)]
        print("\n".join(lines))
        raise SystemExit(0)


def _helped(option: Option) -> str:
    names = ", ".join(sorted((option.name, *option.aliases), key=len))
    if option.negation:
        names += f" / {option.negation}"
    meta = "" if option.flag else f" {option.name.strip('-').upper().replace('-', '_')}"
    return names + meta


def released(
    playbook: Playbook,
    program: str,
    style: Style,
    *,
    subcommands: tuple[str, ...] = (),
    engine: bool = False,
) -> Syntax:
    """The syntax of a program of the imitated release; ends the program if that has none such.

    While nobody says which scenario it is for, what any of the releases knows is known.

    Args:
        playbook: of this program.
        program: as the release tables name it, e.g. ``trtllm-bench throughput``.
        style: see `Syntax`.
        subcommands: see `Syntax`.
        engine: whether the fault of an option that drifted belongs to this program.
    """
    found: dict[str, Option] = {}
    for tables in playbook.releases.values():
        for option in tables.options(program).values():
            found.setdefault(option.name, option)
    if not found:
        end(f"TensorRT-LLM {' and '.join(playbook.releases)} has no {program}")
    fault = playbook.fault_at("engine") if engine else None
    if fault == "cli_drift_help":
        found = {name: option for name, option in found.items() if name not in _GONE}
    return Syntax(program, style, found, subcommands, drifted=fault == "cli_drift")


def started(
    program: str, argv: Sequence[str] | None, *required: str, engine: bool = False
) -> tuple[Playbook, GivenOptions]:
    """What every program of TensorRT-LLM that argparse reads does first.

    Args:
        program: as the release tables name it.
        argv: without the program's name; None: this process's own.
        required: options that it does not go without.
        engine: whether the fault of an option that drifted belongs to this program.
    """
    playbook = here()
    announce(program)
    banner(playbook.version)
    syntax = released(playbook, program, "argparse", engine=engine)
    given = syntax.read(sys.argv[1:] if argv is None else argv)
    syntax.require(given, *required)
    return playbook, given


def read_known(
    program: str, options: Iterable[str], flags: Iterable[str], argv: Sequence[str]
) -> GivenOptions:
    """Read the command line of a program that is not TensorRT-LLM's and reads it with argparse.

    Args:
        program: its name, for messages.
        options: the options that it knows and that take values.
        flags: those that take none.
        argv: without the program's name.
    """
    known = {name: Option(name) for name in options}
    known |= {name: Option(name, flag=True) for name in flags}
    return Syntax(program, "argparse", known).read(argv)
