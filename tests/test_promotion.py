import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import SUMS, baseline, entry, of_commit, outcome, with_answers

from perfgate.baselines import candidate_store, own_store, read, suite_store
from perfgate.engines.base import EngineBuild
from perfgate.errors import InputError
from perfgate.gate.verdict import Verdict
from perfgate.promotion import promote, record_candidates
from perfgate.records import RunFolder, now

COMMIT = "abc123"


@pytest.fixture
def run(suite_root: Path) -> Iterator[RunFolder]:
    folder = RunFolder.create(suite_root / "runs" / "one", {"started": now()})
    yield folder
    folder.close()


def measure(run: RunFolder, probe: str = "c4", value: float = 100.0, **changes: Any) -> None:
    """Write down what a campaign does for one measurement."""
    line = {
        "scenario": "small-serve",
        "hardware": "cpu",
        "probe": probe,
        "role": "new",
        "machine_bound": False,
        "start": 1,
        "started": now(),
        "engine": {"name": "llama.cpp", "version": "1.3.0", "commit": COMMIT},
        "fingerprint": {"cpu": "Grace"},
        "metrics": {"output_throughput": value},
        "facts": {},
        "answers": {},
        "folder": "",
        "injected": [],
        "synthetic": False,
    }
    run.record("measurement", {**line, **changes})


def judge(run: RunFolder, probe: str = "c4", verdict: Verdict = Verdict.NO_BASELINE) -> None:
    plain = {**outcome(verdict=verdict).as_record(), "probe": probe}
    run.record("verdict", {"test": probe, **plain})


class TestRecord:
    def test_a_run_becomes_a_candidate_and_by_a_person_a_baseline(self, run: RunFolder) -> None:
        answers = {SUMS: {"q1": True, "q2": False}}
        for value in (100.0, 102.0):
            measure(run, value=value)
        measure(run, "sums", metrics={SUMS: 0.5}, answers=answers)
        judge(run)
        judge(run, "sums")
        (path,), left_out = record_candidates(run.path)
        assert left_out == []
        assert path == candidate_store().folder / "cpu" / "small-serve" / "abc123.json"
        candidate = read(path)
        assert candidate.engine == EngineBuild("llama.cpp", "1.3.0", COMMIT)
        assert (candidate.accepted_by, candidate.reason) == ("nobody yet", "recorded from run one")
        assert candidate.entries["c4"].values("output_throughput") == [100.0, 102.0]
        assert candidate.entries["sums"].runs[0].answers == answers
        assert [one.run for one in candidate.entries["c4"].runs] == ["one", "one"]
        assert suite_store().list() == []

        accepted, changes = promote(path, by="Ada Lovelace", reason="release 1.3")
        assert accepted == suite_store().folder / "cpu" / "small-serve" / "abc123.json"
        found = read(accepted)
        assert found.entries == candidate.entries
        assert (found.accepted_by, found.reason) == ("Ada Lovelace", "release 1.3")
        assert changes == ["c4 output_throughput: new: 101", f"sums {SUMS}: new: 0.5"]
        assert suite_store().choose("cpu", "small-serve", "other") == found

    def test_one_candidate_per_scenario(self, run: RunFolder) -> None:
        for scenario in ("one", "two"):
            measure(run, scenario=scenario)
            plain = {**outcome(verdict=Verdict.PASS).as_record(), "scenario": scenario}
            run.record("verdict", {"test": scenario, **plain})
        paths, _ = record_candidates(run.path)
        assert [path.parent.name for path in paths] == ["one", "two"]

    @pytest.mark.parametrize("verdict", Verdict)
    def test_only_full_measurements_that_did_not_fail(
        self, run: RunFolder, verdict: Verdict
    ) -> None:
        measure(run)
        judge(run, verdict=verdict)
        if verdict in ("PASS", "IMPROVEMENT", "NO_BASELINE", "NOT_COMPARABLE"):
            assert len(record_candidates(run.path)[0]) == 1
            return
        with pytest.raises(InputError, match="nothing in this run can become a baseline") as caught:
            record_candidates(run.path)
        assert caught.value.found == f"small-serve-c4: its verdict is {verdict}"
        assert candidate_store().list() == []

    @pytest.mark.parametrize("marks", [{"injected": ["a=1"]}, {"synthetic": True}])
    def test_numbers_changed_on_purpose_or_made_up_never(
        self, run: RunFolder, marks: dict[str, object]
    ) -> None:
        measure(run, **marks)
        judge(run, verdict=Verdict.PASS)
        with pytest.raises(InputError) as caught:
            record_candidates(run.path)
        assert caught.value.found == (
            "small-serve-c4: its numbers were changed on purpose or are synthetic"
        )
        assert candidate_store().list() == []

    def test_what_is_left_out_is_told(self, run: RunFolder) -> None:
        measure(run, "c1")
        measure(run, "c4")
        measure(run, "c8")
        judge(run, "c1")
        judge(run, "c4", Verdict.REGRESSION)
        judge(run, "c16", Verdict.ERROR)
        (path,), left_out = record_candidates(run.path)
        assert list(read(path).entries) == ["c1"]
        assert left_out == [
            "small-serve-c16: its verdict is ERROR",
            "small-serve-c4: its verdict is REGRESSION",
            "small-serve-c8: it has no verdict",
        ]

    def test_references_of_the_run_are_not_the_build_under_test(self, run: RunFolder) -> None:
        measure(run, value=50.0, role="reference")
        measure(run, value=100.0)
        judge(run)
        (path,), _ = record_candidates(run.path)
        assert read(path).entries["c4"].values("output_throughput") == [100.0]

    def test_a_run_without_measurements(self, run: RunFolder) -> None:
        with pytest.raises(InputError) as caught:
            record_candidates(run.path)
        assert (caught.value.file, caught.value.found) == (run.path, "no measurements")

    def test_no_run(self, tmp_path: Path, suite_root: Path) -> None:
        with pytest.raises(InputError, match="no such run"):
            record_candidates(tmp_path)

    def test_starts_of_one_probe_on_unlike_machines(self, run: RunFolder) -> None:
        measure(run)
        measure(run, fingerprint={"cpu": "Xeon"})
        judge(run)
        with pytest.raises(InputError, match="starts of one probe on unlike machines"):
            record_candidates(run.path)

    def test_a_relative_path_will_do(self, run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        measure(run)
        judge(run)
        monkeypatch.chdir(run.path)
        assert len(record_candidates(Path())[0]) == 1


class TestPromote:
    @pytest.fixture
    def candidate(self, suite_root: Path) -> Path:
        return candidate_store().save(
            baseline(entries={"c4": entry(110.0, 112.0)}, accepted_by="nobody yet")
        )

    @pytest.mark.parametrize(
        ("by", "reason", "field"), [("", "x", "--by"), ("x", " \n", "--reason")]
    )
    def test_needs_a_person_and_a_reason(
        self, candidate: Path, by: str, reason: str, field: str
    ) -> None:
        with pytest.raises(InputError, match="must not be empty") as caught:
            promote(candidate, by=by, reason=reason)
        assert caught.value.field == field
        assert suite_store().list() == []

    def test_keeps_the_other_entries_of_the_commit(self, candidate: Path) -> None:
        suite_store().save(
            baseline(
                entries={"c1": entry(50.0), "sums": with_answers({"q": True}), "c4": entry(1.0)}
            )
        )
        path, _ = promote(candidate, by="Ada", reason="again")
        assert read(path).entries == {
            "c1": entry(50.0),
            "sums": with_answers({"q": True}),
            "c4": entry(110.0, 112.0),
        }

    def test_baselines_of_other_commits_stay(self, candidate: Path) -> None:
        older = suite_store().save(of_commit("older"))
        before = older.read_bytes()
        path, _ = promote(candidate, by="Ada", reason="newer")
        assert suite_store().list() == [path, older]
        assert older.read_bytes() == before

    def test_shows_what_changes_against_the_newest_baseline(self, candidate: Path) -> None:
        suite_store().save(of_commit("old", entries={"c4": entry(100.0, 100.0)}))
        _, changes = promote(candidate, by="Ada", reason="faster")
        assert changes == ["c4 output_throughput: 100 -> 111 (+11.0%)"]

    def test_a_value_of_zero_has_no_percentage(self, candidate: Path) -> None:
        suite_store().save(of_commit("old", entries={"c4": entry(0.0)}))
        assert promote(candidate, by="Ada", reason="x")[1] == ["c4 output_throughput: 0 -> 111"]

    def test_is_newer_than_what_was_accepted_before(self, candidate: Path) -> None:
        suite_store().save(of_commit("old", accepted_at="2020-01-01T00:00:00+00:00"))
        before = now()
        promote(candidate, by="Grace", reason="x")
        chosen = suite_store().choose("cpu", "small-serve", "unknown")
        assert chosen is not None
        assert chosen.accepted_by == "Grace"
        assert before <= chosen.accepted_at <= now()

    def test_an_own_reference_can_be_promoted_too(self, suite_root: Path) -> None:
        own = own_store().save(baseline(accepted_by="self"))
        path, _ = promote(own, by="Ada", reason="a reference machine")
        assert read(path).accepted_by == "Ada"

    def test_a_damaged_candidate_changes_nothing(self, candidate: Path) -> None:
        kept = suite_store().save(baseline())
        before = kept.read_bytes()
        plain = json.loads(candidate.read_text())
        del plain["entries"]["c4"]["fingerprint"]
        candidate.write_text(json.dumps(plain))
        with pytest.raises(InputError, match=r"entries\.c4"):
            promote(candidate, by="Ada", reason="x")
        assert kept.read_bytes() == before

    def test_a_failure_while_writing_changes_nothing(
        self, candidate: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = suite_store().save(baseline())
        before = kept.read_bytes()

        def fail(_: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output error"):
            promote(candidate, by="Ada", reason="x")
        assert kept.read_bytes() == before
        assert list(kept.parent.iterdir()) == [kept]


def test_what_a_machine_compares_with_itself_stays_on_the_machine(run: RunFolder) -> None:
    measure(run, "c4")
    measure(run, "c1", machine_bound=True)
    judge(run, "c4")
    judge(run, "c1", Verdict.PASS)
    (path,), left_out = record_candidates(run.path)
    assert list(read(path).entries) == ["c4"]
    assert [line.partition(":")[0].rpartition("-")[2] for line in left_out] == ["c1"]
