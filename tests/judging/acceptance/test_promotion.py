"""A person accepts a candidate, or is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import baseline, entry, of_commit, with_answers
from tables import each

from perfgate.baselines import Retired, candidate_store, own_store, read, suite_store
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance import Promotion, promote
from perfgate.runs.run_folder import now

pytestmark = pytest.mark.usefixtures("suite_root")
NEW = EngineBuild("llama.cpp", "1.3.0", "new")
RETIRED = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")


def candidate(*values: float, **changes: Any) -> Path:
    fields = {"entries": {"c4": entry(*values)}, "accepted_by": "nobody yet", **changes}
    return candidate_store().save(baseline(**fields), merge=False)


def accepted(*values: float, **changes: Any) -> Path:
    return suite_store().save(of_commit("old", entries={"c4": entry(*values)}, **changes))


def accept(file: Path, **options: Any) -> Promotion:
    return promote(file, **{"by": "Ada", "reason": "x", **options})


@each(
    "options, field",
    [({"by": ""}, "--by"), ({"reason": " \n"}, "--reason")],
)
def test_needs_a_person_and_a_reason(options: dict[str, str], field: str) -> None:
    with pytest.raises(InputError, match="must not be empty") as caught:
        accept(candidate(110.0), **options)
    assert caught.value.field == field
    assert suite_store().list() == []


def test_accepts_the_numbers_as_they_are() -> None:
    older, file = suite_store().save(of_commit("older")), candidate(110.0, 112.0)
    before = older.read_bytes()
    done = accept(file, by=" Ada Lovelace ", reason="release 1.3\n")
    assert done.file == suite_store().folder / "cpu" / "small-serve" / "abc123.json"
    found = read(done.file)
    assert found.entries == read(file).entries
    assert (found.accepted_by, found.reason) == ("Ada Lovelace", "release 1.3")
    assert (done.written, done.change) == (True, "first")
    assert suite_store().list() == [done.file, older]
    assert older.read_bytes() == before
    own = own_store().save(baseline(accepted_by="self", engine=NEW))
    assert read(accept(own).file).accepted_by == "Ada"


def test_keeps_the_other_entries_of_the_commit() -> None:
    others = {"c1": entry(50.0), "sums": with_answers({"q": True})}
    suite_store().save(baseline(entries={**others, "c4": entry(1.0)}))
    done = accept(candidate(110.0, 112.0))
    assert read(done.file).entries == {**others, "c4": entry(110.0, 112.0)}
    assert done.notes == (
        "baseline of 2 sessions; 3 are asked for: more losses stay unseen "
        "(docs/how-to/baselines.md)",
        "replaces the baseline of this commit, accepted by Ada, 1 session",
    )


def test_a_dry_run_shows_what_changes_and_writes_nothing() -> None:
    kept = accepted(100.0, 100.0, accepted_at="2020-01-01T00:00:00+00:00")
    before, file, start = kept.read_bytes(), candidate(110.0, 112.0), now()
    told = accept(file, dry_run=True)
    assert (told.written, told.change) == (False, "improvement")
    assert (suite_store().list(), kept.read_bytes()) == ([kept], before)
    (moved,) = told.probes[0].metrics
    assert (moved.probe, moved.metric) == ("c4", "output_throughput")
    assert moved.change == pytest.approx(0.11, abs=0.001)
    assert told.before is not None
    assert told.before.why == "newest of the same version, no baseline of this commit"
    assert replace(accept(file), written=False) == told
    chosen = suite_store().choose("cpu", "small-serve", EngineBuild("llama.cpp", "1.2.0", "?"))
    assert chosen is not None
    assert start <= chosen.baseline.accepted_at <= now()


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
def test_what_accepting_a_candidate_changes(
    verdict: str, values: tuple[float, ...], expected: str
) -> None:
    accepted(100.0, 100.2, 99.8, change="first")
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
def test_a_regression_is_refused(value: float, verdicts: dict[str, str], found: str) -> None:
    kept = accepted(100.0, 100.2, 99.8, change="first")
    file = candidate(value, value, engine=NEW, verdicts=verdicts)
    with pytest.raises(InputError, match="the candidate is a regression") as caught:
        accept(file)
    assert caught.value.found == found
    assert "--accept-regression" in str(caught.value.hint)
    assert suite_store().list() == [kept]
    with pytest.raises(InputError, match="must not be empty") as caught:
        accept(file, accept_regression=" ")
    assert caught.value.field == "--accept-regression"


def test_lost_answers_that_its_run_could_not_see_are_refused() -> None:
    right = {f"q{number}": True for number in range(100)}
    wrong = {key: number > 20 for number, key in enumerate(right)}
    suite_store().save(of_commit("old", entries={"sums": with_answers(right)}))
    entries = {"sums": with_answers(wrong)}
    with pytest.raises(InputError, match="the candidate is a regression"):
        accept(candidate(engine=NEW, entries=entries, verdicts={"sums": "NO_BASELINE"}))


@pytest.mark.parametrize("version", ["1.3.0", "1.3.0rc1"])
def test_an_accepted_loss_still_counts_against_an_older_anchor(version: str) -> None:
    accepted(100.0, 100.2, 99.8, change="first")
    build = replace(NEW, version=version)
    file = candidate(90.0, 90.0, verdicts={"c4": "REGRESSION"}, engine=build)
    few, *more = accept(file, accept_regression="safer").notes
    assert few.startswith("baseline of")
    # A release is the next anchor itself.
    why = "the anchor is still 1.2.0 (newest final release): this loss counts"
    assert [note.startswith(why) for note in more[:1]] == ([] if version == "1.3.0" else [True])


def test_nothing_to_accept_is_told() -> None:
    with pytest.raises(InputError, match="there is no regression to accept") as caught:
        accept(candidate(99.5, verdicts={"c4": "PASS"}), accept_regression="habit")
    assert caught.value.found == "c4 PASS"


def test_an_older_build_recorded_later_has_not_lost() -> None:
    newer = EngineBuild("llama.cpp", "1.9.0", "newer")
    suite_store().save(baseline(engine=newer, entries={"c4": entry(200.0)}))
    done = accept(candidate(100.0, engine=NEW, verdicts={"c4": "NO_BASELINE"}))
    assert done.change == "first"
    assert done.before is not None
    assert done.before.is_newer


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
def test_refused(
    kept: dict[str, Any], changes: dict[str, Any], edit: tuple[str, str], message: str
) -> None:
    before = suite_store().save(baseline(entries=kept)).read_bytes() if kept else None
    file = candidate(110.0, **changes)
    file.write_text(file.read_text().replace(*edit))
    with pytest.raises(InputError, match=message) as caught:
        accept(file)
    if changes.get("entries"):
        assert caught.value.found == "cpu: Grace (c1), Xeon (c4)"
    assert [one.read_bytes() for one in suite_store().list()] == ([before] if kept else [])


def test_new_numbers_may_take_the_place_of_a_retired_baseline() -> None:
    suite_store().save(baseline(retired=RETIRED, change="regression", regression="x"))
    done = accept(candidate(110.0, 112.0), by="Grace", reason="right clocks")
    found = read(done.file)
    assert (set(found.entries), found.retired, found.change) == ({"c4"}, None, "first")
    assert done.notes[1:] == (
        "replaces the retired baseline of this commit, accepted by Ada, 2 sessions",
    )
