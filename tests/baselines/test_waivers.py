"""Waivers: a known loss is let through up to its limit and its last day, and no further."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import building
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
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
from perfgate.baselines.waivers.coverage import ToldWaiver, told_waiver
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.metrics import lookup
from perfgate.gate.verdict import Against, Judgement, Verdict, verdict_of
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

WAIVED = "waived by Ada up to a loss of 3.0 %, until 2026-11-21: known (https://example.com)"

ENTRY = {
    "scenario": "small-serve",
    "metric": SPEED,
    "hardware": "8xB200",
    "at_most": 0.03,
    "reason": "the new sampler costs a copy per step",
    "link": "https://example.com/issues/1",
    "owner": "runtime team",
    "last_day": "2026-12-31",
}
WAIVER = Waiver(
    scenario="small-serve",
    metric=SPEED,
    hardware="cpu",
    at_most=0.03,
    reason="the new sampler costs a copy per step",
    link="https://example.com/issues/1",
    owner="runtime team",
    last_day=TODAY,
    line=7,
)


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


def record(*judgements: Judgement, probe: str = "c4", **changes: Any) -> dict[str, Any]:
    """A verdict record as a run writes it, read back."""
    lines = [{**asdict(one), "verdict": one.verdict.value} for one in judgements]
    plain = {
        "name": f"small-serve-{probe}",
        "scenario": "small-serve",
        "probe": probe,
        "verdict": verdict_of(judgements).value if judgements else "ERROR",
        "judgements": lines,
        "injected": [],
        "synthetic": False,
    }
    found: dict[str, Any] = json.loads(json.dumps({**plain, **changes}))
    return found


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
        (SPEED, -0.5, False),
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


@pytest.mark.parametrize(
    ("last_day", "through"),
    [(TODAY - DAY, False), (TODAY, True), (TODAY + DAY, True), (date(2026, 1, 1), False)],
)
def test_the_last_day_is_the_last_on_which_it_holds(last_day: date, through: bool) -> None:
    (one,) = let(judged(-0.02), waivers=[replace(WAIVER, last_day=last_day)])
    assert bool(one.waiver) is through
    told = f"the waiver of runtime team ended on {last_day}"
    assert one.notes == (() if through else (told,))


@given(owner=st.text("Ada ,:%.3(", min_size=1).filter(str.strip), at_most=st.floats(1e-6, 0.99))
def test_owner_and_last_day_can_be_read_from_the_sentence(owner: str, at_most: float) -> None:
    waiver = replace(WAIVER, owner=" ".join(owner.split()), at_most=at_most)
    lost = building.judgement(change=-at_most)
    (judged,) = waive(
        [lost], scenario="small-serve", hardware="cpu", probe="c1", waivers=[waiver], today=TODAY
    )
    assert told_waiver(judged.waiver) == ToldWaiver(waiver.owner, waiver.last_day)


@pytest.mark.parametrize("text", ["", "waived by Ada", WAIVED.replace("2026-11-21", "2026-02-31")])
def test_another_sentence_tells_no_waiver(text: str) -> None:
    assert told_waiver(text) is None


def test_the_sentence_says_who_why_where_and_until_when() -> None:
    (one,) = let(judged(-0.02), waivers=[replace(WAIVER, reason="it is known.")])
    assert one.waiver == (
        "waived by runtime team up to a loss of 3.0 %, until 2026-11-21: it is known "
        "(https://example.com/issues/1)"
    )


@each(
    ("metric", "change", "at_most", "note"),
    [
        (SPEED, -0.05, 0.03, "lost 5.0 %, at most 3.0 %"),
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


@pytest.mark.parametrize("against", ["baseline", "anchor", "documented"])
def test_it_holds_against_every_reference(against: Against) -> None:
    (one,) = let(judged(-0.02, against=against))
    assert one.waiver


def test_a_claim_is_not_let_through() -> None:
    claim = judged(-0.02, against="claim")
    assert let(claim) == (claim,)


@pytest.mark.parametrize(
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


def test_a_waiver_of_one_probe_is_for_that_probe() -> None:
    (one,) = let(judged(-0.02), waivers=[replace(WAIVER, probe="c4")])
    assert one.waiver


@each("verdict", [one for one in Verdict if one != Verdict.REGRESSION])
def test_only_regressions_are_let_through(verdict: Verdict) -> None:
    other = judged(-0.02, verdict)
    assert let(other) == (other,)


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
    assert [replace(one, waiver="", notes=()) for one in ends] == judgements
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


@given(st.floats(-0.9, 0.9), st.floats(0, 0.5), st.floats(1e-6, 0.999))
def test_what_is_not_let_through_is_not_when_it_is_worse(
    change: float, worse: float, at_most: float
) -> None:
    waivers = [replace(WAIVER, at_most=at_most)]
    (one,) = let(judged(change), waivers=waivers)
    (other,) = let(judged(change - worse), waivers=waivers)
    assert one.waiver or not other.waiver


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
        (PASSED, LOST, []),
        (PASSED, SMALL_LOSS, []),
        (PASSED, PASSED, ["unmatched"]),
        (PASSED, BETTER, ["unmatched"]),
        (PASSED, judged(-0.004, Verdict.PASS), ["unmatched"]),  # a loss that is not proved
        (PASSED, judged(-0.005, Verdict.PASS), ["unmatched"]),  # its bound is exactly 0
        (PASSED, judged(-0.05), ["exceeded"]),
        (LOST, judged(-0.05), ["exceeded"]),
        (judged(None), PASSED, ["exceeded"]),
        (PASSED, judged(-0.02, Verdict.INCONCLUSIVE), []),
        (PASSED, judged(0.02, Verdict.INCONCLUSIVE), []),
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


@pytest.mark.parametrize(("change", "expected"), [(0.02, []), (0.05, ["exceeded"])])
def test_where_lower_is_better_more_is_a_loss(change: float, expected: list[str]) -> None:
    waiver = replace(WAIVER, metric=LATENCY, probe="c4")
    assert kinds(record(judged(change, metric=LATENCY)), waiver=waiver) == expected


def test_small_latency_losses_keep_a_waiver_and_gains_end_it() -> None:
    waiver = replace(WAIVER, metric=LATENCY, probe="c4")
    slower = judged(0.008, Verdict.PASS, metric=LATENCY)
    faster = judged(-0.008, Verdict.PASS, metric=LATENCY)
    assert kinds(record(slower), waiver=waiver) == []
    assert kinds(record(faster), waiver=waiver) == ["unmatched"]


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


@pytest.mark.parametrize("change", [{"synthetic": True}, {"injected": ["engine.settings.tp=2"]}])
def test_stand_ins_and_changed_settings_say_nothing(change: dict[str, Any]) -> None:
    for one in (PASSED, judged(-0.5)):
        assert kinds(record(one, probe="c1", **change), record(one, **change)) == []


def test_a_claim_about_the_scenario_says_nothing() -> None:
    broken = record(judged(-0.5, against="claim"), probe="fp8-costs-little")
    assert kinds(broken) == []


@pytest.mark.parametrize(
    ("last_day", "expected"), [(TODAY - DAY, ["expired"]), (TODAY, []), (TODAY + DAY, [])]
)
def test_an_ended_waiver_fails_the_runs_that_measure_its_scenario(
    last_day: date, expected: list[str]
) -> None:
    waiver = replace(WAIVER, last_day=last_day)
    for records in ([record(LOST)], [record()], [{"scenario": "small-serve", "probe": "c1"}]):
        assert kinds(*records, waiver=waiver) == expected
    assert kinds(record(LOST, scenario="other"), waiver=waiver) == []


def test_an_ended_waiver_is_not_also_called_exceeded_or_needless() -> None:
    waiver = replace(WAIVER, last_day=TODAY - DAY)
    for one in (PASSED, judged(-0.5)):
        assert kinds(record(one, probe="c1"), record(one), waiver=waiver) == ["expired"]


@pytest.mark.parametrize(
    ("change", "field", "expected", "mend"),
    [
        ({"scenario": "smal-serve"}, "scenario", "one of small-serve", "did you mean small-serve?"),
        ({"hardware": "8xB200"}, "hardware", "one of cpu", "remove the waiver"),
        ({"metric": "ttft_mean_ms"}, "metric", f"one of {SPEED}, {LATENCY}", "correct it"),
        ({"probe": "c8"}, "probe", "one of c1, c4", "correct it, or remove"),
    ],
)
def test_a_waiver_of_nothing_fails_every_run(
    change: dict[str, str], field: str, expected: str, mend: str
) -> None:
    waiver = replace(WAIVER, **change)  # type: ignore[arg-type]
    for records in ([], [record(LOST)], [record(PASSED)]):
        (fault,) = faults([waiver], records, known=KNOWN, today=TODAY)
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

    about = "(output_throughput of small-serve, owner runtime team)"
    assert message(WAIVER, record(judged(-0.0304))) == (
        f"waivers.yaml:7: at_most: the loss exceeds the waiver {about}\n"
        "  found: c4: lost 3.04 %\n"
        "  expected: at most 3.0 %\n"
        "  fix: fix the loss; raise at_most only if the owner accepts it"
    )
    assert message(WAIVER, record(PASSED, probe="c1"), record(BETTER)) == (
        f"waivers.yaml:7: the waiver is no longer needed: no loss is proved any more {about}\n"
        "  found: c1: PASS, changed by +0.1 %; c4: IMPROVEMENT, changed by +3.0 %\n"
        "  fix: take it out"
    )
    assert message(replace(WAIVER, last_day=TODAY - DAY), record(LOST)) == (
        f"waivers.yaml:7: the waiver has expired {about}\n"
        "  found: last day 2026-11-20, today is 2026-11-21\n"
        "  fix: remove it, or give it a later last_day if its reason still holds"
    )


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
    suite = known_of(
        probe for one in load_scenarios(ROOT / "scenarios") for probe in all_probes(one)
    )
    assert suite["b200-r1-0528-fp4-serve"].hardware == "8xB200"


def test_reports_list_what_was_let_through() -> None:
    waived = let(judged(-0.02), judged(0.01, Verdict.PASS, metric=LATENCY))
    records = [record(*waived), record(judged(-0.5), probe="c1"), {"scenario": "x", "probe": "y"}]
    assert in_force(records) == [
        LetThrough("small-serve-c4", SPEED, -0.02, waived[0].waiver),
    ]
    old = record(judged(-0.5))
    del old["judgements"][0]["waiver"]
    assert in_force([old]) == []


# The file. ----------------------------------------------------------------------------------


@pytest.fixture
def checkout(suite_root: Path) -> Path:
    return suite_root


def written(checkout: Path, *entries: Any) -> Path:
    file = checkout / "waivers.yaml"
    plain = {"schema_version": 1, "waivers": list(entries)}
    file.write_text(yaml.safe_dump(plain, sort_keys=False), encoding="utf-8")
    return file


def refused(file: Path) -> tuple[InputError, ...]:
    with pytest.raises(SeveralInputErrors) as told:
        load_waivers(file)
    assert all(error.file == file for error in told.value.errors)
    return told.value.errors


def test_a_file_is_read(checkout: Path) -> None:
    file = checkout / "waivers.yaml"
    file.write_text(
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
        encoding="utf-8",
    )
    first, second = load_waivers(file)
    assert first == Waiver(
        "small-serve",
        SPEED,
        "2x4xGB200",
        0.03,
        "the new sampler costs a copy per step",
        "https://example.com/issues/1",
        "runtime team",
        date(2026, 12, 31),
        line=4,
        file=file,
        probe=None,
    )
    assert (second.metric, second.probe, second.last_day, second.line) == (
        SUMS,
        "sums",
        date(2027, 1, 1),
        14,
    )
    assert load_waivers() == (first, second)


def test_no_list_is_no_waiver_but_a_named_one_must_be_there(checkout: Path) -> None:
    assert load_waivers() == ()
    assert load_waivers(checkout / "waivers.yaml") == ()
    with pytest.raises(SeveralInputErrors) as told:
        load_waivers(checkout / "other.yaml")
    (error,) = told.value.errors
    assert (error.field, error.found) == ("--waivers", checkout / "other.yaml")


def test_an_empty_list_is_no_waiver(checkout: Path) -> None:
    assert load_waivers(written(checkout)) == ()


@pytest.mark.parametrize("field", [name for name in FIELDS if name != "probe"])
def test_every_field_is_needed(checkout: Path, field: str) -> None:
    entry = {name: value for name, value in ENTRY.items() if name != field}
    (error,) = refused(written(checkout, entry))
    assert (error.problem, error.field, error.line) == ("missing", f"waivers[0].{field}", 3)
    assert error.expected == FIELDS[field]["description"]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("at_most", 0, "out of range"),
        ("at_most", -0.03, "out of range"),
        ("at_most", 1, "out of range"),
        ("at_most", 3, "out of range"),
        ("at_most", float("nan"), "not a finite number"),
        ("at_most", float("inf"), "not a finite number"),
        ("at_most", "3%", "wrong type"),
        ("at_most", True, "wrong type"),
        ("at_most", None, "wrong type"),
        ("last_day", "2026-02-30", "no such day"),
        ("last_day", "2026-13-01", "no such day"),
        ("last_day", "0000-01-01", "no such day"),
        ("last_day", "2026-12-31\n", "malformed"),
        ("last_day", "31.12.2026", "malformed"),
        ("last_day", "2026-1-5", "malformed"),
        ("last_day", "20261231", "malformed"),
        ("last_day", "2026-12-31T00:00:00", "malformed"),
        ("last_day", "never", "malformed"),
        ("last_day", 20261231, "wrong type"),
        ("link", "issue 1", "malformed"),
        ("link", "https://", "malformed"),
        ("link", "ftp://example.com/1", "malformed"),
        ("link", "javascript:alert(1)", "malformed"),
        ("reason", "", "malformed"),
        ("reason", "  ", "malformed"),
        ("reason", ["a"], "wrong type"),
        ("owner", "", "malformed"),
        ("owner", 5, "wrong type"),
        ("scenario", "Small Serve", "malformed"),
        ("hardware", "B200", "malformed"),
        ("hardware", "8XB200", "malformed"),
        ("hardware", "", "malformed"),
        ("metric", "throughput", "unknown metric"),
        ("metric", "", "empty"),
        ("probe", "", "empty"),
        ("probe", None, "wrong type"),
        ("probe", 4, "wrong type"),
    ],
)
def test_values_that_cannot_be(checkout: Path, field: str, value: object, problem: str) -> None:
    (error,) = refused(written(checkout, {**ENTRY, field: value}))
    assert (error.problem, error.field) == (problem, f"waivers[0].{field}")
    assert error.line == 3 + list({**ENTRY, field: value}).index(field)
    assert error.expected


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("2026-02-30", "no such day", 10),
        ("2026-12-31T10:00:00Z", "malformed", 10),
        ("2026-12-31 # end of the year", None, None),
        ('"2026-12-31"', None, None),
    ],
)
def test_a_day_may_be_written_with_and_without_quotes(
    checkout: Path, text: str, problem: str | None, line: int | None
) -> None:
    file = written(checkout, ENTRY)
    file.write_text(file.read_text().replace("'2026-12-31'", text), encoding="utf-8")
    if problem is None:
        assert load_waivers(file)[0].last_day == date(2026, 12, 31)
    else:
        (error,) = refused(file)
        assert (error.problem, error.line) == (problem, line)


def test_a_date_elsewhere_is_text_that_wants_quotes(checkout: Path) -> None:
    file = written(checkout, {**ENTRY, "owner": "DAY"})
    file.write_text(file.read_text().replace("DAY", "2026-12-31"), encoding="utf-8")
    (error,) = refused(file)
    assert (error.field, error.hint) == ("waivers[0].owner", "quote it if it is text")


def test_unknown_fields_are_told_with_what_was_meant(checkout: Path) -> None:
    (error,) = refused(written(checkout, {**ENTRY, "lastday": "2026-12-31"}))
    assert (error.problem, error.hint) == ("unknown field", "did you mean last_day?")


def test_everything_that_is_wrong_is_told_at_once_in_order(checkout: Path) -> None:
    file = written(
        checkout,
        {**ENTRY, "at_most": 3, "link": "none", "extra": 1},
        {**ENTRY, "metric": "speed", "last_day": "2026-02-30", "at_most": "3%"},
        {name: value for name, value in ENTRY.items() if name != "owner"},
        ENTRY,
        ENTRY,
    )
    errors = refused(file)
    assert [(error.field, error.problem) for error in errors] == [
        ("waivers[0].at_most", "out of range"),
        ("waivers[0].link", "malformed"),
        ("waivers[0].extra", "unknown field"),
        ("waivers[1].metric", "unknown metric"),
        ("waivers[1].at_most", "wrong type"),
        ("waivers[1].last_day", "no such day"),
        ("waivers[2].owner", "missing"),
        ("waivers[2]", "conflicting waivers"),
        ("waivers[3]", "conflicting waivers"),
        ("waivers[4]", "conflicting waivers"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        ({}, {}, "waiver given twice"),
        ({}, {"at_most": 0.05}, "conflicting waivers"),
        ({}, {"last_day": "2027-06-30"}, "conflicting waivers"),
        ({}, {"probe": "c4"}, "conflicting waivers"),
        ({"probe": "c4"}, {}, "conflicting waivers"),
        ({"probe": "c4"}, {"probe": "c4", "owner": "others"}, "conflicting waivers"),
        ({"probe": "c4"}, {"probe": "c4", "last_day": "2026-02-30"}, "conflicting waivers"),
        ({"probe": "c4"}, {"probe": "c8"}, None),
        ({}, {"metric": LATENCY}, None),
        ({}, {"hardware": "8xH200"}, None),
        ({}, {"scenario": "small-bench"}, None),
    ],
)
def test_two_waivers_of_one_thing_conflict(
    checkout: Path, one: dict[str, Any], other: dict[str, Any], problem: str | None
) -> None:
    first, second = {**ENTRY, **one}, {**ENTRY, **other}
    file = written(checkout, first, second)
    if problem is None:
        assert len(load_waivers(file)) == 2
        return
    error = refused(file)[0]
    assert (error.problem, error.field) == (problem, "waivers[1]")
    assert error.line == 3 + len(first)
    assert "; line 3 has one of output_throughput of small-serve on 8xB200" in str(error.expected)


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("", "empty file", None),
        ("# only a comment\n", "empty file", None),
        ("- scenario: small-serve\n", "wrong type", 1),
        ("waivers\n", "wrong type", 1),
        ("schema_version: 1\n", "missing", 1),
        ("waivers: []\n", "missing", 1),
        ("schema_version: 1\nwaivers:\n", "wrong type", 2),
        ("schema_version: 1\nwaivers: {}\n", "wrong type", 2),
        ("schema_version: 1\nwaivers: [small-serve]\n", "wrong type", 2),
        ("schema_version: 2\nwaivers: []\n", "not an allowed value", 1),
        ("schema_version: '1'\nwaivers: []\n", "not an allowed value", 1),
        ("schema_version: 1\nwaivers: []\nwaiver: []\n", "unknown field", 3),
        ("schema_version: 1\nwaivers: []\nwaivers: []\n", "field given twice", 3),
        ("schema_version: 1\nwaivers:\n\t- a: 1\n", "broken YAML", 3),
        ("schema_version: 1\nwaivers: [\n", "broken YAML", 3),
    ],
)
def test_files_that_are_no_lists_of_waivers(
    checkout: Path, text: str, problem: str, line: int | None
) -> None:
    file = checkout / "waivers.yaml"
    file.write_text(text, encoding="utf-8")
    (error,) = refused(file)
    assert (error.problem, error.line) == (problem, line)
    assert "scenario" not in f"{error.expected} {error.hint}"


@pytest.mark.parametrize("field", ["at_most", "last_day"])
def test_a_field_given_twice_is_refused(checkout: Path, field: str) -> None:
    file = written(checkout, ENTRY)
    line = next(line for line in file.read_text().splitlines() if field in line)
    file.write_text(
        file.read_text().replace(f"{line}\n", f"{line}\n{line}\n").replace("'", ""),
        encoding="utf-8",
    )
    (error,) = refused(file)
    assert (error.problem, error.field) == ("field given twice", f"waivers[0].{field}")


def test_a_day_given_twice_in_one_line_is_refused(checkout: Path) -> None:
    file = checkout / "waivers.yaml"
    entry = ", ".join(f"{name}: {value}" for name, value in ENTRY.items())
    text = f"schema_version: 1\nwaivers: [{{{entry}, last_day: 2026-12-31}}]\n"
    file.write_text(text, encoding="utf-8")
    (error,) = refused(file)
    assert (error.problem, error.field) == ("field given twice", "waivers[0].last_day")


@pytest.mark.parametrize("text", ["1:40:00", "010", ".nan", "{1: 2}", "[2026-12-31]", "~"])
def test_what_yaml_reads_astray_is_no_day(checkout: Path, text: str) -> None:
    file = written(checkout, ENTRY)
    file.write_text(file.read_text().replace("'2026-12-31'", text), encoding="utf-8")
    assert {error.field for error in refused(file)} <= {
        "waivers[0].last_day",
        "waivers[0].last_day[0]",
    }


def test_not_utf8_is_refused(checkout: Path) -> None:
    file = checkout / "waivers.yaml"
    file.write_bytes(b"schema_version: 1\nwaivers: [\xff]\n")
    assert [error.problem for error in refused(file)] == ["not UTF-8 text"]


# What ships, and what is said of it. --------------------------------------------------------


def test_the_schema_is_a_schema_and_asks_for_an_end() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["properties"]["waivers"]["items"]["required"]) == set(FIELDS) - {"probe"}


def test_the_suite_ships_no_waiver_and_an_example_that_holds(
    checkout: Path, tmp_path: Path
) -> None:
    assert load_waivers(ROOT / "waivers.yaml") == ()
    text = (ROOT / "waivers.yaml").read_text(encoding="utf-8").replace("waivers: []", "waivers:")
    entry = [line for line in text.splitlines() if line.startswith(("#  - ", "#    "))]
    assert len(entry) == len(FIELDS)
    for line in entry:
        text = text.replace(line, line.removeprefix("#"))
    file = checkout / "example.yaml"
    file.write_text(text, encoding="utf-8")
    _is_known(load_waivers(file))


def test_the_page_says_what_the_schema_says_and_its_example_holds(checkout: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "waivers.md").read_text(encoding="utf-8")
    for name, rule in FIELDS.items():
        assert f"| `{name}` | {rule['description']} |" in page
    file = checkout / "example.yaml"
    file.write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    _is_known(load_waivers(file))


def _is_known(waivers: Sequence[Waiver]) -> None:
    """The suite has all that the waivers name."""
    assert waivers
    probes = [probe for one in load_scenarios(ROOT / "scenarios") for probe in all_probes(one)]
    assert faults(waivers, [], known=known_of(probes), today=date(2026, 1, 1)) == ()
