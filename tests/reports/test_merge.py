"""Merge: several runs as one report and one status; what is missing or doubled is an error."""

import datetime
from typing import Any

import building
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import PARTS, SHARDS, records_of, run
from tables import each

from perfgate.campaign.shards import MatrixRow
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.measurement import MeasuredBuild
from perfgate.core.verdict import Verdict
from perfgate.reports.merge import conclude, merge
from perfgate.reports.run_report import Shard
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.exit_status import ExitStatus

PASS, REGRESSION, ERROR = Verdict.PASS, Verdict.REGRESSION, Verdict.ERROR
FIRST = run("one", "10:00", {"a-c1": PASS, "b-c1": PASS}, shard=SHARDS[0])
SECOND = run("two", "10:05", {"c-c1": PASS}, shard=SHARDS[1])


def row_of(name: str, expression: str, shard: str, scenarios: tuple[str, ...]) -> MatrixRow:
    """A row that measures these scenarios; its hardware and hours are not compared."""
    hardware = {"gpu": "b200", "gpus": 8, "nodes": 1}
    hours = {"hours": 1.0, "hours_known": True, "timeout_minutes": 90}
    return MatrixRow(
        name=name, expression=expression, shard=shard, scenarios=scenarios, **hardware, **hours
    )


ROWS = tuple(
    row_of(f"b200-{number}-of-2", "b200", f"{number}/2", PARTS[number - 1]) for number in (1, 2)
)
OTHER_ROW = row_of("gb200-1-of-1", "gb200", "1/1", ("d",))
OTHER = run("gb", "10:09", {"d-c1": PASS}, shard=Shard(1, 1, "gb200", "0dd", (("d",),)))


def second(results: dict[str, Any], **more: Any) -> EndedRun:
    """The second shard, with another end."""
    return run("two", "10:05", results, shard=SHARDS[1], **more)


def early(results: dict[str, Any], **more: Any) -> EndedRun:
    return run("one", "10:00", results, **more)


def late(results: dict[str, Any], **more: Any) -> EndedRun:
    return run("three", "11:00", results, **more)


# One run: the status that it ended with.


@given(
    st.lists(st.sampled_from([*Verdict, None]), min_size=1, max_size=6),
    st.sets(st.integers(0, 6)),
    st.sets(st.integers(0, 2)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_a_run_that_ended_has_the_status_that_it_ended_with(
    verdicts: list[Verdict | None],
    failing: set[int],
    buggy: set[int],
    gate: bool,
    record: bool,
    rehearsed: bool,
) -> None:
    results = {f"a-c{number}": one or "lack" for number, one in enumerate(verdicts)}
    failed = [f"a-c{number}" for number in failing]
    bugs = [f"a-c{number}" for number in buggy]
    end, _ = conclude(
        records_of(results),
        failed,
        bugs,
        scenarios=[building.SCENARIO],
        today=datetime.date(2026, 11, 23),
        gate=gate,
        record=record,
        rehearsed=rehearsed,
    )
    ended = {"failed": end.failed, "bugs": bugs, "end": end.status, "gate": gate}
    made = early(results, recording=record, changes={"synthetic": rehearsed}, **ended)
    assert merge([made]).status == end.status


@each(
    ("results", "more", "status"),
    [
        ({"a-c1": PASS}, {}, 0),
        ({"a-c1": PASS, "a-c4": REGRESSION}, {}, 1),
        ({"a-c1": PASS, "a-c4": Verdict.INCONCLUSIVE}, {}, 10),
        ({"a-c1": PASS, "a-c4": ERROR}, {}, 11),
        ({"a-c1": "lack"}, {}, 12),
        ({"a-c1": PASS, "a-c4": "lack"}, {"gate": True}, 12),
        ({"a-c1": Verdict.NO_BASELINE}, {"recording": True}, 0),
        ({"a-c1": PASS}, {"faults": ["the waiver has expired"]}, 14),
        ({"a-c1": PASS}, {"failed": ["a-c1"], "bugs": ["a-c1"]}, 15),
        ({"a-c1": PASS}, {"unwritten": True}, 16),
        ({"a-c1": PASS}, {"changes": {"synthetic": True}}, 13),
        ({"a-c1": PASS, "a-c4": REGRESSION}, {"end": None}, 1),
        ({"a-c1": PASS, "a-c4": None}, {"end": None}, 11),
        ({"a-c1": PASS}, {"end": None}, 11),
    ],
)
def test_the_statuses(results: dict[str, Any], more: dict[str, Any], status: int) -> None:
    assert merge([early(results, **more)]).status == status


def test_a_run_that_did_not_end_is_told_as_such() -> None:
    found = merge([early({"a-c1": PASS, "a-c4": None}, end=None)])
    assert found.runs[0].status is None
    assert "run one did not end" in found.meaning
    (unfinished,) = [one for one in found.results if one.verdict is None]
    assert (unfinished.scenario, unfinished.skip_reason) == ("a", "unfinished")


def test_a_test_that_failed_beside_its_verdict_is_an_error_in_the_report() -> None:
    (found,) = merge([early({"a-c1": PASS}, failed=["a-c1"], end=11)]).results
    assert found.verdict == ERROR
    assert found.failure is not None


# Shards.


def test_all_shards_make_the_whole() -> None:
    found = merge([SECOND, FIRST], matrix=ROWS)
    assert found.status == 0
    assert [one.id for one in found.runs] == ["one", "two"]
    assert [one.test for one in found.results] == ["a-c1", "b-c1", "c-c1"]
    assert found.merged == ()


def test_a_shard_needs_no_other_where_it_reports_alone_or_they_are_empty() -> None:
    alone = Shard(1, 2, "b200", "f1a9", (("a",), ()))
    assert merge([FIRST], part=True).status == 0
    assert merge([early({"a-c1": PASS}, shard=alone)]).status == 0
    assert merge([FIRST, SECOND, OTHER], matrix=(*ROWS, OTHER_ROW)).status == 0


def refused(*runs: EndedRun, told: str, **options: Any) -> str:
    with pytest.raises((InputError, SeveralInputErrors)) as error:
        merge(runs, **options)
    assert told in str(error.value)
    return str(error.value)


def test_what_is_missing_or_doubled_or_of_another_selection_is_named() -> None:
    assert "with c" in refused(FIRST, told="shard 2/2 is missing")
    refused(SECOND, told="shard 1/2 is missing")
    no_run = "row gb200-1-of-1 of the matrix has no run"
    refused(FIRST, SECOND, matrix=(*ROWS, OTHER_ROW), told=no_run)
    refused(FIRST, SECOND, OTHER, matrix=ROWS, told="run gb is of no row")
    more = (ROWS[0], row_of("b200-2-of-2", "b200", "2/2", ("c", "d")))
    refused(FIRST, SECOND, matrix=more, told="other scenarios than row b200-2-of-2")
    foreign = late({"c-c1": PASS}, shard=Shard(2, 2, "b200", "0ther", (("a",), ("b", "c"))))
    told = refused(FIRST, foreign, told="run three is shard 2/2 of another selection")
    assert "shard 2/2 is missing" in told
    again = late({"c-c1": PASS}, shard=SHARDS[1])
    told = refused(FIRST, SECOND, again, told="shard 2/2 is doubled")
    assert "in run two and in run three" in told
    refused(FIRST, SECOND, SECOND, told="a run is named twice")
    for number, of in ((3, 2), (0, 2), (1, 3)):
        wrong = Shard(number, of, "b200", "f1a9", PARTS)
        refused(early({"a-c1": PASS}, shard=wrong), told="a record is not whole")


B200 = {"gpus": "B200", "boost_slider": "0 vboost 4 0"}


@each(
    ("changes", "words"),
    [
        ({"versions": {"perfgate": "0.2.0"}}, "different perfgate releases"),
        ({"git": {"commit": "decaf", "dirty": False}}, "different commits of the gate repository"),
        ({"synthetic": True}, "a rehearsal and a real run"),
        ({"injected": ["kv_cache_fraction=0.5"]}, "different --inject"),
        ({"site_commands": {"before": "set it"}}, "different commands before and after"),
        ({"fingerprint": {"gpus": "B200", "boost_slider": "0 vboost 4 4"}}, "boost sliders"),
        # Those of other GPUs are not compared.
        ({"fingerprint": {"gpus": "B200"}}, ""),
        ({"fingerprint": {"gpus": "H200", "boost_slider": "none"}}, ""),
    ],
)
def test_runs_of_different_things_are_refused(changes: dict[str, Any], words: str) -> None:
    usual = {"injected": [], "site_commands": {}, "fingerprint": B200}
    one = early({"a-c1": PASS}, changes=usual)
    two = late({"b-c1": PASS}, changes=usual | changes)
    if words:
        refused(one, two, told=words)
    else:
        assert merge([one, two]).status == 0


def test_runs_of_two_builds_of_one_engine_or_one_that_only_records_are_refused() -> None:
    one = early({"a-c1": PASS})
    of, other = (
        late({"b-c1": PASS}, build=MeasuredBuild(name, "1.4.0", "fff999"))
        for name in ("llama.cpp", "vllm")
    )
    told = refused(one, of, told="different builds of llama.cpp")
    assert "run three: 1.4.0 at fff999" in told
    assert merge([one, other]).status == 0
    recorded = late({"b-c1": Verdict.NO_BASELINE}, recording=True)
    refused(one, recorded, told="a run with --record and one without")


# Retries.


def test_a_killed_shard_or_a_bug_is_made_up_for_by_a_run_of_what_it_lacks() -> None:
    killed = second({"c-c1": PASS, "c-c4": None}, end=None)
    assert merge([FIRST, killed]).status == ExitStatus.ERROR
    found = merge([FIRST, killed, late({"c-c4": PASS})])
    assert found.status == 0
    assert "run two did not end; what it lacks is in run three" in found.merged
    killed_too = late({"c-c1": PASS, "c-c4": None}, end=None)
    killed = second({"c-c1": None, "c-c4": None}, end=None)
    assert merge([FIRST, killed, killed_too]).status == ExitStatus.ERROR
    buggy = early({"a-c1": None}, failed=["a-c1"], bugs=["a-c1"], end=15)
    assert merge([buggy]).status == ExitStatus.INTERNAL_ERROR
    assert merge([buggy, late({"a-c1": PASS})]).status == 0


def test_a_retry_replaces_what_was_not_judged_and_is_listed() -> None:
    broken = second({"c-c1": ERROR, "c-c4": PASS, "c-c8": "lack"}, end=11)
    found = merge([FIRST, broken, late({"c-c1": REGRESSION, "c-c8": PASS})])
    assert found.status == ExitStatus.REGRESSION
    assert found.merged == (
        "c-c1: ERROR oom (run two) replaced by REGRESSION (run three)",
        "c-c8: lack (run two) replaced by PASS (run three)",
    )
    assert {one.test: one.run for one in found.results}["c-c4"] == "two"


@each("before", [PASS, REGRESSION, Verdict.INCONCLUSIVE, Verdict.NO_BASELINE, Verdict.IMPROVEMENT])
@each("after", [PASS, REGRESSION, Verdict.INCONCLUSIVE])
def test_no_verdict_is_chosen_over_another(before: Verdict, after: Verdict) -> None:
    told = "a-c1 in run one and in run three"
    refused(early({"a-c1": before}), late({"a-c1": after}), told=told)


def test_a_verdict_stays_where_a_later_run_has_none() -> None:
    found = merge([early({"a-c1": REGRESSION}), late({"a-c1": ERROR}, end=11)])
    assert found.status == ExitStatus.REGRESSION
    assert found.merged == ("a-c1: ERROR oom (run three) left out for REGRESSION (run one)",)


def test_runs_of_one_name_are_told_apart() -> None:
    found = merge([early({"a-c1": PASS}), run("one", "11:00", {"b-c1": PASS})])
    assert [one.id for one in found.runs] == ["one", "one~2"]
    assert [one.run for one in found.results] == ["one", "one~2"]
