"""Waivers: a known loss is let through up to its limit and its last day, and no further."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import building
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from plain_records import record as made_record
from tables import each

from perfgate.baselines.waivers import (
    Known,
    LetThrough,
    Waiver,
    faults,
    in_force,
    known_of,
    load_waivers,
    waive,
)
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.metrics import lookup
from perfgate.core.verdict import Against, AppliedWaiver, Judgement, Verdict, verdict_of
from perfgate.runs.record import VerdictRecord
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.probe import all_probes

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(
    (ROOT / "src/perfgate/baselines/waivers/waivers.schema.json").read_text(encoding="utf-8")
)
FIELDS = SCHEMA["properties"]["waivers"]["items"]["properties"]
TODAY = date(2026, 11, 21)
DAY = timedelta(days=1)
SPEED, LATENCY, SUMS = "output_throughput", "tpot_mean_ms", building.SUMS
KNOWN = {"small-serve": Known("cpu", {"c1": (SPEED, LATENCY), "c4": (SPEED, LATENCY)})}

ENTRY: dict[str, Any] = {
    "scenario": "small-serve",
    "metric": SPEED,
    "hardware": "cpu",
    "at_most": 0.03,
    "reason": "the new sampler costs a copy per step",
    "link": "https://example.com/issues/1",
    "owner": "runtime team",
    "last_day": "2026-12-31",
}
WAIVER = Waiver(**{**ENTRY, "last_day": TODAY}, line=7)


def judged(
    change: float | None,
    verdict: Verdict = Verdict.REGRESSION,
    *,
    metric: str = SPEED,
    against: Against = "baseline",
    within: float = 0.005,
) -> Judgement:
    interval = None if change is None else (change - within, change + within)
    return Judgement(
        metric, verdict, 100.0, 97.0, change, interval, 0.02, 2, False, "because", (), against
    )


def record(*judgements: Judgement, probe: str = "c4", **changes: Any) -> VerdictRecord:
    """The record of a verdict."""
    verdict = verdict_of(judgements) if judgements else Verdict.ERROR
    plain = {"probe": probe, "verdict": verdict, "judgements": judgements, **changes}
    made = made_record("verdict", plain)
    assert isinstance(made, VerdictRecord)
    return made


def let(*judgements: Judgement, waivers: Sequence[Waiver] = (WAIVER,), **place: Any) -> Any:
    where = {"scenario": "small-serve", "hardware": "cpu", "probe": "c4", "today": TODAY, **place}
    return waive(judgements, waivers=waivers, **where)


# What is let through. -----------------------------------------------------------------------


@each(
    ("metric", "change", "through"),
    [
        (SPEED, -0.025, True),
        (SPEED, -0.03, True),
        (SPEED, 97 / 100 - 1, True),  # a little more than 0.03 in binary
        (SPEED, -0.030001, False),
        (SPEED, float("nan"), False),
        (SPEED, None, False),
        (SPEED, float("-inf"), False),
        (LATENCY, 0.03, True),
        (LATENCY, 0.030001, False),
        (LATENCY, float("inf"), False),
        (LATENCY, float("-inf"), False),  # no gain either: it is no number at all
        (SUMS, 0.90 - 0.93, True),  # three points, absolute
        (SUMS, 0.895 - 0.93, False),
    ],
)
def test_a_regression_up_to_the_limit_is_let_through(
    metric: str, change: float | None, through: bool
) -> None:
    (one,) = let(judged(change, metric=metric), waivers=[replace(WAIVER, metric=metric)])
    assert bool(one.waiver) is through
    assert one.verdict == Verdict.REGRESSION
    assert verdict_of([one]) == (Verdict.PASS if through else Verdict.REGRESSION)
    assert bool(one.notes) is not through


@each(("last_day", "through"), [(TODAY - DAY, False), (TODAY, True), (TODAY + DAY, True)])
def test_the_last_day_is_the_last_on_which_it_holds(last_day: date, through: bool) -> None:
    (one,) = let(judged(-0.02), waivers=[replace(WAIVER, last_day=last_day)])
    assert bool(one.waiver) is through
    told = f"the waiver of runtime team ended on {last_day}"
    assert one.notes == (() if through else (told,))


def test_it_says_who_why_where_and_until_when() -> None:
    (one,) = let(judged(-0.02), waivers=[replace(WAIVER, reason="it is known.")])
    text = (
        "waived by runtime team up to a loss of 3.0 %, until 2026-11-21: it is known "
        "(https://example.com/issues/1)"
    )
    assert one.waiver == AppliedWaiver("runtime team", TODAY, text)


@each(
    ("metric", "change", "at_most", "note"),
    [
        (SPEED, -0.0304, 0.03, "lost 3.04 %, at most 3.0 %"),
        (SPEED, -0.0300001, 0.03, "lost 3.00001 %, at most 3.0 %"),
        (LATENCY, 0.003, 0.0025, "lost 0.30 %, at most 0.25 %"),
        (SUMS, -0.05, 0.03, "lost 5.0 points, at most 3.0 points"),
        (SPEED, None, 0.03, "lost an unknown amount, at most 3.0 %"),
    ],
)
def test_a_larger_loss_is_told_with_digits_that_show_it(
    metric: str, change: float | None, at_most: float, note: str
) -> None:
    waiver = replace(WAIVER, metric=metric, at_most=at_most)
    known = replace(judged(change, metric=metric), notes=("first",))
    (one,) = let(known, waivers=[waiver])
    assert one.notes == ("first", f"exceeds the waiver of runtime team: {note}")


@each(
    ("against", "through"),
    [("baseline", True), ("anchor", True), ("documented", True), ("claim", False)],
)
def test_it_holds_against_every_reference_but_not_for_a_claim(
    against: Against, through: bool
) -> None:
    (one,) = let(judged(-0.02, against=against))
    assert bool(one.waiver) is through


@each(
    "place",
    [
        {"scenario": "small-bench"},
        {"hardware": "8xB200"},
        {"waivers": [replace(WAIVER, metric=LATENCY)]},
        {"waivers": [replace(WAIVER, probe="c1")]},
        {"waivers": []},
    ],
)
def test_a_waiver_of_something_else_changes_nothing(place: dict[str, Any]) -> None:
    loss = judged(-0.02)
    assert let(loss, **place) == (loss,)


ANY_JUDGEMENT = st.builds(
    judged,
    st.none() | st.floats(-1, 5),
    st.sampled_from(Verdict),
    metric=st.sampled_from([SPEED, LATENCY, SUMS]),
    against=st.sampled_from(["baseline", "anchor", "documented", "claim"]),
)
ANY_WAIVER = st.builds(
    lambda metric, at_most, days, probe: replace(
        WAIVER, metric=metric, at_most=at_most, last_day=TODAY + days * DAY, probe=probe
    ),
    st.sampled_from([SPEED, LATENCY, SUMS]),
    st.floats(1e-6, 0.999),
    st.integers(-3, 3),
    st.sampled_from([None, "c1", "c4"]),
)


@given(st.lists(ANY_JUDGEMENT, min_size=1), st.lists(ANY_WAIVER))
def test_a_waiver_never_makes_more_of_a_judgement_than_let_through(
    judgements: list[Judgement], waivers: list[Waiver]
) -> None:
    ends = let(*judgements, waivers=waivers)
    assert [replace(one, waiver=None, notes=()) for one in ends] == judgements
    for one in ends:
        if one.waiver:
            assert one.verdict == Verdict.REGRESSION
            assert one.against != "claim"
            sign = -1 if lookup(one.metric).direction == "higher" else 1
            assert any(
                sign * one.change <= waiver.at_most + 1e-9
                for waiver in waivers
                if waiver.metric == one.metric and waiver.last_day >= TODAY
            )
    # Together they are at best what they would be if what is let through had passed.
    rest = [one for one, end in zip(judgements, ends, strict=True) if not end.waiver]
    waived = len(rest) < len(ends)
    assert verdict_of(ends) == verdict_of([*rest, *[judged(0.0, Verdict.PASS)] * waived])


# What fails a run. --------------------------------------------------------------------------


def kinds(*records: dict[str, Any], waiver: Waiver = WAIVER, **options: Any) -> list[str]:
    found = faults([waiver], records, **{"known": KNOWN, "today": TODAY, **options})
    assert all(f"waivers.yaml:{waiver.line}: " in one.message for one in found)
    return [one.kind for one in found]


PASSED = judged(0.001, Verdict.PASS)
BETTER = judged(0.03, Verdict.IMPROVEMENT)
SMALL_LOSS = judged(-0.008, Verdict.PASS)  # proved, but smaller than the band
LOST = judged(-0.02)


@each(
    ("c1", "c4", "expected"),
    [
        (LOST, LOST, []),
        (PASSED, SMALL_LOSS, []),
        (PASSED, PASSED, ["unmatched"]),
        (PASSED, BETTER, ["unmatched"]),
        (PASSED, judged(-0.004, Verdict.PASS), ["unmatched"]),  # a loss that is not proved
        (PASSED, judged(-0.005, Verdict.PASS), ["unmatched"]),  # its bound is exactly 0
        (PASSED, judged(-0.05), ["exceeded"]),
        (LOST, judged(-0.05), ["exceeded"]),
        (judged(None), PASSED, ["exceeded"]),
        (PASSED, judged(-0.02, Verdict.INCONCLUSIVE), []),
        (PASSED, judged(None, Verdict.NO_BASELINE), []),
        (PASSED, judged(None, Verdict.NOT_COMPARABLE), []),
        (PASSED, replace(PASSED, interval=None), []),
        (PASSED, judged(-0.05, metric=LATENCY), []),  # it says nothing of this metric
    ],
)
def test_a_waiver_is_held_against_what_was_judged(
    c1: Judgement, c4: Judgement, expected: list[str]
) -> None:
    assert kinds(record(c1, probe="c1"), record(c4)) == expected


@each(
    ("change", "verdict", "expected"),
    [
        (0.02, Verdict.REGRESSION, []),
        (0.05, Verdict.REGRESSION, ["exceeded"]),
        (0.008, Verdict.PASS, []),
        (-0.008, Verdict.PASS, ["unmatched"]),
    ],
)
def test_where_lower_is_better_more_is_a_loss(
    change: float, verdict: Verdict, expected: list[str]
) -> None:
    waiver = replace(WAIVER, metric=LATENCY, probe="c4")
    assert kinds(record(judged(change, verdict, metric=LATENCY)), waiver=waiver) == expected


def test_a_loss_that_only_the_anchor_shows_keeps_the_waiver() -> None:
    anchor = judged(-0.03, against="anchor")
    assert kinds(record(PASSED, probe="c1"), record(PASSED, anchor)) == []
    beyond = judged(-0.06, against="anchor")
    (fault,) = faults([WAIVER], [record(PASSED, beyond)], known=KNOWN, today=TODAY)
    assert "c4: lost 6.0 % (against the anchor)" in fault.message


def test_what_was_not_measured_may_have_lost() -> None:
    assert kinds() == []
    assert kinds(record(PASSED)) == []  # c1 was not selected
    assert kinds(record(PASSED), waiver=replace(WAIVER, probe="c4")) == ["unmatched"]
    assert kinds(record(PASSED), waiver=replace(WAIVER, probe="c1")) == []
    assert kinds(record(PASSED), record(probe="c1")) == []  # an ERROR


@each("change", [{"synthetic": True}, {"injected": ["engine.settings.tp=2"]}])
def test_stand_ins_and_changed_settings_say_nothing(change: dict[str, Any]) -> None:
    for one in (PASSED, judged(-0.5)):
        assert kinds(record(one, probe="c1", **change), record(one, **change)) == []


def test_a_claim_about_the_scenario_says_nothing() -> None:
    assert kinds(record(judged(-0.5, against="claim"), probe="fp8-costs-little")) == []


@each(("last_day", "expected"), [(TODAY - DAY, ["expired"]), (TODAY, [])])
def test_an_ended_waiver_fails_the_runs_that_measure_its_scenario(
    last_day: date, expected: list[str]
) -> None:
    waiver = replace(WAIVER, last_day=last_day)
    for records in ([record(LOST)], [record()], [record(probe="c1")]):
        assert kinds(*records, waiver=waiver) == expected
    assert kinds(record(LOST, scenario="other"), waiver=waiver) == []


def test_an_ended_waiver_is_not_also_called_exceeded_or_needless() -> None:
    waiver = replace(WAIVER, last_day=TODAY - DAY)
    for one in (PASSED, judged(-0.5)):
        assert kinds(record(one, probe="c1"), record(one), waiver=waiver) == ["expired"]


@each(
    ("change", "field", "expected", "mend"),
    [
        ({"scenario": "smal-serve"}, "scenario", "one of small-serve", "did you mean small-serve?"),
        ({"hardware": "8xB200"}, "hardware", "one of cpu", "remove the waiver"),
        ({"metric": "ttft_mean_ms"}, "metric", f"one of {SPEED}, {LATENCY}", "correct it"),
        ({"probe": "c8"}, "probe", "one of c1, c4", "correct it, or remove"),
    ],
)
def test_a_waiver_of_nothing_fails_every_run(
    change: dict[str, Any], field: str, expected: str, mend: str
) -> None:
    for records in ([], [record(LOST)]):
        (fault,) = faults([replace(WAIVER, **change)], records, known=KNOWN, today=TODAY)
        assert fault.kind == "unmatched"
        assert f"waivers.yaml:7: {field}: the waiver matches nothing" in fault.message
        assert f"expected: {expected}\n" in fault.message
        assert mend in fault.message


def test_a_probe_without_the_metric_is_none_of_its_probes() -> None:
    known = {"small-serve": Known("cpu", {"c4": (SPEED,), "sums": (SUMS,), "smoke": ()})}
    assert kinds(waiver=replace(WAIVER, probe="c4"), known=known) == []
    for probe in ("sums", "smoke"):
        waiver = replace(WAIVER, probe=probe)
        (fault,) = faults([waiver], [], known=known, today=TODAY)
        assert ": probe: the waiver matches nothing" in fault.message
        assert "expected: one of c4\n" in fault.message


def test_an_unknown_and_ended_waiver_is_told_as_both() -> None:
    waiver = replace(WAIVER, scenario="gone", last_day=TODAY - DAY)
    assert kinds(waiver=waiver) == ["unmatched", "expired"]


def test_long_lists_are_not_told() -> None:
    known = {f"scenario-{number}": KNOWN["small-serve"] for number in range(40)}
    (fault,) = faults([WAIVER], [], known=known, today=TODAY)
    assert "an id that `perfgate scenarios list` shows" in fault.message


def test_messages_say_what_was_found_and_how_to_mend_it() -> None:
    def message(waiver: Waiver, *records: dict[str, Any]) -> str:
        (fault,) = faults([waiver], records, known=KNOWN, today=TODAY)
        assert fault.waiver is waiver
        return fault.message

    assert message(WAIVER, record(judged(-0.0304))) == (
        "waivers.yaml:7: at_most: the loss exceeds the waiver "
        "(output_throughput of small-serve, owner runtime team)\n"
        "  found: c4: lost 3.04 %\n"
        "  expected: at most 3.0 %\n"
        "  fix: fix the loss; raise at_most only if the owner accepts it"
    )
    needless = message(WAIVER, record(PASSED, probe="c1"), record(BETTER))
    assert "found: c1: PASS, changed by +0.1 %; c4: IMPROVEMENT, changed by +3.0 %" in needless
    expired = message(replace(WAIVER, last_day=TODAY - DAY), record(LOST))
    assert "found: last day 2026-11-20, today is 2026-11-21" in expired


def test_each_waiver_is_held_for_itself() -> None:
    ended = replace(WAIVER, metric=LATENCY, last_day=TODAY - DAY, line=20)
    found = faults([WAIVER, ended], [record(judged(-0.05))], known=KNOWN, today=TODAY)
    assert [(one.waiver.line, one.kind) for one in found] == [(7, "exceeded"), (20, "expired")]


@given(st.floats(-0.9, 0.9), st.floats(1e-6, 0.999))
def test_a_regression_is_let_through_or_exceeds_the_waiver(change: float, at_most: float) -> None:
    waiver = replace(WAIVER, at_most=at_most)
    (one,) = let(judged(change), waivers=[waiver])
    expected = [] if one.waiver else ["exceeded"]
    assert kinds(record(one), waiver=waiver) == expected


def test_what_the_suite_can_judge() -> None:
    assert known_of(all_probes(building.SCENARIO)) == {
        "small-serve": Known(
            "cpu", {"c1": (SPEED, LATENCY), "c4": (SPEED, LATENCY), "sums": (SUMS,)}
        )
    }


def test_reports_list_what_was_let_through() -> None:
    waived = let(judged(-0.02), judged(0.01, Verdict.PASS, metric=LATENCY))
    records = [record(*waived), record(judged(-0.5), probe="c1"), record(scenario="x", probe="y")]
    assert in_force(records) == [LetThrough("small-serve-c4", SPEED, -0.02, str(waived[0].waiver))]


# The file. ----------------------------------------------------------------------------------


def written(checkout: Path, *entries: Any) -> Path:
    plain = {"schema_version": 1, "waivers": list(entries)}
    return saved(checkout, yaml.safe_dump(plain, sort_keys=False))


def saved(checkout: Path, text: str) -> Path:
    file = checkout / "waivers.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def refused(file: Path) -> tuple[InputError, ...]:
    with pytest.raises(SeveralInputErrors) as told:
        load_waivers(file)
    assert all(error.file == file for error in told.value.errors)
    return told.value.errors


def test_a_file_is_read(suite_root: Path) -> None:
    file = saved(
        suite_root,
        """
schema_version: 1
waivers:
  - scenario: small-serve
    metric: output_throughput
    hardware: 2x4xGB200
    at_most: 0.03
    reason: >
      the new sampler costs
      a copy per step
    link: https://example.com/issues/1
    owner: runtime team
    last_day: 2026-12-31
  - {scenario: small-serve, metric: "accuracy:sums:exact_match:strict-match", hardware: cpu,
     probe: sums, at_most: 0.5, reason: r, link: "http://a", owner: o, last_day: "2027-01-01"}
""",
    )
    last_day = date(2026, 12, 31)
    first, second = load_waivers(file)
    assert first == replace(WAIVER, hardware="2x4xGB200", last_day=last_day, line=4, file=file)
    assert (second.metric, second.probe, second.line) == (SUMS, "sums", 14)
    assert second.last_day == date(2027, 1, 1)
    assert load_waivers() == (first, second)


def test_no_list_is_no_waiver_but_a_named_one_must_be_there(suite_root: Path) -> None:
    assert load_waivers() == ()
    assert load_waivers(suite_root / "waivers.yaml") == ()
    assert load_waivers(written(suite_root)) == ()
    with pytest.raises(SeveralInputErrors) as told:
        load_waivers(suite_root / "other.yaml")
    (error,) = told.value.errors
    assert (error.field, error.found) == ("--waivers", suite_root / "other.yaml")


@each("field", [name for name in FIELDS if name != "probe"])
def test_every_field_is_needed(suite_root: Path, field: str) -> None:
    entry = {name: value for name, value in ENTRY.items() if name != field}
    (error,) = refused(written(suite_root, entry))
    assert (error.problem, error.field, error.line) == ("missing", f"waivers[0].{field}", 3)
    assert error.expected == FIELDS[field]["description"]


NAN, INFINITY = float("nan"), float("inf")


@each(
    ("field", "problem", "values"),
    [
        ("at_most", "out of range", [0, -0.03, 1]),
        ("at_most", "not a finite number", [NAN, INFINITY]),
        ("at_most", "wrong type", ["3%", True, None]),
        ("last_day", "no such day", ["2026-02-30", "0000-01-01"]),
        ("last_day", "malformed", ["2026-12-31\n", "31.12.2026", "2026-1-5", "20261231", "never"]),
        ("last_day", "wrong type", [20261231]),
        ("link", "malformed", ["issue 1", "https://", "javascript:alert(1)"]),
        ("reason", "malformed", ["", "  "]),
        ("owner", "malformed", [""]),
        ("scenario", "malformed", ["Small Serve"]),
        ("hardware", "malformed", ["B200", "8XB200", ""]),
        ("metric", "unknown metric", ["throughput"]),
        ("probe", "empty", [""]),
        ("probe", "wrong type", [None]),
    ],
)
def test_values_that_cannot_be(
    suite_root: Path, field: str, problem: str, values: list[object]
) -> None:
    for value in values:
        entry = {**ENTRY, field: value}
        (error,) = refused(written(suite_root, entry))
        assert (error.problem, error.field) == (problem, f"waivers[0].{field}")
        assert error.line == 3 + list(entry).index(field)
        assert error.expected


@each("text", ["2026-12-31 # end of the year", '"2026-12-31"'])
def test_a_day_may_be_written_with_and_without_quotes(suite_root: Path, text: str) -> None:
    file = written(suite_root, {**ENTRY, "last_day": "DAY"})
    (one,) = load_waivers(saved(suite_root, file.read_text().replace("DAY", text)))
    assert one.last_day == date(2026, 12, 31)


@each(
    "text",
    ["2026-02-30", "2026-12-31T10:00:00Z", "1:40:00", "010", ".nan", "{1: 2}", "[2026-12-31]", "~"],
)
def test_what_yaml_reads_astray_is_no_day(suite_root: Path, text: str) -> None:
    file = written(suite_root, {**ENTRY, "last_day": "DAY"})
    errors = refused(saved(suite_root, file.read_text().replace("DAY", text)))
    assert {str(error.field).removesuffix("[0]") for error in errors} == {"waivers[0].last_day"}


def test_a_date_elsewhere_is_text_that_wants_quotes(suite_root: Path) -> None:
    file = written(suite_root, {**ENTRY, "owner": "DAY"})
    (error,) = refused(saved(suite_root, file.read_text().replace("DAY", "2026-12-31")))
    assert (error.field, error.hint) == ("waivers[0].owner", "quote it if it is text")


def test_everything_that_is_wrong_is_told_at_once_in_order(suite_root: Path) -> None:
    file = written(
        suite_root,
        {**ENTRY, "at_most": 3, "link": "none", "lastday": 1},
        {**ENTRY, "metric": "speed", "last_day": "2026-02-30", "at_most": "3%"},
        {name: value for name, value in ENTRY.items() if name != "owner"},
        ENTRY,
        ENTRY,
    )
    errors = refused(file)
    assert [(error.field, error.problem) for error in errors] == [
        ("waivers[0].at_most", "out of range"),
        ("waivers[0].link", "malformed"),
        ("waivers[0].lastday", "unknown field"),
        ("waivers[1].metric", "unknown metric"),
        ("waivers[1].at_most", "wrong type"),
        ("waivers[1].last_day", "no such day"),
        ("waivers[2].owner", "missing"),
        ("waivers[2]", "conflicting waivers"),
        ("waivers[3]", "conflicting waivers"),
        ("waivers[4]", "conflicting waivers"),
    ]
    assert errors[2].hint == "did you mean last_day?"


C4 = {"probe": "c4"}


@each(
    ("one", "other", "problem"),
    [
        ({}, {}, "waiver given twice"),
        ({}, {"at_most": 0.05}, "conflicting waivers"),
        ({}, C4, "conflicting waivers"),
        (C4, {}, "conflicting waivers"),
        (C4, {**C4, "owner": "others"}, "conflicting waivers"),
        (C4, {**C4, "last_day": "2026-02-30"}, "conflicting waivers"),
        (C4, {"probe": "c8"}, None),
        ({}, {"metric": LATENCY}, None),
        ({}, {"hardware": "8xH200"}, None),
        ({}, {"scenario": "small-bench"}, None),
    ],
)
def test_two_waivers_of_one_thing_conflict(
    suite_root: Path, one: dict[str, Any], other: dict[str, Any], problem: str | None
) -> None:
    first, second = {**ENTRY, **one}, {**ENTRY, **other}
    file = written(suite_root, first, second)
    if problem is None:
        assert len(load_waivers(file)) == 2
        return
    error = refused(file)[0]
    assert (error.problem, error.field) == (problem, "waivers[1]")
    assert error.line == 3 + len(first)
    assert "; line 3 has one of output_throughput of small-serve on cpu" in str(error.expected)


@each(
    ("text", "problem", "line"),
    [
        ("# only a comment\n", "empty file", None),
        ("- scenario: small-serve\n", "wrong type", 1),
        ("schema_version: 1\n", "missing", 1),
        ("waivers: []\n", "missing", 1),
        ("schema_version: 1\nwaivers: {}\n", "wrong type", 2),
        ("schema_version: 1\nwaivers: [small-serve]\n", "wrong type", 2),
        ("schema_version: 2\nwaivers: []\n", "not an allowed value", 1),
        ("schema_version: 1\nwaivers: []\nwaivers: []\n", "field given twice", 3),
        ("schema_version: 1\nwaivers: [\n", "broken YAML", 3),
    ],
)
def test_files_that_are_no_lists_of_waivers(
    suite_root: Path, text: str, problem: str, line: int | None
) -> None:
    (error,) = refused(saved(suite_root, text))
    assert (error.problem, error.line) == (problem, line)


@each("again", ["at_most: 0.5", "last_day: 2026-12-31"])
def test_a_field_given_twice_is_refused(suite_root: Path, again: str) -> None:
    entry = ", ".join(f"{name}: {value}" for name, value in ENTRY.items())
    text = f"schema_version: 1\nwaivers: [{{{entry}, {again}}}]\n"
    (error,) = refused(saved(suite_root, text))
    field = again.partition(":")[0]
    assert (error.problem, error.field) == ("field given twice", f"waivers[0].{field}")


# What ships, and what is said of it. --------------------------------------------------------


def test_the_suite_ships_no_waiver_and_an_example_that_holds(suite_root: Path) -> None:
    assert load_waivers(ROOT / "waivers.yaml") == ()
    text = (ROOT / "waivers.yaml").read_text(encoding="utf-8").replace("waivers: []", "waivers:")
    entry = [line for line in text.splitlines() if line.startswith(("#  - ", "#    "))]
    assert len(entry) == len(FIELDS)
    for line in entry:
        text = text.replace(line, line.removeprefix("#"))
    _is_known(load_waivers(saved(suite_root, text)))


def test_the_page_says_what_the_schema_says_and_its_example_holds(suite_root: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "waivers.md").read_text(encoding="utf-8")
    for name, rule in FIELDS.items():
        assert f"| `{name}` | {rule['description']} |" in page
    _is_known(load_waivers(saved(suite_root, page.split("```yaml\n")[1].split("```")[0])))


def _is_known(waivers: Sequence[Waiver]) -> None:
    """The suite has all that the waivers name."""
    assert waivers
    probes = [probe for one in load_scenarios(ROOT / "scenarios") for probe in all_probes(one)]
    assert faults(waivers, [], known=known_of(probes), today=date(2026, 1, 1)) == ()
