from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from building import SUMS, applied, baseline, entry, judgement, outcome

from perfgate.baselines import candidate_store, read, suite_store
from perfgate.baselines.noise_history import NoiseRun, NoiseSeries
from perfgate.baselines.noise_history import save as save_noise
from perfgate.baselines.promotion import record_candidates
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.gate.verdict import Verdict
from perfgate.runs.records import RunFolder, now

COMMIT = "abc123"


@pytest.fixture
def run(suite_root: Path) -> Iterator[RunFolder]:
    folder = RunFolder.create(suite_root / "runs" / "one", {"started": now(), "synthetic": False})
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


def select(run: RunFolder, tests: Mapping[str, str]) -> None:
    """Write down which tests the run has: name of each → its scenario."""
    subjects = {name: {"scenario": scenario} for name, scenario in tests.items()}
    run.record("selected", {"tests": sorted(tests), "subjects": subjects})


def judge(run: RunFolder, probe: str = "c4", verdict: Verdict = Verdict.NO_BASELINE) -> None:
    plain = {
        **outcome(verdict=verdict, judgements=()).as_record(),
        "probe": probe,
        "name": f"small-serve-{probe}",
    }
    run.record("verdict", {"test": probe, **plain})


class TestRecord:
    def test_a_run_becomes_a_candidate(self, run: RunFolder) -> None:
        answers = {SUMS: {"q1": True, "q2": False}}
        for value in (100.0, 102.0):
            measure(run, value=value)
        measure(run, "sums", metrics={SUMS: 0.5}, answers=answers)
        judge(run)
        judge(run, "sums")
        (path,), left_out = record_candidates([run.path])
        assert left_out == []
        assert path == candidate_store().folder / "cpu" / "small-serve" / "abc123.json"
        candidate = read(path)
        assert candidate.engine == EngineBuild("llama.cpp", "1.3.0", COMMIT)
        assert (candidate.accepted_by, candidate.reason) == ("nobody yet", "recorded from run one")
        assert candidate.entries["c4"].values("output_throughput") == [100.0, 102.0]
        assert candidate.entries["sums"].runs[0].answers == answers
        assert [one.run for one in candidate.entries["c4"].runs] == ["one", "one"]
        assert candidate.verdicts == {"c4": "NO_BASELINE", "sums": "NO_BASELINE"}
        assert suite_store().list() == []

    def test_how_the_build_was_started_is_kept_as_its_last_start_was(self, run: RunFolder) -> None:
        image = "registry.example/trtllm:1.3.0"
        for day, digest in (("02", "sha256:new"), ("01", "sha256:old")):
            told = {"image": image, "digest": digest, "programs": {"PERFGATE_PROGRAM_AIPERF": "/a"}}
            measure(run, started=f"2026-11-{day}T01:00:00+00:00", source=told)
        judge(run)
        (path,), _ = record_candidates([run.path])
        assert read(path).source == BuildSource(
            image=image, digest="sha256:new", programs={"PERFGATE_PROGRAM_AIPERF": "/a"}
        )

    def test_a_record_that_does_not_say_how_its_build_was_started_tells_nothing(
        self, run: RunFolder
    ) -> None:
        measure(run)
        judge(run)
        (path,), _ = record_candidates([run.path])
        assert read(path).source is None

    def test_a_node_that_lies_apart_makes_no_baseline(self, run: RunFolder) -> None:
        """Its three sessions before were 5 % slow; a start elsewhere in the same run counts."""
        for number in range(3):
            series = NoiseSeries(
                *("small-serve", "c4", "a", COMMIT, {"output_throughput": (100.0,)}),
                node="n7",
                offsets={"output_throughput": 0.05},
            )
            at = "2026-11-20T08:00:00+00:00"
            save_noise(NoiseRun("cpu", f"before-{number}", at, (series,)), own=False)
        facts = {"slurm": {"nodes": ["n7"]}}
        measure(run, value=95.0, facts=facts)
        judge(run)
        told = "node n7 lies -2.1% off in output_throughput (3 sessions): it makes no baseline"
        with pytest.raises(InputError) as caught:
            record_candidates([run.path])
        assert told in str(caught.value.found)
        measure(run, value=100.0, start=2, facts={"slurm": {"nodes": ["n8"]}})
        (path,), left_out = record_candidates([run.path])
        assert left_out == [f"small-serve-c4: a start is not used, {told}"]
        assert read(path).entries["c4"].values("output_throughput") == [100.0]

    def test_one_candidate_per_scenario(self, run: RunFolder) -> None:
        for scenario in ("one", "two"):
            measure(run, scenario=scenario)
            plain = {
                **outcome(verdict=Verdict.PASS, judgements=()).as_record(),
                "scenario": scenario,
            }
            run.record("verdict", {"test": scenario, **plain})
        paths, _ = record_candidates([run.path])
        assert [path.parent.name for path in paths] == ["one", "two"]

    @pytest.mark.parametrize("verdict", Verdict)
    def test_only_full_measurements_that_did_not_fail(
        self, run: RunFolder, verdict: Verdict
    ) -> None:
        measure(run)
        judge(run, verdict=verdict)
        if verdict not in ("INCONCLUSIVE", "ERROR"):
            (path,), _ = record_candidates([run.path])
            assert read(path).verdicts == {"c4": verdict}
            return
        with pytest.raises(InputError, match="nothing in this run can become a baseline") as caught:
            record_candidates([run.path])
        assert caught.value.found == f"small-serve: the verdict of c4 is {verdict}"
        assert candidate_store().list() == []

    @pytest.mark.parametrize("marks", [{"injected": ["a=1"]}, {"synthetic": True}])
    def test_numbers_of_injected_settings_or_made_up_never(
        self, run: RunFolder, marks: dict[str, object]
    ) -> None:
        measure(run, **marks)
        judge(run, verdict=Verdict.PASS)
        with pytest.raises(InputError) as caught:
            record_candidates([run.path])
        assert caught.value.found == (
            "small-serve: c4: its settings were injected, or its numbers are synthetic"
        )
        assert candidate_store().list() == []

    def test_one_failed_probe_leaves_the_whole_scenario_out(self, run: RunFolder) -> None:
        for probe in ("c1", "c4", "c8"):
            measure(run, probe)
        judge(run, "c1")
        judge(run, "c4", Verdict.INCONCLUSIVE)
        judge(run, "c16", Verdict.ERROR)
        run.record(
            "skipped",
            {
                "test": "c32",
                "name": "small-serve-c32",
                "scenario": "small-serve",
                "probe": "c32",
                "reason": "needs 1×B200, found none",
            },
        )
        measure(run, scenario="other")
        other = {**outcome(verdict=Verdict.PASS, judgements=()).as_record(), "scenario": "other"}
        run.record("verdict", {"test": "other", **other})
        (path,), left_out = record_candidates([run.path])
        assert path.parent.name == "other"
        assert left_out == [
            "small-serve: c32 was skipped: needs 1×B200, found none",
            "small-serve: c8 has no verdict",
            "small-serve: the verdict of c16 is ERROR",
            "small-serve: the verdict of c4 is INCONCLUSIVE",
        ]

    @pytest.mark.parametrize("role", ["baseline_control", "anchor_control", "a", "b"])
    def test_controls_and_other_builds_are_not_the_build_under_test(
        self, run: RunFolder, role: str
    ) -> None:
        measure(run, value=50.0, role=role)
        with pytest.raises(InputError, match="nothing in this run"):
            record_candidates([run.path])
        measure(run, value=100.0)
        judge(run)
        (path,), _ = record_candidates([run.path])
        assert read(path).entries["c4"].values("output_throughput") == [100.0]

    def test_a_run_of_two_builds_becomes_none(self, suite_root: Path) -> None:
        facts = {"started": now(), "synthetic": False, "ab": ["A=old", "B=new"]}
        run = RunFolder.create(suite_root / "runs" / "ab", facts)
        measure(run)
        judge(run)
        run.close()
        with pytest.raises(InputError, match="compared two builds") as caught:
            record_candidates([run.path])
        assert caught.value.found == "A=old B=new"

    def test_a_machine_that_was_slower_as_a_whole_gives_no_level(self, run: RunFolder) -> None:
        measure(run)
        shifted = outcome(verdict=Verdict.PASS, judgements=(judgement(mark="HOST_SHIFT"),))
        run.record("verdict", {"test": "c4", **shifted.as_record()})
        with pytest.raises(InputError) as caught:
            record_candidates([run.path])
        assert "HOST_SHIFT" in str(caught.value.found)
        assert candidate_store().list() == []

    def test_a_run_that_did_not_finish(self, run: RunFolder) -> None:
        select(run, {"c4": "small-serve", "c8": "small-serve"})
        measure(run)
        judge(run)
        with pytest.raises(InputError) as caught:
            record_candidates([run.path])
        assert "did not finish: no verdict for c8" in str(caught.value.found)

    def test_an_unfinished_test_of_a_longer_name_holds_up_no_other_scenario(
        self, run: RunFolder
    ) -> None:
        other = "t.py::test_serving[small-serve-no-padding-c8]"
        select(run, {"c4": "small-serve", other: "small-serve-no-padding"})
        measure(run)
        judge(run)
        paths, left_out = record_candidates([run.path])
        assert (len(paths), left_out) == (1, [])

    def test_a_disturbed_start_is_not_used_if_another_is_fine(self, run: RunFolder) -> None:
        measure(run, value=50.0, disturbed=["another process used 60 % of the cores"])
        measure(run, value=100.0, disturbed=[], seconds=12.5, start=2)
        judge(run)
        (path,), left_out = record_candidates([run.path])
        (one,) = read(path).entries["c4"].runs
        assert (one.metrics, one.seconds, one.start) == ({"output_throughput": 100.0}, 12.5, 2)
        assert left_out == [
            "small-serve-c4: a start is not used, disturbed: another process used 60 % of the cores"
        ]

    def test_disturbed_starts_alone_leave_the_scenario_out(self, run: RunFolder) -> None:
        measure(run, disturbed=["steal 20 %"])
        judge(run)
        with pytest.raises(InputError) as caught:
            record_candidates([run.path])
        assert caught.value.found == "small-serve: c4: disturbed: steal 20 %"

    def test_a_waived_loss_is_still_a_loss(self, run: RunFolder) -> None:
        measure(run)
        waived = outcome(
            verdict=Verdict.PASS, judgements=(judgement(waiver=applied("Ada, until 2026-12-01")),)
        )
        run.record("verdict", {"test": "c4", **waived.as_record()})
        (path,), _ = record_candidates([run.path])
        assert read(path).verdicts == {"c4": "REGRESSION"}

    def test_a_claim_is_not_a_probe(self, run: RunFolder) -> None:
        measure(run)
        judge(run)
        claim = {**outcome(verdict=Verdict.INCONCLUSIVE, judgements=()).as_record()}
        run.record("verdict", {"test": "claim", **claim, "name": "fp8-costs", "probe": "fp8-costs"})
        (path,), left_out = record_candidates([run.path])
        assert (read(path).verdicts, left_out) == ({"c4": "NO_BASELINE"}, [])

    def test_a_sweep_is_judged_on_measurements_of_its_points(self, run: RunFolder) -> None:
        measure(run)
        judge(run)
        judge(run, "sweep", Verdict.PASS)
        (path,), _ = record_candidates([run.path])
        assert list(read(path).entries) == ["c4"]
        judge(run, "sweep", Verdict.INCONCLUSIVE)
        with pytest.raises(InputError, match="the verdict of sweep is INCONCLUSIVE"):
            record_candidates([run.path])

    def test_a_first_answer_has_no_number_to_keep(self, run: RunFolder) -> None:
        measure(run)
        measure(run, "smoke", metrics={})
        judge(run)
        judge(run, "smoke", Verdict.PASS)
        (path,), _ = record_candidates([run.path])
        assert list(read(path).entries) == ["c4"]

    def test_records_again_what_was_recorded_before(self, run: RunFolder) -> None:
        candidate_store().save(baseline(entries={"c1": entry(1.0)}, accepted_by="nobody yet"))
        measure(run)
        judge(run)
        (path,), _ = record_candidates([run.path])
        assert list(read(path).entries) == ["c4"]

    def test_references_of_the_run_are_not_the_build_under_test(self, run: RunFolder) -> None:
        measure(run, value=50.0, role="reference")
        measure(run, value=100.0)
        judge(run)
        (path,), _ = record_candidates([run.path])
        assert read(path).entries["c4"].values("output_throughput") == [100.0]

    def test_a_run_without_measurements(self, run: RunFolder) -> None:
        with pytest.raises(InputError) as caught:
            record_candidates([run.path])
        assert (caught.value.file, caught.value.found) == (run.path, "no measurements")

    def test_no_run(self, tmp_path: Path, suite_root: Path) -> None:
        with pytest.raises(InputError, match="no such run"):
            record_candidates([tmp_path])

    def test_starts_of_one_probe_on_unlike_machines(self, run: RunFolder) -> None:
        measure(run)
        measure(run, fingerprint={"cpu": "Xeon"})
        judge(run)
        with pytest.raises(
            InputError, match="different machines for starts of one probe"
        ) as caught:
            record_candidates([run.path])
        assert caught.value.found == "cpu: measured Xeon, baseline Grace"
        assert candidate_store().list() == []

    def test_a_relative_path_will_do(self, run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        measure(run)
        judge(run)
        monkeypatch.chdir(run.path)
        assert len(record_candidates([Path()])[0]) == 1


def test_what_a_machine_compares_with_itself_stays_on_the_machine(run: RunFolder) -> None:
    measure(run, "c4")
    measure(run, "c1", machine_bound=True)
    judge(run, "c4")
    judge(run, "c1", Verdict.PASS)
    (path,), left_out = record_candidates([run.path])
    assert list(read(path).entries) == ["c4"]
    assert left_out == [
        "small-serve-c1: compared with the machine itself, so its numbers stay here"
    ]
    assert read(path).verdicts == {"c4": "NO_BASELINE", "c1": "PASS"}


class TestSeveralRuns:
    @pytest.fixture
    def second(self, run: RunFolder) -> Iterator[RunFolder]:
        folder = RunFolder.create(run.path.parent / "two", {"started": now(), "synthetic": False})
        yield folder
        folder.close()

    def test_their_fresh_starts_are_pooled(self, run: RunFolder, second: RunFolder) -> None:
        measure(second, value=103.0, started="2026-11-02T08:00:00+00:00")
        measure(run, value=100.0, started="2026-11-01T08:00:00+00:00")
        measure(run, value=101.0, started="2026-11-01T09:00:00+00:00")
        judge(run, verdict=Verdict.PASS)
        judge(second, verdict=Verdict.NO_BASELINE)
        (path,), _ = record_candidates([second.path, run.path])
        candidate = read(path)
        assert candidate.entries["c4"].values("output_throughput") == [100.0, 101.0, 103.0]
        assert [one.run for one in candidate.entries["c4"].runs] == ["one", "one", "two"]
        assert candidate.reason == "recorded from runs one, two"
        assert candidate.verdicts == {"c4": "NO_BASELINE"}

    def test_probes_of_several_runs_make_one_candidate(
        self, run: RunFolder, second: RunFolder
    ) -> None:
        measure(run, "c1")
        judge(run, "c1")
        measure(second, "c4")
        judge(second, "c4")
        (path,), _ = record_candidates([run.path, second.path])
        assert set(read(path).entries) == {"c1", "c4"}

    def test_one_that_failed_leaves_the_scenario_out(
        self, run: RunFolder, second: RunFolder
    ) -> None:
        for folder, verdict in ((run, Verdict.PASS), (second, Verdict.INCONCLUSIVE)):
            measure(folder)
            judge(folder, verdict=verdict)
        with pytest.raises(InputError, match="nothing in these runs can become a baseline"):
            record_candidates([run.path, second.path])

    def test_a_loss_in_one_is_carried(self, run: RunFolder, second: RunFolder) -> None:
        measure(run, value=100.0)
        judge(run, verdict=Verdict.PASS)
        measure(second, value=90.0)
        judge(second, verdict=Verdict.REGRESSION)
        (path,), _ = record_candidates([run.path, second.path])
        assert read(path).verdicts == {"c4": "REGRESSION"}

    def test_of_unlike_machines_are_refused(self, run: RunFolder, second: RunFolder) -> None:
        measure(run)
        measure(second, value=99.0, fingerprint={"cpu": "Xeon", "driver": "570.1"})
        judge(run)
        judge(second)
        with pytest.raises(
            InputError, match="different machines for starts of one probe"
        ) as caught:
            record_candidates([run.path, second.path])
        assert "small-serve-c4, run two" in caught.value.problem
        assert caught.value.found == (
            "cpu: measured Xeon, baseline Grace; driver: measured 570.1, baseline none"
        )

    def test_probes_of_unlike_machines_are_refused(self, run: RunFolder, second: RunFolder) -> None:
        measure(run, "c1")
        judge(run, "c1")
        measure(second, "c4", fingerprint={"cpu": "Xeon"})
        judge(second, "c4")
        measure(second, "sums", fingerprint={"content": "a"}, metrics={SUMS: 0.5})
        judge(second, "sums")
        with pytest.raises(InputError, match="probes of one scenario") as caught:
            record_candidates([run.path, second.path])
        assert caught.value.found == "cpu: Grace (c1), Xeon (c4)"

    def test_of_two_commits_are_refused(self, run: RunFolder, second: RunFolder) -> None:
        measure(run)
        measure(second, engine={"name": "llama.cpp", "version": "1.3.0", "commit": "other"})
        judge(run)
        judge(second)
        with pytest.raises(InputError, match="more than one engine build") as caught:
            record_candidates([run.path, second.path])
        assert caught.value.found == "llama.cpp 1.3.0 (abc123), llama.cpp 1.3.0 (other)"
        assert candidate_store().list() == []

    def test_the_same_one_twice_is_refused(self, run: RunFolder) -> None:
        measure(run)
        judge(run)
        with pytest.raises(InputError, match="the same run is named twice"):
            record_candidates([run.path, run.path / ".." / "one"])

    def test_a_copy_of_one_is_refused(self, run: RunFolder, second: RunFolder) -> None:
        for folder in (run, second):
            measure(folder, started="2026-11-01T08:00:00+00:00")
            judge(folder)
        with pytest.raises(InputError, match="is in two runs, and would count twice") as caught:
            record_candidates([run.path, second.path])
        assert caught.value.found == f"{run.path}, {second.path}"


class TestEditedRuns:
    """A run that was edited is never a candidate, nor is a rehearsal that no longer says so."""

    def test_a_word_changed_in_the_records(self, run: RunFolder) -> None:
        measure(run, synthetic=True)
        judge(run, verdict=Verdict.PASS)
        records = run.path / "records.jsonl"
        changed = records.read_text().replace('"synthetic": true', '"synthetic": false')
        records.write_text(changed)
        with pytest.raises(InputError, match=r"records\.jsonl:1: the checksum is not that"):
            record_candidates([run.path])
        assert candidate_store().list() == []

    @pytest.mark.parametrize(
        "facts",
        [
            {"arguments": ["pytest", "--rehearse"], "synthetic": False},
            {"arguments": ["pytest", "--rehearse-fault=oom"], "synthetic": False},
            {"rehearse_fault": "oom", "synthetic": False},
            {"arguments": ["pytest"]},
            {"synthetic": "no"},
        ],
    )
    def test_facts_that_do_not_agree_on_who_made_the_numbers(
        self, suite_root: Path, facts: dict[str, object]
    ) -> None:
        run = RunFolder.create(suite_root / "runs" / "two", {"started": now(), **facts})
        measure(run)
        judge(run, verdict=Verdict.PASS)
        run.close()
        with pytest.raises(InputError, match="does not agree with itself"):
            record_candidates([run.path])
        assert candidate_store().list() == []

    def test_the_folder_of_the_stand_ins_tells_too(self, run: RunFolder) -> None:
        measure(run)
        judge(run, verdict=Verdict.PASS)
        (run.path / "rehearsal").mkdir()
        with pytest.raises(InputError, match="beside the folder rehearsal"):
            record_candidates([run.path])

    def test_a_run_of_an_older_perfgate(self, run: RunFolder) -> None:
        measure(run)
        judge(run, verdict=Verdict.PASS)
        file = run.path / "run.json"
        file.write_text(file.read_text().replace('version": 3', 'version": 2'))
        with pytest.raises(InputError, match="written by an older perfgate"):
            record_candidates([run.path])
