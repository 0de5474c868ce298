"""Options: a command line, read as the real program of the played release reads it.

What is known comes from a recorded page (`recorded_pages`). The help page, the checks of kinds,
choices and what is required, the messages and the status 2 are those of the library that the real
program uses: click or argparse.

A mock program for another program takes three steps:

1. the program's options in a page of ``recorded/`` (without one it has no options to play);
2. a function of a module in ``programs/``, which takes the words behind the program and begins
   with `started`; it reads values by any spelling of an option:
   ``playbook, given = started("trtllm-eval gpqa_diamond", argv)``. A program with subcommands reads
   its own options first, then `read` reads those of `GivenOptions.command` from
   `GivenOptions.rest`;
3. a line in `setup`, which puts it in place (or in `fake_files`, where it is a script).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from perfgate.engines.definitions import OptionDefinition, Options
from perfgate.rehearsal.playbook import Playbook, announce, banner, end, here, say
from perfgate.rehearsal.recorded_pages import label
from perfgate.rehearsal.recorded_pages import read as read_page

if TYPE_CHECKING:  # each is imported by the programs that need it: mock programs start often
    import click

# What --help and the command line lose with the fault cli_drift_help: options always in use.
_GONE = {
    *("--dataset", "--tp_size", "--tp-size", "--tensor-parallel-size"),
    *("--model_dir", "--data_dir"),
}
_BY_CLICK = {"trtllm-bench", "trtllm-serve", "trtllm-eval", "prepare_dataset.py"}
_TYPES: Mapping[str, type] = {"integer": int, "number": float, "boolean": bool}
_T = TypeVar("_T", int, float, str)


@dataclass(frozen=True)
class GivenOptions:
    """What stood on the command line.

    Attributes:
        options: what the program knows.
        values: name of an option or argument that was given → its value, or several.
        command: the subcommand; empty: the program has none.
        rest: what follows it.
    """

    options: Options
    values: Mapping[str, Any]
    command: str = ""
    rest: tuple[str, ...] = ()

    def has(self, spelling: str) -> bool:
        """Whether the option was given, and not switched off."""
        return self.values.get(self._name(spelling), False) is not False

    def all(self, spelling: str) -> tuple[str, ...]:
        """The words of an option; none where it was not given."""
        found = self.values.get(self._name(spelling), ())
        return tuple(map(str, found if isinstance(found, list | tuple) else (found,)))

    def get(self, spelling: str, default: _T) -> _T:
        """The value of an option, or its default as the page tells it, or `default`; its type."""
        words, name = self.all(spelling), self._name(spelling)
        if not words and name:
            told = self.options[name].default
            words = (str(told),) if isinstance(told, str | int | float) else ()
        return type(default)(words[-1]) if words else default

    def _name(self, spelling: str) -> str:
        return next((name for name, one in self.options.items() if spelling in one.options), "")


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
    options, subcommands = _played(playbook, program)
    fault = playbook.fault_at("engine") if engine else None
    if fault == "cli_drift_help":
        options = {name: one for name, one in options.items() if not _GONE & set(one.options)}
    if fault == "cli_drift" and "--help" not in argv:  # the last option is refused all the same
        known = {word: name for name, one in options.items() for word in one.spellings}
        given = [known[one] for word in argv if (one := word.partition("=")[0]) in known]
        options = {name: one for name, one in options.items() if name not in given[-1:]}
    if program.split()[0] in _BY_CLICK:
        return _read_as_click(program, options, argv, subcommands)
    return read_as_argparse(program, options, argv)


def _played(playbook: Playbook, program: str) -> tuple[Options, Sequence[str]]:
    """Options and subcommands of `program` at the played release; ends if there is none such.

    While nobody says which scenario it is for, what any of the releases knows is known.
    """
    pages: dict[str, Options] = {}
    commands: set[str] = set()
    for version, programs in reversed(list(playbook.releases.items())):
        name = programs.get(program)
        if name is not None and name not in pages:
            pages[name] = read_page(name).programs[program]
            announce_page(program, version, name)
        below = (one.split(f"{program} ", 1)[1] for one in programs if f"{program} " in one)
        commands |= {one for one in below if " " not in one}
    if not pages:
        end(f"{playbook.engine} {' and '.join(playbook.releases)} has no {program}")
    options = next(iter(pages.values())) if len(pages) == 1 else _any_of(pages.values())
    return options, sorted(commands)


def announce_page(program: str, version: str, name: str) -> None:
    """Say on standard error that a release is played from the page of another."""
    if label(name) != version:
        of = f"{program} has the options of {label(name)}"
        say(f"no option page of {version} is recorded: {of}")


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


def read_as_argparse(program: str, options: Options, argv: Sequence[str]) -> GivenOptions:
    """Read `argv` with argparse: its abbreviations and messages."""
    from argparse import SUPPRESS, ArgumentParser

    parser = ArgumentParser(prog=program.split()[0])
    for name, option in options.items():
        if option.kind == "argument":
            parser.add_argument(name)
            continue
        place: dict[str, Any] = {"dest": name, "default": SUPPRESS}
        settings: dict[str, Any] = {"action": "store_true"}
        if option.kind != "flag":
            kind = int if option.kind == "integer" else float if option.kind == "number" else str
            settings = {"type": kind, "choices": [kind(one) for one in option.choices] or None}
            settings |= {"nargs": "+"} if option.many else {}
            settings |= {"action": "append"} if option.repeated else {}
        parser.add_argument(*option.options, **place, **settings, required=option.required)
        shown = [word for word in option.off if word not in option.hidden]
        for words, told in ((shown, None), (option.hidden, SUPPRESS)):
            if words:
                parser.add_argument(*words, **place, action="store_false", help=told)
    return GivenOptions(options, vars(parser.parse_args(argv)))


def _read_as_click(
    program: str, options: Options, argv: Sequence[str], subcommands: Sequence[str]
) -> GivenOptions:
    """Read `argv` with click: its checks and messages; what follows a subcommand is left."""
    import click
    from click.core import ParameterSource

    def context(**_: Any) -> click.Context:
        return click.get_current_context()

    parameters = {name: _parameter(option) for name, option in options.items()}
    if subcommands:
        anything = {"ignore_unknown_options": True, "allow_interspersed_args": False}
        left = {**anything, "allow_extra_args": True, "help_option_names": []}
        below = {
            name: click.Command(name, context_settings=left, callback=context)
            for name in subcommands
        }
        command: click.Command = click.Group(commands=below, no_args_is_help=False)
    else:
        command = click.Command(None, callback=context)
    command.params = list(parameters.values())
    try:
        found = command.main(list(argv), program, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    if isinstance(found, int):  # a help page was shown
        raise SystemExit(found)
    own = found.parent or found
    values = {
        name: own.params[one.name]
        for name, one in parameters.items()
        if own.get_parameter_source(one.name) is ParameterSource.COMMANDLINE
    }
    return GivenOptions(options, values, found.info_name or "", tuple(found.args))


def _parameter(option: OptionDefinition) -> "click.Parameter":
    import click

    if option.kind == "argument":
        return click.Argument(option.options)
    name = option.options[0].strip("-").replace("-", "_")
    spelled = [name, "/".join((option.options[0], *option.off)), *option.options[1:]]
    settings: dict[str, Any] = {"required": option.required, "multiple": option.repeated}
    if option.kind == "flag":
        settings["is_flag"] = True
    else:
        kind = _TYPES.get(option.kind, str)
        settings["type"] = click.Choice(option.choices) if option.choices else kind
    # As TensorRT-LLM's help has it.
    return click.Option(spelled, **settings, help=option.status and f":tag:`{option.status}`")
