"""What a pipeline does with an exit status: the table is whole, and the one of the document."""

from itertools import product
from pathlib import Path

import pytest
from tables import each

from perfgate.judging.assembly.exit_status import (
    TABLE,
    Action,
    Event,
    ExitStatus,
    decision,
    final_status,
)
from perfgate.release.release_status import ReleaseStatus

DOCUMENT = Path(__file__).parents[3] / "docs/reference/verdicts.md"
GATES = (Event.PULL_REQUEST, Event.NIGHTLY, Event.RELEASE)
ALL = range(256)


def _document_rows() -> list[list[str]]:
    section = DOCUMENT.read_text().partition("## What a pipeline does with it")[2]
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_document_has_the_table_of_the_code():
    heading, _, *rows = _document_rows()
    assert heading == ["status", *Event, "what it says"]
    assert rows == [
        [
            ", ".join(str(int(one)) for one in row.statuses) or "any other",
            *(row.actions.get(event, "") for event in Event),
            row.sentence,
        ]
        for row in TABLE
    ]


def test_each_event_and_status_stands_in_one_row():
    named = {status for row in TABLE for status in row.statuses}
    assert set(ExitStatus) | set(ReleaseStatus) | {2, 3, 4, 5, 124, 130, 137, 143} == named
    for event, status in product(Event, named):
        rows = [row for row in TABLE if status in row.statuses and event in row.actions]
        assert len(rows) == 1, (event, status)


def test_only_0_passes_and_only_10_warns_where_a_build_is_gated():
    for event, status in product(GATES, ALL):
        action = decision(event, status).action
        assert (action is Action.PASS) == (status == 0), (event, status)
        assert action is not Action.WARN or (status == 10 and event is not Event.RELEASE)


def test_a_rehearsal_passes_with_13_alone():
    passed = [status for status in ALL if decision(Event.REHEARSAL, status).action is Action.PASS]
    assert passed == [13]


@each("status", [11, 12, 15, 2, 4, 5, 137, 143, 99])
def test_what_is_no_verdict_claims_nothing_and_blocks(status: int):
    for event in Event:
        found = decision(event, status)
        assert found.action is Action.BLOCK
        assert "regression" not in found.sentence


def test_a_block_never_ends_in_0():
    for event, status in product(Event, ALL):
        found = decision(event, status)
        ends_in = final_status(found, status)
        assert (ends_in == 0) == (found.action is not Action.BLOCK)
        assert ends_in in (0, status, 11)


@pytest.mark.parametrize("status", [-1, 256])
def test_no_status_of_a_shell(status: int):
    with pytest.raises(ValueError, match="no exit status"):
        decision(Event.NIGHTLY, status)
