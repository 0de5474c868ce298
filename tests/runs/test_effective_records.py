"""Which records of a run count: those that no resumption and no replaced worker superseded."""

from typing import Any

from plain_records import record

from perfgate.runs.record import Record, VerdictRecord, effective, records_of


def numbered(kind: str, number: int, **fields: Any) -> Record:
    """A record that was written at a time of its own, by which it is known again."""
    return record(kind, at=str(number), **fields)


def resumed(repeats: list[str], keeps: list[str]) -> Record:
    return record("resumed", repeats=repeats, keeps=keeps)


def numbers(records: list[Record]) -> list[int]:
    return [int(one.at) for one in records if one.at]


def test_a_resumption_supersedes_what_it_repeats_and_keeps_the_rest() -> None:
    lines = [
        numbered("selected", 1, tests=["t-a", "t-b"]),
        numbered("measurement", 2, scenario="a"),
        numbered("verdict", 3, scenario="a", test="t-a"),
        numbered("group", 4, scenario="a"),
        numbered("measurement", 5, scenario="b", role="claim"),
        numbered("measurement", 6, scenario="b"),
        numbered("verdict", 7, scenario="b", test="t-b"),
        numbered("skipped", 8, scenario="c", test="t-c"),
        numbered("waiver_fault", 9, message="expired"),
        resumed(["b", "c"], ["t-a"]),
        numbered("measurement", 10, scenario="b"),
        numbered("verdict", 11, scenario="b", test="t-b"),
    ]
    counting = effective(lines)
    assert numbers(counting) == [1, 2, 3, 4, 10, 11]
    marked = {one.at: one.resumed_from for one in records_of(VerdictRecord, counting)}
    assert marked == {"3": "3", "11": ""}, "when the session before recorded it"
    again = [*lines, resumed(["b"], ["t-a"]), numbered("measurement", 12, scenario="b")]
    assert numbers(effective(again)) == [1, 2, 3, 4, 12]


def test_what_a_replaced_worker_measured_counts_no_more_but_its_verdicts_do() -> None:
    lines = [
        numbered("measurement", 1, scenario="a"),
        numbered("verdict", 2, scenario="a", test="t-a"),
        numbered("measurement", 3, scenario="b"),
        record("set_aside", scenario="a", folder="a.broken-1"),
        numbered("measurement", 4, scenario="a"),
    ]
    assert numbers(effective(lines)) == [2, 3, 4]
    claim = [numbered("verdict", 1, scenario="b", test="claim"), resumed(["b"], ["claim"])]
    assert numbers(effective(claim)) == [1], "its other side's group is finished"
