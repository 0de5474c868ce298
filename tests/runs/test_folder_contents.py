"""The tables of what a run folder holds are those of the code that writes it."""

import ast
from pathlib import Path

from perfgate.reports.formats.base import report_format
from perfgate.runs.folder_contents import FILES, RECORD_KINDS
from perfgate.runs.records import _OWN_FILES

SOURCES = Path(__file__).parents[2] / "src" / "perfgate"


def kinds_written() -> set[str]:
    """The kinds of records that the code writes: first argument of every call of `record`."""
    found = set()
    for file in SOURCES.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if ".record(" in text else ():
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "record"
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                found.add(node.args[0].value)
    return found


def test_every_kind_of_record_is_in_the_table() -> None:
    assert kinds_written() == set(RECORD_KINDS), (
        "perfgate/runs/folder_contents.py names each kind; then `make reference`"
    )


def test_every_file_of_the_folders_own_is_in_the_table() -> None:
    assert FILES.keys() >= {*_OWN_FILES}


def test_the_page_of_the_run_has_the_name_that_its_format_gives_it() -> None:
    assert report_format["html"]().file in FILES
