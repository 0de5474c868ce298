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
PLAIN, GATE, RECORD, BOTH = range(4)
GATES = (Event.PULL_REQUEST, Event.NIGHTLY, Event.RELEASE)
ALL = range(256)
NAMED = {*ExitStatus, *ReleaseStatus, 2, 3, 4, 5, 124, 130, 137, 143}
OPTIONS: list[dict[str, bool]] = [
    {"gate": False},
    {"gate": True},
    {"gate": False, "record": True},
    {"gate": True, "record": True},
]


def test_the_numbers_are_a_promise_to_scripts() -> None:
    names = "PASSED REGRESSION INCONCLUSIVE ERROR NOT_JUDGED REHEARSED WAIVERS INTERNAL_ERROR"
    names += " UNWRITABLE"
    numbers = (0, 1, *range(10, 17))
    assert dict(zip(names.split(), numbers, strict=True)) == {one.name: one for one in ExitStatus}


@each("mode", [PLAIN, GATE, RECORD, BOTH])
@each("verdicts", [(), *product(ALONE, repeat=2)])
def test_of_several_the_worst_counts(verdicts: tuple[Verdict | None, ...], mode: int) -> None:
    statuses = {ALONE[verdict][mode] for verdict in verdicts or [None]}
    if mode in (PLAIN, RECORD) and len(statuses) > 1:
        statuses -= {12}  # only --gate asks that every test is judged
    expected = next(status for status in FROM_WORST if status in statuses)
    assert exit_status(iter(verdicts), **OPTIONS[mode]) == expected


def test_a_waiver_that_does_not_hold_fails_a_run_of_passes() -> None:
    def status(*verdicts: Verdict | None, gate: bool = False) -> ExitStatus:
        return exit_status(verdicts, gate=gate, waivers_hold=False)

    assert status(Verdict.PASS) == status(None, gate=True) == ExitStatus.WAIVERS
    assert status(None) == status(Verdict.INCONCLUSIVE) == ExitStatus.WAIVERS
    assert status(Verdict.REGRESSION) == ExitStatus.REGRESSION
    assert status(Verdict.ERROR) == ExitStatus.ERROR


@pytest.mark.parametrize("gate", [False, True])
def test_a_rehearsal_never_ends_in_0(gate: bool) -> None:
    for verdicts in ([Verdict.PASS], [Verdict.IMPROVEMENT, Verdict.PASS], []):
        assert exit_status(verdicts, gate=gate, rehearsed=True) != ExitStatus.PASSED
    assert exit_status([Verdict.PASS], gate=gate, rehearsed=True) == ExitStatus.REHEARSED
    assert exit_status([None, None], gate=gate, rehearsed=True) == ExitStatus.NOT_JUDGED
    assert exit_status([Verdict.REGRESSION], gate=gate, rehearsed=True) == ExitStatus.REGRESSION
    assert exit_status([Verdict.NO_BASELINE], gate=False, rehearsed=True) == ExitStatus.REHEARSED


def test_the_documents_table_has_every_status_once_and_in_order() -> None:
    section = DOCUMENT.partition("## Exit status")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE)
    told = [int(number) for cell in cells for number in cell.split(",")]
    assert told == sorted({*ExitStatus, *range(2, 6)})


def test_the_documents_order_is_that_of_the_code() -> None:
    (order,) = re.findall(r"the order is ([\d, ]+):", DOCUMENT)
    statuses = [ExitStatus(int(number)) for number in order.split(",")]
    assert sorted(statuses) == sorted(ExitStatus)
    for place, status in enumerate(statuses):
        assert worst(statuses[place:]) == status


@pytest.mark.parametrize("file", ["README.md", "src/perfgate/cli/main.py"])
def test_where_statuses_are_summed_up_none_is_missing(file: str) -> None:
    text = (ROOT / file).read_text()
    (told,) = re.findall(r"[Ee]xit status: (0 .*?)\n(?:\n|\"\"\")", text, re.DOTALL)
    missing = {status for status in ExitStatus if not re.search(rf"\b{status.value}\b", told)}
    # Waivers belong to runs alone.
    assert missing == (set() if file == "README.md" else {ExitStatus.WAIVERS})


def _document_rows() -> list[list[str]]:
    section = DOCUMENT.partition("## What a pipeline does with it")[2]
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_document_has_every_decision_once():
    heading, _, *rows = _document_rows()
    assert heading == ["status", *Event, "what it says"]
    decisions = [
        ((event, status), (action, row[-1]))
        for row in rows
        for status in (re.findall(r"\d+", row[0]) or [one for one in ALL if one not in NAMED])
        for event, action in zip(Event, row[1:-1], strict=True)
        if action
    ]
    documented = {(event, int(status)): said for (event, status), said in decisions}
    assert len(documented) == len(decisions)
    assert documented == {
        (event, status): (decision(event, status).action, decision(event, status).sentence)
        for event, status in product(Event, ALL)
    }


def test_only_0_passes_and_only_10_warns_where_a_build_is_gated():
    for event, status in product(GATES, ALL):
        action = decision(event, status).action
        assert (action is Action.PASS) == (status == 0), (event, status)
        assert action is not Action.WARN or (status == 10 and event is not Event.RELEASE)
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
