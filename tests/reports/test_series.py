"""Which tests changed their state between runs, and what stays as it was."""

from dataclasses import replace
from typing import Any

import pytest
from building import judgement

from perfgate.gate.verdict import Verdict
from perfgate.reports.run_report import Failure, RunFacts, RunReport, TestResult
from perfgate.reports.series import THE_RUN, SeriesState, after, by_scenario, changes, standings

MONDAY, TUESDAY = "2026-11-23T02:00:00+00:00", "2026-11-24T02:00:00+00:00"


def result(verdict: Verdict | None, name: str = "small-c4", **changed: Any) -> TestResult:
    scenario, _, probe = name.partition("-")
    made = TestResult(f"test[{name}]", name, scenario, probe, "r1", verdict)
    judged = (judgement(),) if verdict == Verdict.REGRESSION else ()
    return replace(made, **{"judgements": judged, **changed})


def report(
    *results: TestResult, run: str = "r1", started: str = MONDAY, **changed: Any
) -> RunReport:
    of_run = {name: changed.pop(name) for name in ("gate", "record_only") if name in changed}
    facts = RunFacts(
        run,
        started,
        0,
        **{"gate": False, "record_only": False, **of_run},
        machine={},
        versions={},
        launcher="local",
        arguments=(),
        git={},
    )
    made = RunReport(
        1,
        (facts,),
        0,
        "as it is",
        synthetic=False,
        results=tuple(replace(one, run=run) for one in results),
        scenarios=(),
        efforts=(),
    )
    return replace(made, **changed)


def told(known: dict[str, SeriesState], one: RunReport, **how: Any) -> list[tuple[str, Any, str]]:
    """The changes of a run, which are then known."""
    found = standings(one, **how)
    changed = changes(found, known)
    states = after(found, known)
    known.clear()
    known.update(states)
    return [(change.standing.name, change.before, change.state) for change in changed]


@pytest.mark.parametrize(
    ("verdict", "first", "then"),
    [
        (Verdict.PASS, [], [("small-c4", "red", "green")]),
        (Verdict.IMPROVEMENT, [], [("small-c4", "red", "green")]),
        (Verdict.REGRESSION, [("small-c4", None, "red")], []),
        (Verdict.ERROR, [("small-c4", None, "error")], [("small-c4", "red", "error")]),
        (
            Verdict.INCONCLUSIVE,
            [("small-c4", None, "undecided")],
            [("small-c4", "red", "undecided")],
        ),
        (
            Verdict.NO_BASELINE,
            [("small-c4", None, "unjudged")],
            [("small-c4", "red", "unjudged")],
        ),
        (
            Verdict.NOT_COMPARABLE,
            [("small-c4", None, "unjudged")],
            [("small-c4", "red", "unjudged")],
        ),
    ],
)
def test_at_first_all_but_green_is_news_and_then_what_changed(
    verdict: Verdict, first: list[Any], then: list[Any]
) -> None:
    assert told({}, report(result(verdict))) == first
    known: dict[str, SeriesState] = {}
    told(known, report(result(Verdict.REGRESSION)))
    assert told(known, report(result(verdict), run="r2", started=TUESDAY)) == then
    assert told(known, report(result(verdict), run="r3", started=TUESDAY)) == []


def test_a_test_that_turns_red_beside_one_that_is_red_is_news_too() -> None:
    known: dict[str, SeriesState] = {}
    red, green = result(Verdict.REGRESSION), result(Verdict.PASS, "small-c1")
    assert told(known, report(red, green)) == [("small-c4", None, "red")]
    both = report(red, result(Verdict.REGRESSION, "small-c1"), run="r2", started=TUESDAY)
    assert told(known, both) == [("small-c1", "green", "red")]


def test_what_a_run_left_out_keeps_its_state() -> None:
    known: dict[str, SeriesState] = {}
    told(known, report(result(Verdict.REGRESSION)))
    without = report(
        result(None, why_not="lack"), result(Verdict.PASS, "small-c1"), run="r2", started=TUESDAY
    )
    assert told(known, without) == []
    assert known["small-c4"].state == "red"
    assert told(known, report(result(Verdict.PASS), run="r3", started=TUESDAY)) == [
        ("small-c4", "red", "green")
    ]


def test_a_gate_that_could_not_run_a_test_did_not_judge_it() -> None:
    one = report(result(None, why_not="lack", reason="no B200"), gate=True)
    assert told({}, one) == [("small-c4", None, "unjudged")]


def test_a_run_that_only_records_has_nothing_to_be_judged_by() -> None:
    assert told({}, report(result(Verdict.NO_BASELINE), record_only=True)) == []


def test_the_same_run_again_and_an_earlier_one_are_no_news() -> None:
    known: dict[str, SeriesState] = {}
    monday = report(result(Verdict.REGRESSION))
    assert told(known, monday)
    assert told(known, monday) == []
    assert told(known, report(result(Verdict.PASS), run="r2", started=TUESDAY))
    assert told(known, monday) == []
    assert known["small-c4"].run == "r2"


def test_a_run_that_did_not_end_is_told_once_and_turns_no_test_red_or_green() -> None:
    known: dict[str, SeriesState] = {}
    told(known, report(result(Verdict.REGRESSION), result(Verdict.PASS, "small-c1")))
    killed = report(
        result(None, why_not="unfinished"),
        result(None, "small-c1", why_not="unfinished"),
        run="r2", started=TUESDAY, status=11,
        meaning="run r2 did not end",
    )  # fmt: skip
    assert told(known, killed) == [(THE_RUN, "green", "error")]
    assert told(known, killed) == []
    assert (known["small-c4"].state, known["small-c1"].state) == ("red", "green")
    # Resumed, it has the same name.
    resumed = report(
        result(Verdict.PASS), result(Verdict.PASS, "small-c1"), run="r2", started=TUESDAY
    )
    assert told(known, resumed) == [(THE_RUN, "error", "green"), ("small-c4", "red", "green")]


@pytest.mark.parametrize(
    ("status", "changed", "state"),
    [
        (0, {}, "green"),
        (1, {}, "green"),  # its tests tell it
        (10, {}, "green"),
        (11, {}, "error"),  # of no test that has a verdict
        (14, {"waiver_faults": ("waivers.yaml:4: expired",)}, "red"),
        (15, {}, "error"),
        (16, {}, "error"),
        (99, {}, "error"),
        (None, {}, "error"),
    ],
)
def test_what_no_test_tells_is_told_of_the_run(
    status: int | None, changed: dict[str, Any], state: str
) -> None:
    found = standings(report(result(Verdict.PASS), status=status, **changed))
    assert {one.name: one.now.state for one in found}[THE_RUN] == state


def test_a_failed_test_is_told_once_and_not_of_the_run_as_well() -> None:
    failed = result(Verdict.ERROR, failure=Failure("oom", "out of memory", (), ""))
    found = standings(report(failed, status=11))
    assert [(one.name, one.now.state, one.why) for one in found] == [
        ("small-c4", "error", "oom: out of memory"),
        (THE_RUN, "green", ""),
    ]


def test_nothing_judged_at_all_is_told_of_the_run() -> None:
    found = standings(report(result(None, why_not="lack"), status=12))
    assert [(one.name, one.now.state) for one in found] == [(THE_RUN, "unjudged")]


def test_a_rehearsal_is_another_series_and_not_told_by_itself() -> None:
    played = report(result(Verdict.REGRESSION, synthetic=True), synthetic=True, status=1)
    assert standings(played) == []
    known: dict[str, SeriesState] = {}
    told(known, report(result(Verdict.PASS)))
    assert told(known, played, synthetic=True) == [("synthetic small-c4", None, "red")]
    assert standings(report(result(Verdict.PASS)), synthetic=True) == []


def test_the_worst_comes_first_and_a_scenario_is_told_of_once() -> None:
    larger = replace(result(Verdict.REGRESSION, "big-c1"), judgements=(judgement(change=-0.5),))
    found = standings(
        report(
            result(Verdict.INCONCLUSIVE, "aaa-c1"),
            result(Verdict.ERROR, "small-c1"),
            result(Verdict.REGRESSION),
            larger,
            status=1,
        )
    )
    changed = changes(found, {})
    assert [one.standing.name for one in changed] == ["big-c1", "small-c4", "small-c1", "aaa-c1"]
    assert [(name, len(of_it)) for name, of_it in by_scenario(changed)] == [
        ("big", 1), ("small", 2), ("aaa", 1),
    ]  # fmt: skip


def test_why_is_told_with_interval_and_band() -> None:
    (red, _) = standings(report(result(Verdict.REGRESSION), status=1))
    assert red.why == "output_throughput -12.3 % (interval -14.0 … -10.5 %, band -2.0 %)"
    assert red.size == pytest.approx(6.15)
    two = replace(
        result(Verdict.REGRESSION),
        judgements=(judgement(change=-0.03), judgement(metric="itl_p99_ms", change=0.2)),
    )
    (red, _) = standings(report(two, status=1))
    assert red.why.startswith("itl_p99_ms +20.0 %")
    assert red.why.endswith(" and 1 more metrics")


def test_a_waived_loss_is_green() -> None:
    waived = replace(
        result(Verdict.PASS), judgements=(judgement(waiver="let through by Ada until Friday"),)
    )
    (green, _) = standings(report(waived))
    assert (green.now.state, green.why) == ("green", "output_throughput -12.3 % (waived)")


def test_a_test_that_no_run_had_for_90_days_is_forgotten() -> None:
    known: dict[str, SeriesState] = {}
    told(known, report(result(Verdict.REGRESSION)))
    in_time = report(
        result(Verdict.PASS, "small-c1"), run="r2", started="2027-02-21T02:00:00+00:00"
    )
    told(known, in_time)
    assert "small-c4" in known
    told(known, replace_started(in_time, "2027-02-21T02:00:01+00:00"))
    assert "small-c4" not in known


def replace_started(one: RunReport, started: str) -> RunReport:
    return replace(one, runs=(replace(one.runs[0], started=started),))
