"""The tables of the reference that are made from the code, written into the pages of docs/.

A page says where one belongs; what stands between the two comments is made here:

    <!-- made by make reference: metrics -->
    <!-- end of metrics -->

    python -m ci.maintenance.reference_pages            exit status: 0 written, or nothing to write
    python -m ci.maintenance.reference_pages --check    1 a page is not as it would be written
"""

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ci.maintenance import reference_tables as tables
from ci.maintenance.report_schema import report_schema
from ci.maintenance.scenario_schema import (
    LISTS,
    documented_schema,
    field_list,
    scenario_schema,
)

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "make reference"
SCHEMAS: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "reference" / "run_report.schema.json": report_schema,
    ROOT / "src" / "perfgate" / "scenarios" / "scenario.schema.json": scenario_schema,
    ROOT / "src" / "perfgate" / "scenarios" / "documented.schema.json": documented_schema,
}

TABLES: Mapping[str, Callable[[], str]] = {
    "environment variables": lambda: tables.variables("you"),
    "environment variables of programs": lambda: tables.variables("perfgate"),
    "environment variables of the tests": lambda: tables.variables("the tests"),
    "exit statuses": tables.exit_statuses,
    "exit statuses of a release": tables.release_statuses,
    "failure classes": tables.failure_classes,
    "metrics": tables.metrics,
    "selections": tables.selections,
    "files of a run": tables.run_files,
    "records": tables.record_kinds,
    "schemas": tables.schemas,
    "options of pytest": tables.pytest_options,
    "options of perfgate": tables.command_options,
    **{f"fields of {sections}": partial(field_list, sections) for sections in LISTS},
}

_PLACE = re.compile(
    r"(?P<begin><!-- made by make reference: (?P<name>[^>\n]+?) -->\n)"
    r"(?P<made>.*?)"
    r"(?P<end><!-- end of (?P=name) -->)",
    re.DOTALL,
)
_BEGIN = re.compile(r"<!-- made by make reference: ([^>\n]+?) -->")


class UnknownTable(Exception):
    """A page asks for a table that is not made, or does not end it."""


def pages() -> list[Path]:
    """The pages that have a table made here."""
    return [
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if _BEGIN.search(page.read_text(encoding="utf-8"))
    ]


def names(text: str) -> list[str]:
    """The tables that a page asks for, in order."""
    return _BEGIN.findall(text)


def remade(text: str, tables: Mapping[str, Callable[[], str]] = TABLES) -> str:
    """A page with its tables as the code has them now.

    Raises:
        UnknownTable: it asks for one that is not made, or does not end it.
    """
    ended = [found["name"] for found in _PLACE.finditer(text)]
    wrong = [name for name in names(text) if name not in tables or name not in ended]
    if wrong:
        raise UnknownTable(
            f"made by {COMMAND}, or not ended: {', '.join(wrong)}; known: {', '.join(tables)}"
        )

    def made(found: re.Match[str]) -> str:
        return f"{found['begin']}\n{tables[found['name']]()}\n\n{found['end']}"

    return _PLACE.sub(made, text)


def main(arguments: list[str]) -> int:
    """Write what has changed, or say it."""
    status = 0
    made = {page: remade(page.read_text(encoding="utf-8")) for page in pages()}
    for page, new in (made | {file: schema() for file, schema in SCHEMAS.items()}).items():
        if new == page.read_text(encoding="utf-8"):
            continue
        name = page.relative_to(ROOT)
        if "--check" in arguments:
            print(f"{name} is not what the code says: {COMMAND}")
            status = 1
        else:
            page.write_text(new, encoding="utf-8")
            print(f"{name}: written")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
