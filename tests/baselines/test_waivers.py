"""Waivers: a known loss is let through up to its limit and its last day, and no further."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import building
import yaml
from hypothesis import given
from hypothesis import strategies as st
from plain_records import record as made_record
from refusals import refused
from tables import each

from perfgate.baselines import waivers as waiving
from perfgate.baselines.waivers import Known, Waiver, faults, known_of, load_waivers
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.metrics import lookup
from perfgate.core.verdict import AppliedWaiver, Judgement, Verdict, verdict_of
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.probe import all_probes

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "src/perfgate/baselines/waivers/waivers.schema.json").read_text())
FIELDS = SCHEMA["properties"]["waivers"]["items"]["properties"]
TODAY, YESTERDAY = date(2026, 11, 21), date(2026, 11, 20)
SPEED, LATENCY, SUMS = "output_throughput", "tpot_mean_ms", building.SUMS
KNOWN = {"small-serve": Known("cpu", {"c1": (SPEED, LATENCY), "c4": (SPEED, LATENCY)})}
NAN, INFINITY = float("nan"), float("inf")
LOSS, IMPROVED, PASS = Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.PASS

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


def judged(change, verdict=LOSS, *, metric=SPEED, against="baseline", within=0.005) -> Judgement:
    interval = None if change is None else (change - within, change + within)
    return Judgement(
        metric, verdict, 100.0, 97.0, change, interval, 0.02, 2, False, "because", (), against
    )


def record(*judgements: Judgement, probe: str = "c4", **changes: Any) -> Any:
    """The record of a verdict; without judgements an ERROR."""
    verdict = verdict_of(judgements) if judgements else Verdict.ERROR
    plain = {"probe": probe, "verdict": verdict, "judgements": judgements, **changes}
    return made_record("verdict", plain)


def let(*judgements: Judgement, waivers: Sequence[Waiver] = (WAIVER,)) -> Any:
    place = {"scenario": "small-serve", "hardware": "cpu", "probe": "c4", "today": TODAY}
    return waiving.waive(judgements, waivers=waivers, **place)


# What is let through. ----------------------------------------------------------------------------
EXCEEDS, UNKNOWN = "exceeds the waiver of runtime team: lost", "an unknown amount, at most 3.0 %"
QUARTER, ENDED = {"metric": LATENCY, "at_most": 0.0025}, {"last_day": YESTERDAY}
POINTS = {"metric": SUMS}


@each(
    "of_waiver, loss, note",
    [
        ({}, judged(-0.03), "let through"),
        ({}, judged(97 / 100 - 1), "let through"),  # a little more than 0.03 in binary
        ({}, judged(-0.0300001), f"{EXCEEDS} 3.00001 %, at most 3.0 %"),
        ({}, judged(None), f"{EXCEEDS} {UNKNOWN}"),
        ({}, judged(NAN), f"{EXCEEDS} {UNKNOWN}"),
        ({}, judged(-INFINITY), f"{EXCEEDS} {UNKNOWN}"),
        (QUARTER, judged(0.0025, metric=LATENCY), "let through"),
        (QUARTER, judged(0.003, metric=LATENCY), f"{EXCEEDS} 0.30 %, at most 0.25 %"),
        # No gain: it is no number at all.
        ({"metric": LATENCY}, judged(-INFINITY, metric=LATENCY), f"{EXCEEDS} {UNKNOWN}"),
        (POINTS, judged(0.90 - 0.93, metric=SUMS), "let through"),  # three points, absolute
        (POINTS, judged(-0.05, metric=SUMS), f"{EXCEEDS} 5.0 points, at most 3.0 points"),
        (ENDED, judged(-0.02), "the waiver of runtime team ended on 2026-11-20"),
        *(({}, judged(-0.02, against=one), "let through") for one in ("anchor", "documented")),
        ({}, judged(-0.02, against="claim"), ""),
        ({"probe": "c4"}, judged(-0.02), "let through"),
        *(({name: other}, judged(-0.02), "") for name, other in (
            ("probe", "c1"), ("metric", LATENCY), ("scenario", "small-bench"),
            ("hardware", "8xB200"))),
    ],
)  # fmt: skip
def test_a_loss_up_to_the_limit_is_let_through_up_to_the_last_day(of_waiver, loss, note) -> None:
    (one,) = let(replace(loss, notes=("first",)), waivers=[replace(WAIVER, **of_waiver)])
    through = note == "let through"
    assert (one.waiver is not None, one.verdict) == (through, LOSS)
    assert verdict_of([one]) == (PASS if through else LOSS)
    assert one.notes == (("first",) if through or not note else ("first", note))


def test_it_says_who_why_where_and_until_when_and_reports_list_it() -> None:
    known = replace(WAIVER, reason="it is known.")
    waived = let(judged(-0.02), judged(0.01, PASS, metric=LATENCY), waivers=[known])
    text = (
        "waived by runtime team up to a loss of 3.0 %, until 2026-11-21: it is known "
        "(https://example.com/issues/1)"
    )
    assert waived[0].waiver == AppliedWaiver("runtime team", TODAY, text)
    records = [record(*waived), record(judged(-0.5), probe="c1"), record(scenario="x", probe="y")]
    expected = waiving.LetThrough("small-serve-c4", SPEED, -0.02, text)
    assert waiving.in_force(records) == [expected]


METRICS = st.sampled_from([SPEED, LATENCY, SUMS])
ANY_JUDGEMENT = st.builds(
    judged,
    st.none() | st.floats(-1, 5),
    st.sampled_from(Verdict),
    metric=METRICS,
    against=st.sampled_from(["baseline", "anchor", "documented", "claim"]),
)
ANY_WAIVER = st.builds(
    replace,
    st.just(WAIVER),
    metric=METRICS,
    at_most=st.floats(1e-6, 0.999),
    last_day=st.integers(-3, 3).map(lambda days: TODAY + timedelta(days)),
    probe=st.sampled_from([None, "c1", "c4"]),
)


@given(st.lists(ANY_JUDGEMENT, min_size=1), st.lists(ANY_WAIVER))
def test_a_waiver_never_makes_more_of_a_judgement_than_let_through(judgements, waivers) -> None:
    ends = let(*judgements, waivers=waivers)
    assert [replace(one, waiver=None, notes=()) for one in ends] == judgements
    for one in ends:
        if one.waiver:
            assert one.verdict == LOSS
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
    assert verdict_of(ends) == verdict_of([*rest, *[judged(0.0, PASS)] * waived])


# What fails a run. -------------------------------------------------------------------------------
PASSED = judged(0.001, PASS)
LOST, LOST_MORE = judged(-0.02), judged(-0.05)
ERROR: tuple[Judgement, ...] = ()
OF_LATENCY = {"metric": LATENCY, "probe": "c4"}
LARGE, SMALL = judged(0.05, metric=LATENCY), judged(0.02, metric=LATENCY)


def found(of_waiver: Any, *records: Any) -> Any:
    return faults([replace(WAIVER, **of_waiver)], records, known=KNOWN, today=TODAY)


def records_of(marks: Any = None, **probes: Any) -> list[Any]:
    """A record of each probe that ran, with its judgement or judgements."""
    ran = {probe: one for probe, one in probes.items() if one is not None}
    return [
        record(*(one if isinstance(one, tuple) else (one,)), probe=probe, **(marks or {}))
        for probe, one in ran.items()
    ]


@each(
    "c1, c4, of_waiver, expected",
    [
        (LOST, LOST, {}, []),
        (PASSED, judged(-0.008, PASS), {}, []),  # a loss that is proved, but within the band
        (PASSED, judged(0.03, IMPROVED), {}, ["unmatched"]),
        (PASSED, judged(-0.004, PASS), {}, ["unmatched"]),  # a loss that is not proved
        (PASSED, judged(-0.005, PASS), {}, ["unmatched"]),  # its bound is exactly 0
        (LOST, LOST_MORE, {}, ["exceeded"]),
        (judged(None), PASSED, {}, ["exceeded"]),
        *((PASSED, judged(change, Verdict(verdict)), {}, []) for change, verdict in (
            (-0.02, "INCONCLUSIVE"), (None, "NO_BASELINE"), (None, "NOT_COMPARABLE"))),
        (PASSED, replace(PASSED, interval=None), {}, []),
        (PASSED, judged(-0.05, metric=LATENCY), {}, []),  # it says nothing of this metric
        (PASSED, (PASSED, judged(-0.03, against="anchor")), {}, []),  # only the anchor shows it
        # Where lower is better, more is a loss.
        (None, SMALL, OF_LATENCY, []),
        (None, LARGE, OF_LATENCY, ["exceeded"]),
        (None, judged(0.008, PASS, metric=LATENCY), OF_LATENCY, []),
        (None, judged(-0.008, PASS, metric=LATENCY), OF_LATENCY, ["unmatched"]),
        # What was not measured may have lost.
        (None, PASSED, {}, []),
        (ERROR, PASSED, {}, []),
        (None, PASSED, {"probe": "c4"}, ["unmatched"]),
        (None, PASSED, {"probe": "c1"}, []),
        # An ended one fails the runs that measure its scenario, and is not called needless too.
        (None, ERROR, ENDED, ["expired"]),
        (PASSED, PASSED, ENDED, ["expired"]),
        (LOST_MORE, LOST_MORE, ENDED, ["expired"]),
        (None, LOST, {"last_day": TODAY}, []),
        (None, None, ENDED, []),
        (None, None, {"scenario": "gone", **ENDED}, ["unmatched", "expired"]),
    ],
)  # fmt: skip
def test_a_waiver_is_held_against_what_was_judged(c1, c4, of_waiver, expected) -> None:
    assert [one.kind for one in found(of_waiver, *records_of(c1=c1, c4=c4))] == expected


def test_stand_ins_changed_settings_other_scenarios_and_claims_say_nothing() -> None:
    for marks in ({"synthetic": True}, {"injected": ["tp=2"]}, {"scenario": "other"}):
        for one in (PASSED, LOST_MORE):
            assert found({}, *records_of(marks, c1=one, c4=one)) == ()
    assert found({}, record(judged(-0.5, against="claim"), probe="fp8-costs-little")) == ()
    assert found(ENDED, record(LOST, scenario="other")) == ()
    # Each waiver is held for itself.
    two = [WAIVER, replace(WAIVER, metric=LATENCY, last_day=YESTERDAY, line=20)]
    both = faults(two, [record(LOST_MORE)], known=KNOWN, today=TODAY)
    assert [(one.waiver.line, one.kind) for one in both] == [(7, "exceeded"), (20, "expired")]


MORE = """\
at_most: the loss exceeds the waiver (output_throughput of small-serve, owner runtime team)
  found: c4: lost 3.04 %
  expected: at most 3.0 %
  fix: fix the loss; raise at_most only if the owner accepts it"""
BY_ANCHOR = (PASSED, judged(-0.06, against="anchor"))


@each(
    "of_waiver, record, place, texts",
    [
        ({}, judged(-0.0304), MORE, ""),
        ({}, BY_ANCHOR, "", "c4: lost 6.0 % (against the anchor)"),
        ({"probe": "c4"}, judged(0.03, IMPROVED), "", "found: c4: IMPROVEMENT, changed by +3.0 %"),
        (ENDED, LOST, "", "found: last day 2026-11-20, today is 2026-11-21"),
        ({"scenario": "smal-serve"}, None, "scenario", "one of small-serve; did you mean small-"),
        ({"hardware": "8xB200"}, None, "hardware", "one of cpu; remove the waiver"),
        ({"metric": "ttft_mean_ms"}, None, "metric", f"one of {SPEED}, {LATENCY}; correct it"),
        ({"probe": "c8"}, None, "probe", "one of c1, c4; correct it, or remove"),
    ],
)
def test_messages_say_where_what_and_how_to_mend_it(of_waiver, record, place, texts) -> None:
    for one in (record, LOST) if record is None else (record,):
        (fault,) = found(of_waiver, *records_of(c4=one))
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


@given(st.floats(-0.9, 0.9), st.floats(1e-6, 0.999))
def test_a_regression_is_let_through_or_exceeds_the_waiver(change, at_most) -> None:
    (one,) = let(judged(change), waivers=[replace(WAIVER, at_most=at_most)])
    expected = [] if one.waiver else ["exceeded"]
    assert [fault.kind for fault in found({"at_most": at_most}, record(one))] == expected


# The file. ---------------------------------------------------------------------------------------


def saved(checkout: Path, text: str) -> Path:
    file = checkout / "waivers.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def written(checkout: Path, *entries: Any) -> Path:
    plain = {"schema_version": 1, "waivers": list(entries)}
    return saved(checkout, yaml.safe_dump(plain, sort_keys=False))


def faults_in(file: Path) -> tuple[InputError, ...]:
    errors = refused(load_waivers, file, error=SeveralInputErrors).errors
    assert all(error.file == file for error in errors)
    return errors


TWO = """
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
"""


def test_a_file_is_read_and_a_named_one_must_be_there(suite_root) -> None:
    assert load_waivers() == load_waivers(suite_root / "waivers.yaml") == ()
    assert load_waivers(written(suite_root)) == ()
    file, last_day = saved(suite_root, TWO), date(2026, 12, 31)
    first, second = load_waivers(file)
    assert first == replace(WAIVER, hardware="2x4xGB200", last_day=last_day, line=4, file=file)
    assert (second.metric, second.probe, second.line) == (SUMS, "sums", 14)
    assert second.last_day == date(2027, 1, 1)
    assert load_waivers() == (first, second)
    (error,) = refused(load_waivers, suite_root / "other.yaml", error=SeveralInputErrors).errors
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
def test_values_that_cannot_be(suite_root, field, problem, values) -> None:
    for value in values:
        entry = {name: old for name, old in {**ENTRY, field: value}.items() if old is not ...}
        (error,) = faults_in(written(suite_root, entry))
        assert (error.problem, error.field) == (problem, f"waivers[0].{field}")
        assert error.line == 3 + (list(entry).index(field) if field in entry else 0)
        assert value is not ... or error.expected == FIELDS[field]["description"]


def test_what_yaml_reads_astray_is_no_day(suite_root) -> None:
    """A day may be written with and without quotes."""

    def day(text: str, field: str = "last_day") -> Path:
        file = written(suite_root, {**ENTRY, field: "DAY"})
        return saved(suite_root, file.read_text().replace("DAY", text))

    for text in ("2026-12-31 # end of the year", '"2026-12-31"'):
        assert load_waivers(day(text))[0].last_day == date(2026, 12, 31)
    for text in ("2026-02-30", "2026-12-31T10:00:00Z", "1:40:00", "010", ".nan", "{1: 2}", "~"):
        fields = {str(error.field).removesuffix("[0]") for error in faults_in(day(text))}
        assert fields == {"waivers[0].last_day"}
    (error,) = faults_in(day("2026-12-31", "owner"))
    assert (error.field, error.hint) == ("waivers[0].owner", "quote it if it is text")


def test_everything_that_is_wrong_is_told_at_once_in_order(suite_root) -> None:
    file = written(
        suite_root,
        {**ENTRY, "at_most": 3, "lastday": 1},
        {**ENTRY, "metric": "speed", "last_day": "2026-02-30"},
        {name: value for name, value in ENTRY.items() if name != "owner"},
    )
    errors = faults_in(file)
    assert [(error.field, error.problem) for error in errors] == [
        ("waivers[0].at_most", "out of range"),
        ("waivers[0].lastday", "unknown field"),
        ("waivers[1].metric", "unknown metric"),
        ("waivers[1].last_day", "no such day"),
        ("waivers[2].owner", "missing"),
        ("waivers[2]", "conflicting waivers"),
    ]
    assert errors[1].hint == "did you mean last_day?"


C4 = {"probe": "c4"}
CONFLICT, TWICE = "conflicting waivers", "waiver given twice"


@each(
    "one, other, problem",
    [
        ({}, {}, TWICE),
        ({}, {"at_most": 0.05}, CONFLICT),
        ({}, C4, CONFLICT),
        (C4, {}, CONFLICT),
        (C4, {**C4, "owner": "others"}, CONFLICT),
        (C4, {**C4, "last_day": "2026-02-30"}, CONFLICT),
        (C4, {"probe": "c8"}, None),
        *(({}, {name: value}, None) for name, value in (
            ("metric", LATENCY), ("hardware", "8xH200"), ("scenario", "small-bench"))),
    ],
)  # fmt: skip
def test_two_waivers_of_one_thing_conflict(suite_root, one, other, problem) -> None:
    first, second = {**ENTRY, **one}, {**ENTRY, **other}
    file = written(suite_root, first, second)
    if problem is None:
        assert len(load_waivers(file)) == 2
        return
    error = faults_in(file)[0]
    assert (error.problem, error.field, error.line) == (problem, "waivers[1]", 3 + len(first))
    assert "; line 3 has one of output_throughput of small-serve on cpu" in str(error.expected)


@each(
    "text, problem, line",
    [
        ("schema_version: 1\n", "missing", 1),
        ("schema_version: 1\nwaivers: [small-serve]\n", "wrong type", 2),
        ("schema_version: 2\nwaivers: []\n", "not an allowed value", 1),
    ],
)
def test_files_that_are_no_lists_of_waivers(suite_root, text, problem, line) -> None:
    (error,) = faults_in(saved(suite_root, text))
    assert (error.problem, error.line) == (problem, line)


def test_what_ships_and_what_the_page_shows_holds(suite_root) -> None:
    """The suite ships no waiver; it has all that both examples name."""
    assert load_waivers(ROOT / "waivers.yaml") == ()
    text = (ROOT / "waivers.yaml").read_text(encoding="utf-8").replace("waivers: []", "waivers:")
    entry = [line for line in text.splitlines() if line.startswith(("#  - ", "#    "))]
    assert len(entry) == len(FIELDS)
    for line in entry:
        text = text.replace(line, line.removeprefix("#"))
    page = (ROOT / "docs" / "how-to" / "waivers.md").read_text(encoding="utf-8")
    for name, rule in FIELDS.items():
        assert f"| `{name}` | {rule['description']} |" in page
    probes = [probe for one in load_scenarios(ROOT / "scenarios") for probe in all_probes(one)]
    for example in (text, page.split("```yaml\n")[1].split("```")[0]):
        waivers = load_waivers(saved(suite_root, example))
        assert waivers
        assert faults(waivers, [], known=known_of(probes), today=date(2026, 1, 1)) == ()
