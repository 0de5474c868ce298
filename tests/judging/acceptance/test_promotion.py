"""A person accepts a candidate, or is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from building import baseline, entry, of_commit, with_answers
from tables import each

from perfgate.baselines import Retired, candidate_store, own_store, read, suite_store
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance.promotion import promote
from perfgate.runs.run_folder import now


@pytest.fixture
def candidate(suite_root: Path) -> Path:
    return candidate_store().save(
        baseline(entries={"c4": entry(110.0, 112.0)}, accepted_by="nobody yet")
    )


class TestPromote:
    @each(("by", "reason", "field"), [("", "x", "--by"), ("x", " \n", "--reason")])
    def test_needs_a_person_and_a_reason(
        self, candidate: Path, by: str, reason: str, field: str
    ) -> None:
        with pytest.raises(InputError, match="must not be empty") as caught:
            promote(candidate, by=by, reason=reason)
        assert caught.value.field == field
        assert suite_store().list() == []

    def test_accepts_the_numbers_as_they_are(self, candidate: Path) -> None:
        older = suite_store().save(of_commit("older"))
        before = older.read_bytes()
        done = promote(candidate, by=" Ada Lovelace ", reason="release 1.3\n")
        assert done.file == suite_store().folder / "cpu" / "small-serve" / "abc123.json"
        found = read(done.file)
        assert found.entries == read(candidate).entries
        assert (found.accepted_by, found.reason) == ("Ada Lovelace", "release 1.3")
        assert (done.written, done.change) == (True, "first")
        assert suite_store().list() == [done.file, older]
        assert older.read_bytes() == before

    def test_keeps_the_other_entries_of_the_commit(self, candidate: Path) -> None:
        suite_store().save(
            baseline(
                entries={"c1": entry(50.0), "sums": with_answers({"q": True}), "c4": entry(1.0)}
            )
        )
        done = promote(candidate, by="Ada", reason="again")
        assert read(done.file).entries == {
            "c1": entry(50.0),
            "sums": with_answers({"q": True}),
            "c4": entry(110.0, 112.0),
        }
        assert done.notes == (
            "baseline of 2 sessions; 3 are asked for: more losses stay unseen "
            "(docs/how-to/baselines.md)",
            "replaces the baseline of this commit, accepted by Ada, 1 session",
        )

    def test_shows_what_changes_against_the_newest_baseline(self, candidate: Path) -> None:
        suite_store().save(of_commit("old", entries={"c4": entry(100.0, 100.0)}))
        done = promote(candidate, by="Ada", reason="faster")
        (probe,) = done.probes
        (moved,) = probe.metrics
        assert (moved.probe, moved.metric) == ("c4", "output_throughput")
        assert moved.before == pytest.approx(100.0)
        assert moved.after == pytest.approx(111.0, abs=0.01)
        assert moved.change == pytest.approx(0.11, abs=0.001)
        assert moved.interval is not None
        assert moved.interval[0] > 0.09
        assert done.before is not None
        assert done.before.why == "newest of the same version, no baseline of this commit"

    def test_a_dry_run_writes_nothing(self, candidate: Path) -> None:
        kept = suite_store().save(of_commit("old", entries={"c4": entry(100.0, 100.0)}))
        before = kept.read_bytes()
        told = promote(candidate, by="Ada", reason="faster", dry_run=True)
        assert (told.written, told.change) == (False, "improvement")
        assert suite_store().list() == [kept]
        assert kept.read_bytes() == before
        done = promote(candidate, by="Ada", reason="faster")
        assert replace(done, written=False) == told

    def test_is_newer_than_what_was_accepted_before(self, candidate: Path) -> None:
        suite_store().save(of_commit("old", accepted_at="2020-01-01T00:00:00+00:00"))
        before = now()
        promote(candidate, by="Grace", reason="x")
        build = EngineBuild("llama.cpp", "1.2.0", "unknown")
        chosen = suite_store().choose("cpu", "small-serve", build)
        assert chosen is not None
        assert chosen.baseline.accepted_by == "Grace"
        assert before <= chosen.baseline.accepted_at <= now()

    def test_an_own_reference_can_be_promoted_too(self, suite_root: Path) -> None:
        own = own_store().save(baseline(accepted_by="self"))
        done = promote(own, by="Ada", reason="a reference machine")
        assert read(done.file).accepted_by == "Ada"


class TestLevels:
    """What accepting a candidate changes, and what it takes."""

    def candidate(self, *values: float, verdict: str = "PASS", **changes: object) -> Path:
        made = baseline(
            engine=EngineBuild("llama.cpp", "1.3.0", "new"),
            entries={"c4": entry(*values)},
            accepted_by="nobody yet",
            verdicts={"c4": verdict},
        )
        return candidate_store().save(replace(made, **changes), merge=False)

    @pytest.fixture
    def accepted(self, suite_root: Path) -> Path:
        return suite_store().save(
            of_commit("old", entries={"c4": entry(100.0, 100.2, 99.8)}, change="first")
        )

    def test_nothing_comparable_before_is_first(self, accepted: Path) -> None:
        path = self.candidate(
            100.0, verdict="NOT_COMPARABLE", entries={"c4": entry(50.0, cpu="Xeon")}
        )
        assert promote(path, by="Ada", reason="new machine").change == "first"

    def test_a_regression_is_refused(self, accepted: Path) -> None:
        path = self.candidate(90.0, 90.0, verdict="REGRESSION")
        with pytest.raises(InputError, match="the candidate is a regression") as caught:
            promote(path, by="Ada", reason="x")
        assert caught.value.found == "c4: its run ended in REGRESSION"
        assert "--accept-regression" in str(caught.value.hint)
        assert suite_store().list() == [accepted]
        with pytest.raises(InputError, match="must not be empty") as caught:
            promote(path, by="Ada", reason="x", accept_regression=" ")
        assert caught.value.field == "--accept-regression"

    def test_a_regression_of_the_sweep_alone_is_refused_too(self, accepted: Path) -> None:
        path = self.candidate(99.0, verdicts={"c4": "PASS", "sweep": "REGRESSION"})
        with pytest.raises(InputError, match="the candidate is a regression"):
            promote(path, by="Ada", reason="x")

    @pytest.mark.parametrize("version", ["1.3.0", "1.3.0rc1"])
    def test_an_accepted_loss_still_counts_against_an_older_anchor(
        self, accepted: Path, version: str
    ) -> None:
        build = EngineBuild("llama.cpp", version, "new")
        path = self.candidate(90.0, 90.0, verdict="REGRESSION", engine=build)
        few, *more = promote(path, by="Ada", reason="x", accept_regression="safer").notes
        assert few.startswith("baseline of")
        # A release is the next anchor itself.
        why = "the anchor is still 1.2.0 (newest final release): this loss counts"
        assert [note.startswith(why) for note in more[:1]] == ([] if version == "1.3.0" else [True])

    def test_nothing_to_accept_is_told(self, accepted: Path) -> None:
        with pytest.raises(InputError, match="there is no regression to accept") as caught:
            promote(self.candidate(99.5), by="Ada", reason="x", accept_regression="habit")
        assert caught.value.found == "c4 PASS"

    @pytest.mark.parametrize("verdict", ["NO_BASELINE", "NOT_COMPARABLE"])
    def test_a_loss_that_its_run_could_not_see_is_refused(
        self, accepted: Path, verdict: str
    ) -> None:
        path = self.candidate(90.0, 90.0, verdict=verdict)
        with pytest.raises(InputError, match="the candidate is a regression") as caught:
            promote(path, by="Ada", reason="x")
        assert caught.value.found == (
            "c4 output_throughput: its run did not compare it, and now it is REGRESSION"
        )
        assert promote(self.candidate(99.9, verdict=verdict), by="Ada", reason="x").change == "none"

    def test_lost_answers_that_its_run_could_not_see_are_refused(self, suite_root: Path) -> None:
        right = {f"q{number}": True for number in range(100)}
        suite_store().save(of_commit("old", entries={"sums": with_answers(right)}))
        wrong = {key: number > 20 for number, key in enumerate(right)}
        path = self.candidate(
            verdicts={"sums": "NO_BASELINE"}, entries={"sums": with_answers(wrong)}
        )
        with pytest.raises(InputError, match="the candidate is a regression"):
            promote(path, by="Ada", reason="x")

    def test_an_older_build_recorded_later_has_not_lost(self, suite_root: Path) -> None:
        newer = EngineBuild("llama.cpp", "1.9.0", "newer")
        suite_store().save(baseline(engine=newer, entries={"c4": entry(200.0)}))
        done = promote(self.candidate(100.0, verdict="NO_BASELINE"), by="Ada", reason="history")
        assert done.change == "first"
        assert done.before is not None
        assert done.before.is_newer


class TestRefused:
    def test_an_edited_candidate(self, candidate: Path) -> None:
        candidate.write_text(candidate.read_text().replace("110.0", "119.0"))
        with pytest.raises(InputError, match="edited by hand"):
            promote(candidate, by="Ada", reason="x")
        assert suite_store().list() == []

    def test_probes_of_unlike_machines(self, suite_root: Path) -> None:
        path = candidate_store().save(
            baseline(
                entries={
                    "c1": entry(1.0),
                    "c4": entry(4.0, cpu="Xeon"),
                    "sums": with_answers({"q": True}),
                }
            )
        )
        with pytest.raises(InputError, match="numbers of different machines") as caught:
            promote(path, by="Ada", reason="x")
        assert caught.value.found == "cpu: Grace (c1), Xeon (c4)"
        assert suite_store().list() == []

    def test_a_mixture_with_what_the_commit_has(self, candidate: Path) -> None:
        kept = suite_store().save(baseline(entries={"c1": entry(50.0, cpu="Xeon")}))
        before = kept.read_bytes()
        with pytest.raises(InputError, match="numbers of different machines"):
            promote(candidate, by="Ada", reason="x")
        assert kept.read_bytes() == before

    def test_a_retired_one_but_new_numbers_may_take_its_place(self, candidate: Path) -> None:
        retired = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")
        path = suite_store().save(baseline(retired=retired, change="regression", regression="x"))
        with pytest.raises(InputError, match="a retired baseline cannot be accepted again"):
            promote(path, by="Grace", reason="x")
        done = promote(candidate, by="Grace", reason="right clocks")
        found = read(done.file)
        assert (set(found.entries), found.retired, found.change) == ({"c4"}, None, "first")
        assert done.notes[1:] == (
            "replaces the retired baseline of this commit, accepted by Ada, 2 sessions",
        )
