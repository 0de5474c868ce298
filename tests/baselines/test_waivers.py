"""Waivers: a known loss is let through up to its limit and its last day, and no further."""

import json
from collections.abc import Mapping, Sequence
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
    WaiverFault,
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

THROUGH, NAN, INFINITY = "let through", float("nan"), float("inf")
EXCEEDS = "exceeds the waiver of runtime team: lost"
UNKNOWN = f"{EXCEEDS} an unknown amount, at most 3.0 %"
QUARTER = {"at_most": 0.0025}
ENDED = {"last_day": TODAY - DAY}


@each(
    "of_waiver, of_loss, note",
    [
        ({}, {"change": -0.025}, THROUGH),
        ({}, {"change": -0.03}, THROUGH),
        ({}, {"change": 97 / 100 - 1}, THROUGH),  # a little more than 0.03 in binary
        ({}, {"change": -0.0304}, f"{EXCEEDS} 3.04 %, at most 3.0 %"),
        ({}, {"change": -0.0300001}, f"{EXCEEDS} 3.00001 %, at most 3.0 %"),
        ({}, {"change": None}, UNKNOWN),
        ({}, {"change": NAN}, UNKNOWN),
        ({}, {"change": -INFINITY}, UNKNOWN),
        (QUARTER, {"metric": LATENCY, "change": 0.0025}, THROUGH),
        (QUARTER, {"metric": LATENCY, "change": 0.003}, f"{EXCEEDS} 0.30 %, at most 0.25 %"),
        ({}, {"metric": LATENCY, "change": -INFINITY}, UNKNOWN),  # no gain: it is no number at all
        ({}, {"metric": SUMS, "change": 0.90 - 0.93}, THROUGH),  # three points, absolute
        ({}, {"metric": SUMS, "change": -0.05}, f"{EXCEEDS} 5.0 points, at most 3.0 points"),
        ({"last_day": TODAY}, {}, THROUGH),
        (ENDED, {}, "the waiver of runtime team ended on 2026-11-20"),
        ({}, {"against": "anchor"}, THROUGH),
        ({}, {"against": "documented"}, THROUGH),
        ({}, {"against": "claim"}, ""),
        ({"probe": "c4"}, {}, THROUGH),
        ({"probe": "c1"}, {}, ""),
        ({"metric": LATENCY}, {}, ""),
        ({"scenario": "small-bench"}, {}, ""),
        ({"hardware": "8xB200"}, {}, ""),
    ],
)
def test_a_regression_up_to_the_limit_is_let_through_up_to_the_last_day(
    of_waiver: dict[str, Any], of_loss: dict[str, Any], note: str
) -> None:
    loss = replace(judged(**{"change": -0.02, **of_loss}), notes=("first",))
    (one,) = let(loss, waivers=[replace(WAIVER, **{"metric": loss.metric, **of_waiver})])
    through = note == THROUGH
    assert (one.waiver is not None, one.verdict) == (through, Verdict.REGRESSION)
    assert verdict_of([one]) == (Verdict.PASS if through else Verdict.REGRESSION)
    assert one.notes == (("first",) if through or not note else ("first", note))


def test_it_says_who_why_where_and_until_when_and_reports_list_it() -> None:
    known = replace(WAIVER, reason="it is known.")
    waived = let(judged(-0.02), judged(0.01, Verdict.PASS, metric=LATENCY), waivers=[known])
    text = (
        "waived by runtime team up to a loss of 3.0 %, until 2026-11-21: it is known "
        "(https://example.com/issues/1)"
    )
    assert waived[0].waiver == AppliedWaiver("runtime team", TODAY, text)
    records = [record(*waived), record(judged(-0.5), probe="c1"), record(scenario="x", probe="y")]
    assert in_force(records) == [LetThrough("small-serve-c4", SPEED, -0.02, text)]


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

PASSED = judged(0.001, Verdict.PASS)
BETTER = judged(0.03, Verdict.IMPROVEMENT)
SMALL_LOSS = judged(-0.008, Verdict.PASS)  # proved, but smaller than the band
LOST, LOST_MORE = judged(-0.02), judged(-0.05)
BY_ANCHOR = judged(-0.03, against="anchor")
ERROR: tuple[Judgement, ...] = ()
OF_LATENCY = {"metric": LATENCY, "probe": "c4"}


def slower(change: float, verdict: Verdict = Verdict.REGRESSION) -> Judgement:
    return judged(change, verdict, metric=LATENCY)


def found(of_waiver: Mapping[str, Any], *records: VerdictRecord) -> tuple[WaiverFault, ...]:
    return faults([replace(WAIVER, **of_waiver)], records, known=KNOWN, today=TODAY)


def records_of(marks: Mapping[str, Any], **probes: Any) -> list[VerdictRecord]:
    """A record of each probe that ran, with its judgement or judgements."""
    ran = {probe: one for probe, one in probes.items() if one is not None}
    return [
        record(*(one if isinstance(one, tuple) else (one,)), probe=probe, **marks)
        for probe, one in ran.items()
    ]


@each(
    "c1, c4, of_waiver, expected",
    [
        (LOST, LOST, {}, []),
        (PASSED, SMALL_LOSS, {}, []),
        (PASSED, PASSED, {}, ["unmatched"]),
        (PASSED, BETTER, {}, ["unmatched"]),
        (PASSED, judged(-0.004, Verdict.PASS), {}, ["unmatched"]),  # a loss that is not proved
        (PASSED, judged(-0.005, Verdict.PASS), {}, ["unmatched"]),  # its bound is exactly 0
        (PASSED, LOST_MORE, {}, ["exceeded"]),
        (LOST, LOST_MORE, {}, ["exceeded"]),
        (judged(None), PASSED, {}, ["exceeded"]),
        (PASSED, judged(-0.02, Verdict.INCONCLUSIVE), {}, []),
        (PASSED, judged(None, Verdict.NO_BASELINE), {}, []),
        (PASSED, judged(None, Verdict.NOT_COMPARABLE), {}, []),
        (PASSED, replace(PASSED, interval=None), {}, []),
        (PASSED, slower(-0.05), {}, []),  # it says nothing of this metric
        (PASSED, (PASSED, BY_ANCHOR), {}, []),  # a loss that only the anchor shows
        # Where lower is better, more is a loss.
        (None, slower(0.02), OF_LATENCY, []),
        (None, slower(0.05), OF_LATENCY, ["exceeded"]),
        (None, slower(0.008, Verdict.PASS), OF_LATENCY, []),
        (None, slower(-0.008, Verdict.PASS), OF_LATENCY, ["unmatched"]),
        # What was not measured may have lost.
        (None, None, {}, []),
        (None, PASSED, {}, []),
        (ERROR, PASSED, {}, []),
        (None, PASSED, {"probe": "c4"}, ["unmatched"]),
        (None, PASSED, {"probe": "c1"}, []),
        # An ended one fails the runs that measure its scenario, and is not called needless too.
        (None, LOST, ENDED, ["expired"]),
        (None, ERROR, ENDED, ["expired"]),
        (PASSED, PASSED, ENDED, ["expired"]),
        (LOST_MORE, LOST_MORE, ENDED, ["expired"]),
        (None, LOST, {"last_day": TODAY}, []),
        (None, None, ENDED, []),
        (None, None, {"scenario": "gone", **ENDED}, ["unmatched", "expired"]),
    ],
)
def test_a_waiver_is_held_against_what_was_judged(
    c1: Any, c4: Any, of_waiver: dict[str, Any], expected: list[str]
) -> None:
    assert [one.kind for one in found(of_waiver, *records_of({}, c1=c1, c4=c4))] == expected


@each("marks", [{"synthetic": True}, {"injected": ["tp=2"]}, {"scenario": "other"}])
def test_stand_ins_changed_settings_other_scenarios_and_claims_say_nothing(
    marks: dict[str, Any],
) -> None:
    for one in (PASSED, LOST_MORE):
        assert found({}, *records_of(marks, c1=one, c4=one)) == ()
    assert found({}, record(judged(-0.5, against="claim"), probe="fp8-costs-little")) == ()
    assert found(ENDED, record(LOST, scenario="other")) == ()


MORE = """\
at_most: the loss exceeds the waiver (output_throughput of small-serve, owner runtime team)
  found: c4: lost 3.04 %
  expected: at most 3.0 %
  fix: fix the loss; raise at_most only if the owner accepts it"""


@each(
    "of_waiver, record, place, texts",
    [
        ({}, judged(-0.0304), MORE, ""),
        ({}, (PASSED, judged(-0.06, against="anchor")), "", "c4: lost 6.0 % (against the anchor)"),
        ({"probe": "c4"}, BETTER, "", "found: c4: IMPROVEMENT, changed by +3.0 %"),
        (ENDED, LOST, "", "found: last day 2026-11-20, today is 2026-11-21"),
        ({"scenario": "smal-serve"}, None, "scenario", "one of small-serve; did you mean small-"),
        ({"hardware": "8xB200"}, None, "hardware", "one of cpu; remove the waiver"),
        ({"metric": "ttft_mean_ms"}, None, "metric", f"one of {SPEED}, {LATENCY}; correct it"),
        ({"probe": "c8"}, None, "probe", "one of c1, c4; correct it, or remove"),
    ],
)
def test_messages_say_where_what_was_found_and_how_to_mend_it(
    of_waiver: dict[str, Any], record: Any, place: str, texts: str
) -> None:
    for one in (record, LOST) if record is None else (record,):
        (fault,) = found(of_waiver, *records_of({}, c4=one))
        assert fault.message.startswith(f"waivers.yaml:7: {place}")
        assert all(text in fault.message for text in texts.split("; "))
        assert ("the waiver matches nothing" in fault.message) is (record is None)


def test_what_the_suite_can_judge() -> None:
    both = (SPEED, LATENCY)
    known = known_of(all_probes(building.SCENARIO))
    assert known == {"small-serve": Known("cpu", {"c1": both, "c4": both, "sums": (SUMS,)})}
    # A probe without the metric is none of the waiver's probes.
    (fault,) = faults([replace(WAIVER, probe="sums")], [], known=known, today=TODAY)
    assert ": probe: the waiver matches nothing" in fault.message
    assert "expected: one of c1, c4\n" in fault.message
    many = {f"scenario-{number}": KNOWN["small-serve"] for number in range(40)}
    (fault,) = faults([WAIVER], [], known=many, today=TODAY)
    assert "an id that `perfgate scenarios list` shows" in fault.message


def test_each_waiver_is_held_for_itself() -> None:
    ended = replace(WAIVER, metric=LATENCY, last_day=TODAY - DAY, line=20)
    both = faults([WAIVER, ended], [record(LOST_MORE)], known=KNOWN, today=TODAY)
    assert [(one.waiver.line, one.kind) for one in both] == [(7, "exceeded"), (20, "expired")]


@given(st.floats(-0.9, 0.9), st.floats(1e-6, 0.999))
def test_a_regression_is_let_through_or_exceeds_the_waiver(change: float, at_most: float) -> None:
    waiver = replace(WAIVER, at_most=at_most)
    (one,) = let(judged(change), waivers=[waiver])
    expected = [] if one.waiver else ["exceeded"]
    assert [fault.kind for fault in found({"at_most": at_most}, record(one))] == expected


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


@each(
    "field, problem, values",
    [
        *((name, "missing", [...]) for name in FIELDS if name != "probe"),
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
        entry = {name: old for name, old in {**ENTRY, field: value}.items() if old is not ...}
        (error,) = refused(written(suite_root, entry))
        assert (error.problem, error.field) == (problem, f"waivers[0].{field}")
        assert error.line == 3 + (list(entry).index(field) if field in entry else 0)
        assert error.expected == FIELDS[field]["description"] if value is ... else error.expected


def test_what_yaml_reads_astray_is_no_day(suite_root: Path) -> None:
    """A day may be written with and without quotes."""

    def day(text: str, field: str = "last_day") -> Path:
        file = written(suite_root, {**ENTRY, field: "DAY"})
        return saved(suite_root, file.read_text().replace("DAY", text))

    for text in ("2026-12-31 # end of the year", '"2026-12-31"'):
        assert load_waivers(day(text))[0].last_day == date(2026, 12, 31)
    for text in ("2026-02-30", "2026-12-31T10:00:00Z", "1:40:00", "010", ".nan", "{1: 2}", "~"):
        fields = {str(error.field).removesuffix("[0]") for error in refused(day(text))}
        assert fields == {"waivers[0].last_day"}
    (error,) = refused(day("2026-12-31", "owner"))
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


C4, TWICE = {"probe": "c4"}, "last_day: 2026-12-31"


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
        (f"schema_version: 1\nwaivers: [{{{TWICE}, {TWICE}}}]\n", "field given twice", 2),
        ("schema_version: 1\nwaivers: [\n", "broken YAML", 3),
    ],
)
def test_files_that_are_no_lists_of_waivers(
    suite_root: Path, text: str, problem: str, line: int | None
) -> None:
    (error,) = refused(saved(suite_root, text))
    assert (error.problem, error.line) == (problem, line)


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
