"""Every command of the five documents against the rendered one, word by word.

Differences are accepted by the table in documented_differences.md alone.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from command_differences import WHOLE, Difference, differences
from documented_commands import COMMANDS, SCENARIOS
from documented_set import DOCUMENTS
from tables import each

PAGE = Path(__file__).with_name("documented_differences.md")
HEAD = "| command | scenarios | the document | perfgate | reason |\n|---|---|---|---|---|\n"


@dataclass(frozen=True)
class Row:
    """A row of the page's table: its differences, and why they are accepted."""

    text: str
    accepted: frozenset[Difference]
    reason: str


def rows() -> list[Row]:
    table = PAGE.read_text(encoding="utf-8").split(HEAD)[1].split("\n\n")[0]
    found = []
    for line in table.splitlines():
        programs, scenarios, documented, rendered, reason = line.strip("| ").split(" | ")
        accepted = {
            Difference(program, name, is_documented, word)
            for program in _words(programs)
            for name in ([""] if documented == WHOLE else _scenarios(program, scenarios))
            for is_documented, cell in ((True, documented), (False, rendered))
            for word in ([WHOLE] if cell == WHOLE else _words(cell))
        }
        found.append(Row(line, frozenset(accepted), reason))
    return found


def _words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _scenarios(program: str, cell: str) -> list[str]:
    """Ids in a cell; all of the program's where it says so. A pattern of none stays as it is."""
    runs = {name for one in COMMANDS if one.program == program for name in one.runs_in}
    patterns = ["*"] if cell == "all" else _words(cell)
    found = [[name for name in runs if fnmatchcase(name, one)] or [one] for one in patterns]
    return [name for names in found for name in names]


ROWS = rows()
ACCEPTED = {difference for row in ROWS for difference in row.accepted}
FOUND = [differences(command) for command in COMMANDS]
ALL_FOUND = frozenset().union(*FOUND)


def test_all_five_documents_have_commands() -> None:
    assert {command.document for command in COMMANDS} == DOCUMENTS
    run = {name for command in COMMANDS for name in command.runs_in}
    assert len(run) > 30
    assert run <= set(SCENARIOS)


@each(
    "found",
    FOUND,
    ids=[f"{number}: {one.place}: {one.program}" for number, one in enumerate(COMMANDS)],
)
def test_every_difference_has_a_reason_in_the_table(found: set[Difference]) -> None:
    assert found - ACCEPTED == set()


@each("row", ROWS, ids=lambda row: row.text)
def test_every_row_of_the_table_is_a_difference(row: Row) -> None:
    assert row.accepted
    assert row.accepted - ALL_FOUND == set()


@each("row", ROWS, ids=lambda row: row.text)
def test_a_reason_is_ours_or_the_releases(row: Row) -> None:
    assert row.reason.startswith(("ours: ", "release: "))
    assert len(row.reason) > 30
    assert "implement" not in row.reason


def test_a_difference_is_accepted_in_one_row() -> None:
    assert len(ACCEPTED) == sum(len(row.accepted) for row in ROWS)
