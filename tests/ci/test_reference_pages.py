"""The tables of the reference are what the code says now."""

import argparse
import json
from pathlib import Path

import pytest
from tables import each

from ci.maintenance.reference_pages import (
    ROOT,
    SCHEMAS,
    TABLES,
    UnknownTable,
    names,
    pages,
    remade,
)
from ci.maintenance.reference_tables import command_options, prose, pytest_options, variables
from ci.maintenance.report_schema import report_schema
from perfgate.cli.command_parser import parsers_of
from perfgate.cli.main import parser
from perfgate.core.programs.environment_variables import known_variables

ASKED = "<!-- made by make reference: numbers -->\n{}<!-- end of numbers -->\n"


@each("page", pages(), ids=lambda page: page.name)
def test_a_page_is_as_the_code_has_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    fresh = remade(text) == text
    assert fresh, f"{page.relative_to(ROOT)}: the code says something else: run `make reference`"


@each("file", SCHEMAS, ids=lambda file: file.name)
def test_a_schema_is_made_of_the_values_that_it_describes(file: Path) -> None:
    assert SCHEMAS[file]() == file.read_text(encoding="utf-8"), "run `make reference`"


def test_every_field_of_a_report_is_described() -> None:
    schema = json.loads(report_schema())
    parts = [schema, *(part for part in schema["$defs"].values() if "properties" in part)]
    fields = [field for part in parts for field in part["properties"].values()]
    assert all(field.get("description") or "$ref" in field for field in fields)


def test_each_table_stands_on_one_page_once() -> None:
    asked = [name for page in pages() for name in names(page.read_text(encoding="utf-8"))]
    assert sorted(asked) == sorted(TABLES)


def test_a_table_is_made_between_its_comments_and_nowhere_else() -> None:
    new = remade("a\n" + ASKED.format("old\n") + "b\n", {"numbers": lambda: "1 2 3"})
    assert new == "a\n" + ASKED.format("\n1 2 3\n\n") + "b\n"
    assert remade(new, {"numbers": lambda: "1 2 3"}) == new


@each("text", [ASKED.format(""), ASKED.partition("{")[0]])
def test_an_unknown_table_or_one_without_end_is_refused(text: str) -> None:
    known = {} if "end of" in text else {"numbers": lambda: ""}
    with pytest.raises(UnknownTable, match="numbers"):
        remade(text, known)


def test_every_verb_and_option_is_in_the_table_and_has_a_meaning() -> None:
    text = command_options()
    for command in parsers_of(parser((), whole=True)):
        own = [
            action
            for action in command._actions
            if not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))
        ]
        assert (f"### {command.prog}\n" in text) == bool(own), command.prog
        section = text.partition(f"### {command.prog}\n")[2].partition("\n### ")[0]
        for action in own:
            assert action.help, f"{command.prog} {action.option_strings or action.dest}"
            assert not action.option_strings or any(
                f"`{name}`" in section for name in action.option_strings
            ), f"{command.prog} {action.option_strings}"
            assert all(f"`{name}`" in text for name in action.option_strings), command.prog


def test_what_an_option_takes_is_shown() -> None:
    lines = [line for line in pytest_options().splitlines() if line.startswith("- `--")]
    (self_reference,) = [line for line in lines if line.startswith("- `--self-reference`")]
    assert "`--self-reference` `auto`, `fresh`, `stored`: " in self_reference
    assert self_reference.endswith("(default: `auto`)")
    (fault,) = [line for line in lines if line.startswith("- `--rehearse-fault`")]
    assert "slow:8%, " in fault
    (build,) = [line for line in lines if line.startswith("- `--control`")]
    assert "`none`, `required`, `BUILD`: " in build


def test_every_variable_stands_in_one_of_the_tables() -> None:
    told = "".join(variables(who) for who in ("you", "perfgate", "the tests"))
    assert [one.name for one in known_variables() if told.count(f"- `{one.name}`: ") != 1] == []


@each(
    "text, shown",
    [
        ("runs/<time>-<pid>", "runs/&lt;time&gt;-&lt;pid&gt;"),
        ("ids, with * as wildcard", r"ids, with \* as wildcard"),
        ("as `a|b` or\n  a_b", r"as `a\|b` or a_b"),
        ("see docs/how-to/slurm.md.", "see [slurm](../how-to/slurm.md)."),
        ("see docs/reference/settings.md", "see [settings](settings.md)"),
    ],
)
def test_a_text_of_the_code_has_no_markup_of_its_own(text: str, shown: str) -> None:
    assert prose(text) == shown
