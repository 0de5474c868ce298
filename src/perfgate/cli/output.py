"""What all commands share: options with their helps; texts for people, JSON for scripts."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.reports.tables import markdown_table, text_table


def described(
    parser: argparse.ArgumentParser, helps: Mapping[str, str]
) -> Callable[..., argparse.Action]:
    """`add_argument` of `parser`, which takes each argument's help from `helps`, by its name."""

    def add(*names: str, **settings: Any) -> argparse.Action:
        return parser.add_argument(*names, help=helps[names[-1]], **settings)

    return add


def verb_maker(command: argparse.ArgumentParser) -> Callable[..., argparse.ArgumentParser]:
    """Makes verbs of a command: name, summary, what runs it (or its module says that), text."""
    verbs = command.add_subparsers(required=True, metavar="VERB")

    def make(
        name: str,
        summary: str,
        execute: Callable[[argparse.Namespace], int] | None = None,
        about: str | None = None,
    ) -> argparse.ArgumentParser:
        as_written = argparse.RawDescriptionHelpFormatter
        verb = verbs.add_parser(name, help=summary, description=about, formatter_class=as_written)
        verb.set_defaults(execute=execute)
        return verb

    return make


def add_format(parser: argparse.ArgumentParser, *, markdown: bool = False) -> None:
    """The option that every command has."""
    choices = ["text", "json", *(["markdown"] if markdown else [])]
    parser.add_argument(
        "--format", choices=choices, default="text", help="for people, or for scripts"
    )


def refuse_given(
    arguments: argparse.Namespace, defaults: Mapping[str, object], problem: str, **told: Any
) -> None:
    """Refuse each of the options that is not its default.

    Raises:
        InputError: one was given.
    """
    for option, default in defaults.items():
        if getattr(arguments, option.removeprefix("--").replace("-", "_")) != default:
            raise InputError(problem, field=option, **told)


def answer(
    arguments: argparse.Namespace,
    value: object,
    *texts: str | Callable[[], str],
    status: int = 0,
) -> int:
    """Print a value as JSON or the texts, as --format asks; returns the exit status.

    A text that takes time is given as what makes it: it is made where it is printed alone.
    """
    if arguments.format == "json":
        print_json(value)
    else:
        for text in texts:
            print(text() if callable(text) else text)
    return status


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    print(json_text(value, indent=2))


def print_script(text: str) -> None:
    """A script on standard output, in UTF-8 whatever the terminal's encoding is.

    An escape in place of a character that the encoding lacks would be another word to the shell;
    bytes of a file's name that are no UTF-8 are written as they are.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="surrogateescape")
    print(text, end="", flush=True)


def json_text(value: object, *, indent: int | None = None) -> str:
    """JSON that standard output can take: with JSON's own escapes if its encoding lacks something.

    An escape of another kind would be another text to who reads the JSON, or no JSON at all.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, allow_nan=False)
    return text


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], format_name: str = "text") -> str:
    """A table without its empty columns, plain or as Markdown."""
    kept = [cells for cells in zip(columns, *rows, strict=True) if any(cells[1:]) or not rows]
    heading, *lines = zip(*kept, strict=True)
    if format_name == "markdown":
        return "\n".join(markdown_table(heading, lines))
    return text_table(heading, lines)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], format_name: str = "text"
) -> None:
    """Print a `table`."""
    print(table(columns, rows, format_name))


def print_template(
    name: str, values: Mapping[str, object], **filters: Callable[..., object]
) -> None:
    """A template of this package on standard output; `table` is there in each.

    Args:
        name: of the file.
        values: that it shows.
        filters: of its own, by name.
    """
    from perfgate.reports.templating import environment  # takes longer than all of --help

    templates = environment(Path(__file__).with_name("templates"))
    templates.globals["table"] = table
    templates.filters.update(filters)
    print(templates.get_template(name).render(values), end="")
