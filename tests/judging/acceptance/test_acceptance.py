"""A person accepts a candidate, or is refused; what moved between baselines, and over a history."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SUMS, baseline, entry, of_commit, with_answers
from refusals import refused
from tables import each

from perfgate.baselines import Retired, candidate_store, own_store, read, suite_store
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance import Promotion, compare, history, promote

pytestmark = pytest.mark.usefixtures("suite_root")
SPEED = "output_throughput"
NEW = EngineBuild("llama.cpp", "1.3.0", "new")
RETIRED = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")


def candidate(*values: float, **changes: Any) -> Path:
    fields = {"entries": {"c4": entry(*values)}, "accepted_by": "nobody yet", **changes}
    return candidate_store().save(baseline(**fields), merge=False)


def accepted(**changes: Any) -> Path:
    fields = {"entries": {"c4": entry(100.0, 100.2, 99.8)}, "change": "first", **changes}
    return suite_store().save(of_commit("old", **fields))


def accept(file: Path, **options: Any) -> Promotion:
    return promote(file, **{"by": "Ada", "reason": "x", **options})


def test_accepts_the_numbers_as_they_are_and_keeps_the_other_entries_of_the_commit() -> None:
    others = {"c1": entry(50.0), "sums": with_answers({"q": True})}
    suite_store().save(baseline(entries={**others, "c4": entry(1.0)}))
    older, file = suite_store().save(of_commit("older")), candidate(110.0, 112.0)
    before = older.read_bytes()
    found = read(accept(file, by=" Ada Lovelace ", reason="release 1.3\n").file)
    assert found.entries == {**others, **read(file).entries}
    assert (found.accepted_by, found.reason) == ("Ada Lovelace", "release 1.3")
    assert older.read_bytes() == before
    own = own_store().save(baseline(accepted_by="self", engine=NEW))
    assert read(accept(own).file).accepted_by == "Ada"


@each(
    "verdict, values, expected",
    [
        ("NOT_COMPARABLE", (50.0,), "first"),  # of another machine
        ("NO_BASELINE", (99.9,), "none"),
        ("PASS", (50.0,), "none"),  # its run compared it
        ("IMPROVEMENT", (99.9,), "improvement"),
        ("NO_BASELINE", (110.0, 112.0), "improvement"),
    ],
)
def test_what_accepting_a_candidate_changes(verdict, values, expected) -> None:
    accepted()
    entries = {"c4": entry(*values, cpu="Xeon" if expected == "first" else "Grace")}
    file = candidate(engine=NEW, entries=entries, verdicts={"c4": verdict})
    assert accept(file, dry_run=True).change == expected


SEEN_NOW = "c4 output_throughput: its run did not compare it, and now it is REGRESSION"


@each(
    "value, verdicts, found",
    [
        (90.0, {"c4": "REGRESSION"}, "c4: its run ended in REGRESSION"),
        (99.0, {"c4": "PASS", "sweep": "REGRESSION"}, "sweep: its run ended in REGRESSION"),
        # A loss that its run could not see.
        (90.0, {"c4": "NO_BASELINE"}, SEEN_NOW),
        (90.0, {"c4": "NOT_COMPARABLE"}, SEEN_NOW),
    ],
)
def test_a_regression_is_refused(value, verdicts, found) -> None:
    kept = accepted()
    file = candidate(value, value, engine=NEW, verdicts=verdicts)
    error = refused(accept, file, match="the candidate is a regression")
    assert error.found == found
    assert "--accept-regression" in str(error.hint)
    assert suite_store().list() == [kept]
    error = refused(accept, file, match="must not be empty", accept_regression=" ")
    assert error.field == "--accept-regression"


def test_lost_answers_that_its_run_could_not_see_are_refused() -> None:
    right = {f"q{number}": True for number in range(100)}
    wrong = {key: number > 20 for number, key in enumerate(right)}
    accepted(entries={"sums": with_answers(right)})
    entries, verdicts = {"sums": with_answers(wrong)}, {"sums": "NO_BASELINE"}
    file = candidate(engine=NEW, entries=entries, verdicts=verdicts)
    refused(accept, file, match="the candidate is a regression")


@pytest.mark.parametrize("version", ["1.3.0", "1.3.0rc1"])
def test_an_accepted_loss_still_counts_against_an_older_anchor(version) -> None:
    accepted()
    build = replace(NEW, version=version)
    file = candidate(90.0, 90.0, verdicts={"c4": "REGRESSION"}, engine=build)
    few, *more = accept(file, accept_regression="safer").notes
    assert few.startswith("baseline of")
    # A release is the next anchor itself.
    why = "the anchor is still 1.2.0 (newest final release): this loss counts"
    assert [note.startswith(why) for note in more[:1]] == ([] if version == "1.3.0" else [True])


def test_nothing_to_accept_is_told() -> None:
    file = candidate(99.5, verdicts={"c4": "PASS"})
    why = "there is no regression to accept"
    error = refused(accept, file, accept_regression="habit", match=why)
    assert error.found == "c4 PASS"


def test_an_older_build_recorded_later_has_not_lost() -> None:
    newer = EngineBuild("llama.cpp", "1.9.0", "newer")
    suite_store().save(baseline(engine=newer, entries={"c4": entry(200.0)}))
    done = accept(candidate(100.0, engine=NEW, verdicts={"c4": "NO_BASELINE"}))
    assert (done.change, done.before.is_newer) == ("first", True)


XEON, GRACE = entry(50.0, cpu="Xeon"), entry(4.0)
MIXED = {"c1": GRACE, "c4": XEON, "sums": with_answers({"q": True})}
UNLIKE = "numbers of different machines"


@each(
    "kept, changes, edit, message",
    [
        ({}, {}, ("110.0", "119.0"), "edited by hand"),
        ({}, {"entries": MIXED}, ("", ""), UNLIKE),
        ({}, {"retired": RETIRED}, ("", ""), "a retired baseline cannot be accepted again"),
        ({"c1": XEON}, {}, ("", ""), UNLIKE),  # with what the commit has
    ],
)
def test_refused(kept, changes, edit, message) -> None:
    before = suite_store().save(baseline(entries=kept)).read_bytes() if kept else None
    file = candidate(110.0, **changes)
    file.write_text(file.read_text().replace(*edit))
    error = refused(accept, file, match=message)
    assert not changes.get("entries") or error.found == "cpu: Grace (c1), Xeon (c4)"
    assert [one.read_bytes() for one in suite_store().list()] == ([before] if kept else [])


def test_new_numbers_may_take_the_place_of_a_retired_baseline() -> None:
    suite_store().save(baseline(retired=RETIRED, change="regression", regression="x"))
    done = accept(candidate(110.0, 112.0), by="Grace", reason="right clocks")
    found = read(done.file)
    assert (set(found.entries), found.retired, found.change) == ({"c4"}, None, "first")
    told = "replaces the retired baseline of this commit, accepted by Ada, 2 sessions"
    assert done.notes[1:] == (told,)


# What moved. -------------------------------------------------------------------------------------
BEFORE = with_answers({"a": True, "b": True, "c": False, "d": True})
AFTER = with_answers({"a": False, "b": True, "c": True, "d": False})


@each(
    "before, after, means, change, counts",
    [
        (entry(100.0, 100.0), entry(90.0, 90.0), (100, 90), -0.1, (None, None)),
        (BEFORE, AFTER, (0.75, 0.5), -0.25, (2, 1)),  # questions lost and gained
    ],
)
def test_a_change_with_its_interval(before, after, means, change, counts) -> None:
    (one,) = compare("c1", before, after).metrics
    assert (one.before, one.after) == (pytest.approx(means[0]), pytest.approx(means[1]))
    assert (one.probe, one.change) == ("c1", pytest.approx(change))
    assert one.interval[0] < change < one.interval[1]
    assert (one.lost, one.gained) == counts


TPOT = entry(20.0, metric="tpot_mean_ms")


@each(
    "before, after, expected",
    [
        # Other questions, and values without a logarithm: means, and no interval.
        (with_answers({"a": True}), with_answers({"b": False}), [(SUMS, 1.0, 0.0, -1.0)]),
        (entry(0.0), entry(3.0), [(SPEED, 0.0, 3.0, None)]),
        (entry(4.0), entry(0.0), [(SPEED, 4.0, 0.0, -1.0)]),
        # What only one side has.
        (entry(1.0), TPOT, [(SPEED, 1.0, None, None), ("tpot_mean_ms", None, 20.0, None)]),
        (None, entry(100.0), [(SPEED, None, 100.0, None)]),
    ],
)
def test_without_an_interval(before, after, expected) -> None:
    found = compare("c4", before, after).metrics
    assert [(one.metric, one.before, one.after, one.change) for one in found] == expected
    assert all(one.interval is None and one.lost is None for one in found)


def test_the_history_is_oldest_first_and_compares_with_nothing_retired_or_of_unlike_facts() -> None:
    for version, made, retired in (
        ("1.10rc1", entry(101.0), None),
        ("1.8rc1", entry(100.0), None),
        ("1.11rc1", entry(50.0, cpu="Xeon"), None),
        ("1.9rc1", entry(50.0), RETIRED),
    ):
        build = EngineBuild("llama.cpp", version, f"c{version}")
        suite_store().save(baseline(engine=build, entries={"c1": made}, retired=retired))
    steps = history(suite_store(), "cpu", "small-serve")
    found = [(step.baseline.engine.version, one) for step in steps for one in step.values]
    assert [(version, one.mean, one.since_before) for version, one in found] == [
        ("1.8rc1", 100.0, None),
        ("1.9rc1", 50.0, pytest.approx(-0.5)),
        ("1.10rc1", 101.0, pytest.approx(0.01)),
        ("1.11rc1", 50.0, None),
    ]
    assert {one.since_anchor for _, one in found} == {None}
    assert steps[1].baseline.retired == RETIRED


def test_the_history_tells_the_metrics_asked_for_else_those_with_a_band() -> None:
    made = entry(100.0)
    run = replace(made.runs[0], metrics={SPEED: 100.0, "ttft_p99_ms": 9.0})
    suite_store().save(baseline(entries={"c1": replace(made, runs=(run,))}))
    for metrics, expected in ((None, [SPEED]), (("ttft_p99_ms",), ["ttft_p99_ms"])):
        (step,) = history(suite_store(), "cpu", "small-serve", metrics)
        assert ([value.metric for value in step.values], step.starts) == (expected, 1)
