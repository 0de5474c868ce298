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
from perfgate.reports.merge import merge
from perfgate.reports.run_report import Shard
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.exit_status import ExitStatus
from perfgate.suite.run_end import conclude

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


def fails(*runs: EndedRun, **options: Any) -> str:
    with pytest.raises((InputError, SeveralInputErrors)) as told:
        merge(runs, **options)
    return str(told.value)


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
    found = merge(
        [
            run(
                "one",
                "10:00",
                results,
                failed=end.failed,
                bugs=bugs,
                end=end.status,
                gate=gate,
                recording=record,
                changes={"synthetic": rehearsed},
            )
        ]
    )
    assert found.status == end.status


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
    assert merge([run("one", "10:00", results, **more)]).status == status


def test_a_run_that_did_not_end_is_told_as_such() -> None:
    found = merge([run("one", "10:00", {"a-c1": PASS, "a-c4": None}, end=None)])
    assert found.runs[0].status is None
    assert "run one did not end" in found.meaning
    (unfinished,) = [one for one in found.results if one.verdict is None]
    assert (unfinished.scenario, unfinished.why_not) == ("a", "unfinished")


def test_a_test_that_failed_beside_its_verdict_is_an_error_in_the_report() -> None:
    found = merge([run("one", "10:00", {"a-c1": PASS}, failed=["a-c1"], end=11)])
    assert found.results[0].verdict == ERROR
    assert found.results[0].failure is not None


# Shards.


def test_all_shards_make_the_whole() -> None:
    found = merge([SECOND, FIRST], matrix=ROWS)
    assert found.status == 0
    assert [one.id for one in found.runs] == ["one", "two"]
    assert [one.test for one in found.results] == ["a-c1", "b-c1", "c-c1"]
    assert found.merged == ()


def test_a_missing_shard_is_named_with_its_scenarios() -> None:
    told = fails(FIRST)
    assert "shard 2/2 is missing" in told
    assert "with c" in told
    assert "shard 1/2 is missing" in fails(SECOND)


def test_a_session_reports_its_own_shard_alone() -> None:
    assert merge([FIRST], part=True).status == 0


def test_an_empty_shard_is_not_missed() -> None:
    alone = Shard(1, 2, "b200", "f1a9", (("a",), ()))
    assert merge([run("one", "10:00", {"a-c1": PASS}, shard=alone)]).status == 0


def test_a_missing_row_of_the_matrix_is_named() -> None:
    whole = run("gb", "10:09", {"d-c1": PASS}, shard=Shard(1, 1, "gb200", "0dd", (("d",),)))
    row = row_of("gb200-1-of-1", "gb200", "1/1", ("d",))
    assert merge([FIRST, SECOND, whole], matrix=(*ROWS, row)).status == 0
    assert "row gb200-1-of-1 of the matrix has no run" in fails(FIRST, SECOND, matrix=(*ROWS, row))
    assert "run gb is of no row" in fails(FIRST, SECOND, whole, matrix=ROWS)


def test_other_scenarios_than_the_row_has_are_told() -> None:
    rows = (ROWS[0], row_of("b200-2-of-2", "b200", "2/2", ("c", "d")))
    assert "other scenarios than row b200-2-of-2" in fails(FIRST, SECOND, matrix=rows)


def test_a_shard_of_another_selection_does_not_fill_the_gap() -> None:
    foreign = Shard(2, 2, "b200", "0ther", (("a",), ("b", "c")))
    told = fails(FIRST, run("two", "10:05", {"c-c1": PASS}, shard=foreign))
    assert "shard 2/2 is missing" in told
    assert "run two is shard 2/2 of another selection" in told


def test_a_doubled_shard_names_both_runs() -> None:
    again = run("three", "11:00", {"c-c1": PASS}, shard=SHARDS[1])
    told = fails(FIRST, SECOND, again)
    assert "shard 2/2 is doubled" in told
    assert "in run two and in run three" in told


@pytest.mark.parametrize(("number", "of"), [(3, 2), (0, 2), (1, 3)])
def test_a_shard_that_contradicts_itself_is_refused(number: int, of: int) -> None:
    wrong = Shard(number, of, "b200", "f1a9", PARTS)
    assert "a record is not whole" in fails(run("one", "10:00", {"a-c1": PASS}, shard=wrong))


def test_a_run_named_twice_is_told() -> None:
    assert "a run is named twice" in fails(FIRST, SECOND, SECOND)


# Retries.


def test_a_retry_replaces_what_was_not_judged_and_is_listed() -> None:
    broken = run(
        "two", "10:05", {"c-c1": ERROR, "c-c4": PASS, "c-c8": "lack"}, shard=SHARDS[1], end=11
    )
    retry = run("three", "11:00", {"c-c1": REGRESSION, "c-c8": PASS})
    found = merge([FIRST, broken, retry])
    assert found.status == ExitStatus.REGRESSION
    assert found.merged == (
        "c-c1: ERROR oom (run two) replaced by REGRESSION (run three)",
        "c-c8: lack (run two) replaced by PASS (run three)",
    )
    assert {one.test: one.run for one in found.results}["c-c4"] == "two"


@each("first", [PASS, REGRESSION, Verdict.INCONCLUSIVE, Verdict.NO_BASELINE, Verdict.IMPROVEMENT])
@each("second", [PASS, REGRESSION, Verdict.INCONCLUSIVE])
def test_no_verdict_is_chosen_over_another(first: Verdict, second: Verdict) -> None:
    told = fails(run("one", "10:00", {"a-c1": first}), run("two", "11:00", {"a-c1": second}))
    assert "a-c1 in run one and in run two" in told


def test_a_verdict_stays_where_a_later_run_has_none() -> None:
    found = merge(
        [run("one", "10:00", {"a-c1": REGRESSION}), run("two", "11:00", {"a-c1": ERROR}, end=11)]
    )
    assert found.status == ExitStatus.REGRESSION
    assert found.merged == ("a-c1: ERROR oom (run two) left out for REGRESSION (run one)",)


def test_a_killed_shard_is_made_up_for_by_a_run_of_what_it_lacks() -> None:
    killed = run("two", "10:05", {"c-c1": PASS, "c-c4": None}, shard=SHARDS[1], end=None)
    assert merge([FIRST, killed]).status == ExitStatus.ERROR
    found = merge([FIRST, killed, run("three", "11:00", {"c-c4": PASS})])
    assert found.status == 0
    assert "run two did not end; what it lacks is in run three" in found.merged


def test_a_retry_that_was_killed_too_does_not_end_in_0() -> None:
    killed = run("two", "10:05", {"c-c1": None, "c-c4": None}, shard=SHARDS[1], end=None)
    retry = run("three", "11:00", {"c-c1": PASS, "c-c4": None}, end=None)
    assert merge([FIRST, killed, retry]).status == ExitStatus.ERROR


def test_a_bug_that_a_retry_made_up_for_counts_no_more() -> None:
    buggy = run("one", "10:00", {"a-c1": None}, failed=["a-c1"], bugs=["a-c1"], end=15)
    assert merge([buggy]).status == ExitStatus.INTERNAL_ERROR
    assert merge([buggy, run("two", "11:00", {"a-c1": PASS})]).status == 0


# Runs that are not one.


@each(
    ("changes", "words"),
    [
        ({"versions": {"perfgate": "0.2.0"}}, "different perfgate releases"),
        ({"git": {"commit": "decaf", "dirty": False}}, "different commits of the gate repository"),
        ({"synthetic": True}, "a rehearsal and a real run"),
        ({"injected": ["kv_cache_fraction=0.5"]}, "different --inject"),
        ({"site_commands": {"before": "set it"}}, "different commands before and after"),
        ({"fingerprint": {"gpus": "B200", "boost_slider": "0 vboost 4 4"}}, "boost sliders"),
    ],
)
def test_runs_of_different_things_are_refused(changes: dict[str, Any], words: str) -> None:
    fingerprint = {"gpus": "B200", "boost_slider": "0 vboost 4 0"}
    usual = {"injected": [], "site_commands": {}, "fingerprint": fingerprint}
    one = run("one", "10:00", {"a-c1": PASS}, changes=usual)
    two = run("two", "11:00", {"b-c1": PASS}, changes=usual | changes)
    assert words in fails(one, two)


@pytest.mark.parametrize("there", [{"gpus": "B200"}, {"gpus": "H200", "boost_slider": "none"}])
def test_boost_sliders_of_other_gpus_are_not_compared(there: dict[str, str]) -> None:
    here = {"gpus": "B200", "boost_slider": "0 vboost 4 0"}
    one = run("one", "10:00", {"a-c1": PASS}, changes={"fingerprint": here})
    two = run("two", "11:00", {"b-c1": PASS}, changes={"fingerprint": there})
    assert merge([one, two]).status == 0


def test_runs_of_two_builds_of_one_engine_are_refused() -> None:
    build = MeasuredBuild("llama.cpp", "1.4.0", "fff999")
    one, two = run("one", "10:00", {"a-c1": PASS}), run("two", "11:00", {"b-c1": PASS}, build=build)
    told = fails(one, two)
    assert "different builds of llama.cpp" in told
    assert "run two: 1.4.0 at fff999" in told
    other = MeasuredBuild("vllm", "0.11", "0.11")
    assert merge([one, run("two", "11:00", {"b-c1": PASS}, build=other)]).status == 0


def test_a_run_that_only_records_is_not_merged_with_one_that_judges() -> None:
    one = run("one", "10:00", {"a-c1": Verdict.NO_BASELINE}, recording=True)
    assert "a run with --record and one without" in fails(one, run("two", "11:00", {"b-c1": PASS}))


def test_runs_of_one_name_are_told_apart() -> None:
    found = merge([run("run", "10:00", {"a-c1": PASS}), run("run", "11:00", {"b-c1": PASS})])
    assert [one.id for one in found.runs] == ["run", "run~2"]
    assert [one.run for one in found.results] == ["run", "run~2"]
