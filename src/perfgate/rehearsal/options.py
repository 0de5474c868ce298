"""Options: a command line, read as the real program of the played release reads it.

What is known comes from a recorded page (`recorded_pages`); the help page, the checks of kinds,
choices and what is required, the messages and the status 2 are those of the library that the real
program uses: argparse itself, or click as it is imitated here. click is no dependency of perfgate;
what it does that no scenario meets is left out: prompts, variables of the environment, short
options that are joined, a number of values above one.

A mock program for another program takes three steps:

1. the program's options in a page of ``recorded/`` (without one it has no options to play);
2. a function of a module in ``programs/``, which takes the words behind the program and begins
   with `started`; it reads values by any spelling of an option:
   ``playbook, given = started("trtllm-eval gpqa_diamond", argv)``. A program with subcommands reads
   its own options first, then `read` reads those of `GivenOptions.command` from
   `GivenOptions.rest`;
3. a line in `setup`, which puts it in place (or in `fake_files`, where it is a script).
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from msgspec.structs import replace

from perfgate.engines.definitions import OptionDefinition, Options
from perfgate.rehearsal.playbook import Playbook, announce, banner, end, here
from perfgate.rehearsal.recorded_pages import label
from perfgate.rehearsal.recorded_pages import read as read_page

# What --help and the command line lose with the fault cli_drift_help: options always in use.
_GONE = {
    *("--dataset", "--tp_size", "--tp-size", "--tensor-parallel-size"),
    *("--model_dir", "--data_dir"),
}
_BY_CLICK = {"trtllm-bench", "trtllm-serve", "trtllm-eval", "prepare_dataset.py"}
_BOOLEANS = {"true", "t", "1", "yes", "y", "on", "false", "f", "0", "no", "n", "off"}
_TYPES = {"integer": int, "number": float}


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
    program: str, argv: Sequence[str], *, engine: bool = False
) -> tuple[Playbook, GivenOptions]:
    """What every program of TensorRT-LLM does first: say who plays, greet, read its options.

    Args:
        program: as a recorded page names it.
        argv: its arguments.
        engine: whether the fault of an option that drifted belongs to this program.
    """
    playbook = here()
    announce(program)
    banner(playbook.version)
    return playbook, read(playbook, program, argv, engine=engine)


def read(
    playbook: Playbook, program: str, argv: Sequence[str], *, engine: bool = False
) -> GivenOptions:
    """Read a command line; shows the help page, or what is wrong with it, and ends the program.

    Args:
        playbook: of this program.
        program: as a recorded page names it.
        argv: its arguments.
        engine: see `started`.
    """
    by_click = program.split()[0] in _BY_CLICK
    return (read_as_click if by_click else read_as_argparse)(
        played(playbook, program, engine=engine), argv
    )


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


def read_as_argparse(syntax: Syntax, argv: Sequence[str]) -> GivenOptions:
    """Read `argv` with argparse itself: its abbreviations and messages."""
    from argparse import SUPPRESS, ArgumentParser  # half of the programs start faster without it

    parser = ArgumentParser(prog=syntax.program.split()[0])
    for name, option in syntax.options.items():
        if option.kind == "argument":
            parser.add_argument(name)
            continue
        parser.add_argument(*option.options, dest=name, default=SUPPRESS, **_settings(option))
        shown = [word for word in option.off if word not in option.hidden]
        for words, told in ((shown, None), (option.hidden, SUPPRESS)):
            if words:
                parser.add_argument(
                    *words, dest=name, default=SUPPRESS, action="store_false", help=told
                )
    found = vars(parser.parse_args(argv))
    if syntax.drifted and found:
        parser.error(f"unrecognized arguments: {syntax.options[next(reversed(found))].options[0]}")
    words = tuple(
        found.pop(name) for name, option in syntax.options.items() if option.kind == "argument"
    )
    values = {name: _words(value) for name, value in found.items() if value is not False}
    return GivenOptions(syntax.options, values, words)


def _settings(option: OptionDefinition) -> dict[str, Any]:
    settings: dict[str, Any] = {"required": option.required}
    if option.kind == "flag":
        return {**settings, "action": "store_true"}
    kind = _TYPES.get(option.kind, str)
    settings |= {"type": kind, "choices": [kind(one) for one in option.choices] or None}
    if option.many:
        settings["nargs"] = "+"
    if option.repeated:
        settings["action"] = "append"
    return settings


def _words(value: Any) -> tuple[str, ...]:
    if value is True:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def read_as_click(syntax: Syntax, argv: Sequence[str]) -> GivenOptions:
    """Read `argv`; ends the program as click does, with its checks, messages and status."""
    values: dict[str, tuple[str, ...]] = {}
    words: list[str] = []
    last, left = "", list(argv)
    while left:
        word = left.pop(0)
        if word == "--":
            words += left
            left = []
        elif word.startswith("-") and word != "-":
            last = _take(syntax, word, left, values)
        else:
            words.append(word)
            if syntax.subcommands:
                break
    if syntax.drifted and last:
        _wrong(syntax, f"No such option: {last}")
    return _checked(syntax, values, words, left)


def _take(syntax: Syntax, word: str, left: list[str], values: dict[str, tuple[str, ...]]) -> str:
    """Put the option `word` and its value, which may be the first of `left`, into `values`.

    Returns:
        How the option was spelled.
    """
    spelling, equals, value = word.partition("=")
    if spelling == "--help":
        _show_help(syntax)
    known = {one: name for name, option in syntax.options.items() for one in option.spellings}
    if spelling not in known:
        _wrong(syntax, f"No such option: {spelling}{_near(spelling, known)}")
    name = known[spelling]
    option = syntax.options[name]
    if option.kind == "flag":
        if equals:
            _wrong(syntax, f"Option '{spelling}' does not take a value.")
        values.pop(name, None)
        if spelling not in option.off:
            values[name] = ()
        return spelling
    if not equals and not left:
        _wrong(syntax, f"Option '{spelling}' requires an argument.")
    before = values.get(name, ()) if option.repeated else ()
    values[name] = (*before, value if equals else left.pop(0))
    return spelling


def _checked(
    syntax: Syntax, values: dict[str, tuple[str, ...]], words: list[str], left: list[str]
) -> GivenOptions:
    for name, option in syntax.options.items():
        spelled = " / ".join(f"'{one}'" for one in option.options)
        for value in values.get(name, ()):
            problem = _problem(option, value)
            if problem:
                _wrong(syntax, f"Invalid value for {spelled}: {problem}")
        if option.required and option.kind != "argument" and name not in values:
            _wrong(syntax, f"Missing option {spelled}.")
    if syntax.subcommands:
        command = next(iter(words), "")
        if not command:
            _wrong(syntax, "Missing command.")
        if command not in syntax.subcommands:
            _wrong(syntax, f"No such command '{command}'.")
        return GivenOptions(syntax.options, values, (), command, tuple(left))
    arguments = _arguments(syntax)
    if len(words) < len(arguments):
        _wrong(syntax, f"Missing argument '{arguments[len(words)]}'.")
    if len(words) > len(arguments):
        extra = words[len(arguments) :]
        plural = "s" if len(extra) > 1 else ""
        _wrong(syntax, f"Got unexpected extra argument{plural} ({' '.join(extra)})")
    return GivenOptions(syntax.options, values, tuple(words))


def _problem(option: OptionDefinition, value: str) -> str | None:
    if option.choices:
        listed = ", ".join(map(repr, option.choices))
        return None if value in option.choices else f"{value!r} is not one of {listed}."
    if option.kind == "boolean":
        return None if value.lower() in _BOOLEANS else f"{value!r} is not a valid boolean."
    kind = _TYPES.get(option.kind, str)
    try:
        kind(value)
    except ValueError:
        return f"{value!r} is not a valid {kind.__name__.replace('int', 'integer')}."
    return None


def _near(spelling: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # as above

    found = sorted(get_close_matches(spelling, list(known)))
    if len(found) > 1:
        return f" (Possible options: {', '.join(found)})"
    return f" Did you mean {found[0]}?" if found else ""


def _wrong(syntax: Syntax, message: str) -> NoReturn:
    print(
        f"Usage: {_usage(syntax)}\nTry '{syntax.program} --help' for help.\n\nError: {message}",
        file=sys.stderr,
    )
    raise SystemExit(2)


def _usage(syntax: Syntax) -> str:
    commands = ["COMMAND [ARGS]..."] if syntax.subcommands else []
    return " ".join([syntax.program, "[OPTIONS]", *_arguments(syntax), *commands])


def _arguments(syntax: Syntax) -> list[str]:
    return [one.options[0].upper() for one in syntax.options.values() if one.kind == "argument"]


def _show_help(syntax: Syntax) -> NoReturn:
    lines = [f"Usage: {_usage(syntax)}", "", "Options:"]
    for option in syntax.options.values():
        if option.kind == "argument":
            continue
        spelled = ", ".join(sorted(option.options, key=len))
        off = f" / {', '.join(option.off)}" if option.off else ""
        taken = "" if option.kind == "flag" else f" {_metavar(option)}"
        mark = f"  :tag:`{option.status}`" if option.status else ""  # as TensorRT-LLM's help has it
        lines.append(f"  {spelled}{off}{taken}{mark}")
    lines.append("  --help  Show this message and exit.")
    if syntax.subcommands:
        lines += ["", "Commands:", *(f"  {name}" for name in syntax.subcommands)]
    print("\n".join(lines))
    raise SystemExit(0)


def _metavar(option: OptionDefinition) -> str:
    if option.choices:
        return f"[{'|'.join(option.choices)}]"
    return {"integer": "INTEGER", "number": "FLOAT", "boolean": "BOOLEAN"}.get(option.kind, "TEXT")
