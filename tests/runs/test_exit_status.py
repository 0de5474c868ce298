"""The exit status of a run and what a pipeline does with it, both as the document has them."""

import re
from itertools import product
from pathlib import Path

import pytest
from tables import each

from perfgate.core.verdict import Verdict
from perfgate.release.release_status import ReleaseStatus
from perfgate.runs.exit_status import (
    Action,
    Event,
    ExitStatus,
    decision,
    exit_status,
    final_status,
    worst,
)

# One verdict alone: its status of a plain run, with --gate, with --record, and with both.
ALONE: dict[Verdict | None, tuple[int, int, int, int]] = {
    Verdict.PASS: (0, 0, 0, 0),
    Verdict.IMPROVEMENT: (0, 0, 0, 0),
    Verdict.REGRESSION: (1, 1, 1, 1),
    Verdict.INCONCLUSIVE: (10, 10, 10, 10),
    Verdict.ERROR: (11, 11, 11, 11),
    Verdict.NO_BASELINE: (12, 12, 0, 0),
    Verdict.NOT_COMPARABLE: (12, 12, 0, 12),
    None: (12, 12, 12, 12),
}
ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/reference/verdicts.md").read_text()
FROM_WORST = (1, 11, 12, 10, 0)
ALL = range(256)
NAMED = {*ExitStatus, *ReleaseStatus, 2, 3, 4, 5, 124, 130, 137, 143}


def test_the_numbers_are_a_promise_to_scripts() -> None:
    names = "PASSED REGRESSION INCONCLUSIVE ERROR NOT_JUDGED REHEARSED WAIVERS INTERNAL_ERROR"
    names += " UNWRITABLE"
    numbers = (0, 1, *range(10, 17))
    assert dict(zip(names.split(), numbers, strict=True)) == {one.name: one for one in ExitStatus}


@each(("record", "gate"), product((False, True), repeat=2))
@each("verdicts", [(), *product(ALONE, repeat=2)])
def test_of_several_the_worst_counts(
    verdicts: tuple[Verdict | None, ...], record: bool, gate: bool
) -> None:
    statuses = {ALONE[verdict][2 * record + gate] for verdict in verdicts or [None]}
    if not gate and len(statuses) > 1:
        statuses -= {12}  # only --gate asks that every test is judged
    expected = next(status for status in FROM_WORST if status in statuses)
    assert exit_status(iter(verdicts), gate=gate, record=record) == expected


@each("gate", [False, True])
def test_waivers_that_do_not_hold_and_rehearsals_never_end_in_0(gate: bool) -> None:
    for verdict, status, rehearsed in (
        (Verdict.PASS, 14, 13),
        (Verdict.IMPROVEMENT, 14, 13),
        (Verdict.INCONCLUSIVE, 14, 10),
        (Verdict.REGRESSION, 1, 1),
        (Verdict.ERROR, 11, 11),
        (Verdict.NO_BASELINE, 14, 12 if gate else 13),
        (None, 14, 12),
    ):
        assert exit_status([verdict] * 2, gate=gate, waivers_hold=False) == status
        assert exit_status([verdict] * 2, gate=gate, rehearsed=True) == rehearsed
    assert exit_status([], gate=gate, rehearsed=True) == 12


def section(title: str) -> str:
    return DOCUMENT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_documents_table_has_every_status_once_and_its_order_is_that_of_the_code() -> None:
    cells = re.findall(r"^\| ([\d, ]+) \|", section("Exit status"), re.MULTILINE)
    told = [int(number) for cell in cells for number in cell.split(",")]
    assert told == sorted({*ExitStatus, *range(2, 6)})
    (order,) = re.findall(r"the order is ([\d, ]+):", DOCUMENT)
    statuses = [ExitStatus(int(number)) for number in order.split(",")]
    assert sorted(statuses) == sorted(ExitStatus)
    for place, status in enumerate(statuses):
        assert worst(statuses[place:]) == status


@each("file", ["README.md", "src/perfgate/cli/main.py"])
def test_where_statuses_are_summed_up_none_is_missing(file: str) -> None:
    text = (ROOT / file).read_text()
    (told,) = re.findall(r"[Ee]xit status: (0 .*?)\n(?:\n|\"\"\")", text, re.DOTALL)
    missing = {status for status in ExitStatus if not re.search(rf"\b{status.value}\b", told)}
    # Waivers belong to runs alone.
    assert missing == (set() if file == "README.md" else {ExitStatus.WAIVERS})


def test_the_document_has_every_decision_once() -> None:
    table = section("What a pipeline does with it").splitlines()
    lines = [line.strip("|").split("|") for line in table if line.startswith("|")]
    heading, _, *rows = [[cell.strip() for cell in line] for line in lines]
    assert heading == ["status", *Event, "what it says"]
    decisions = [
        ((event, int(status)), (action, row[-1]))
        for row in rows
        for status in (re.findall(r"\d+", row[0]) or [one for one in ALL if one not in NAMED])
        for event, action in zip(Event, row[1:-1], strict=True)
        if action
    ]
    assert len(dict(decisions)) == len(decisions)
    assert dict(decisions) == {
        (event, status): (decision(event, status).action, decision(event, status).sentence)
        for event, status in product(Event, ALL)
    }


def test_only_0_passes_and_only_10_warns_where_a_build_is_gated_and_a_block_never_ends_in_0():
    for event, status in product(Event, ALL):
        found = decision(event, status)
        passing = 13 if event is Event.REHEARSAL else 0
        assert (found.action is Action.PASS) == (status == passing), (event, status)
        assert found.action is not Action.WARN or (status == 10 and event is not Event.RELEASE)
        ends_in = final_status(found, status)
        assert (ends_in == 0) == (found.action is not Action.BLOCK)
        assert ends_in in (0, status, 11)
        if status in (11, 12, 15, 2, 4, 5, 137, 143, 99):  # no verdict
            assert "regression" not in found.sentence
    for status in (-1, 256):
        with pytest.raises(ValueError, match="no exit status"):
            decision(Event.NIGHTLY, status)
