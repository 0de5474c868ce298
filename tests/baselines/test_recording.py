"""What of a run's records becomes a candidate, and what never does."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from building import SUMS, applied, judgement, outcome
from plain_records import fields_of, record

from perfgate.baselines import Baseline, candidate_store, read, suite_store
from perfgate.baselines.recording import record_candidates
from perfgate.core.errors import InputError
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.runs.run_folder import RunFolder, now

COMMIT = "abc123"
SPEED = "output_throughput"


@pytest.fixture
def run(suite_root: Path) -> Iterator[RunFolder]:
    folder = begun(suite_root, "one")
    yield folder
    folder.close()


@pytest.fixture
def second(run: RunFolder, suite_root: Path) -> Iterator[RunFolder]:
    folder = begun(suite_root, "two")
    yield folder
    folder.close()


def begun(checkout: Path, name: str, **facts: object) -> RunFolder:
    told = {"started": now(), "synthetic": False, **facts}
    return RunFolder.create(checkout / "runs" / name, told)


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
        "metrics": {SPEED: value},
        "facts": {},
        "answers": {},
        "folder": "",
        "injected": [],
        "synthetic": False,
    }
    run.record(record("measurement", {**line, **changes}))


def judge(
    run: RunFolder, probe: str = "c4", verdict: Verdict = Verdict.NO_BASELINE, **changes: Any
) -> None:
    told = {"probe": probe, "name": f"small-serve-{probe}", **changes}
    plain = {**fields_of(outcome(verdict=verdict, judgements=())), **told}
    run.record(record("verdict", {"test": plain["name"], **plain}))


def recorded(*runs: RunFolder, left_out: tuple[str, ...] = ()) -> Baseline:
    """The only candidate of the runs."""
    (path,), told = record_candidates([run.path for run in runs])
    assert tuple(told) == left_out
    return read(path)


def refused(*runs: RunFolder) -> InputError:
    """Why the runs give no candidate at all."""
    with pytest.raises(InputError) as caught:
        record_candidates([run.path for run in runs])
    assert candidate_store().list() == []
    return caught.value


def test_a_run_becomes_a_candidate(run: RunFolder) -> None:
    answers = {SUMS: {"q1": True, "q2": False}}
    for value in (100.0, 102.0):
        measure(run, value=value)
    measure(run, "sums", metrics={SUMS: 0.5}, answers=answers)
    judge(run)
    judge(run, "sums")
    candidate = recorded(run)
    assert candidate.file == candidate_store().folder / "cpu" / "small-serve" / "abc123.json"
    assert candidate.engine == EngineBuild("llama.cpp", "1.3.0", COMMIT)
    assert (candidate.accepted_by, candidate.reason) == ("nobody yet", "recorded from run one")
    assert candidate.entries["c4"].values(SPEED) == [100.0, 102.0]
    assert candidate.entries["sums"].runs[0].answers == answers
    assert [one.run for one in candidate.entries["c4"].runs] == ["one", "one"]
    assert candidate.verdicts == {"c4": "NO_BASELINE", "sums": "NO_BASELINE"}
    assert candidate.source is None, "the records do not say how the build was started"
    assert suite_store().list() == []


def test_how_the_build_was_started_is_kept_as_its_last_start_was(run: RunFolder) -> None:
    image, programs = "registry.example/trtllm:1.3.0", {"PERFGATE_PROGRAM_AIPERF": "/a"}
    for day, digest in (("02", "sha256:new"), ("01", "sha256:old")):
        told = {"image": image, "digest": digest, "programs": programs}
        measure(run, started=f"2026-11-{day}T01:00:00+00:00", source=told)
    judge(run)
    expected = BuildSource(image=image, digest="sha256:new", programs=programs)
    assert recorded(run).source == expected


@pytest.mark.parametrize("verdict", Verdict)
def test_only_full_measurements_that_did_not_fail(run: RunFolder, verdict: Verdict) -> None:
    measure(run)
    judge(run, verdict=verdict)
    if verdict not in ("INCONCLUSIVE", "ERROR"):
        assert recorded(run).verdicts == {"c4": verdict}
        return
    error = refused(run)
    assert error.problem == "nothing in this run can become a baseline"
    assert error.found == f"small-serve: the verdict of c4 is {verdict}"


@pytest.mark.parametrize("marks", [{"injected": ["a=1"]}, {"synthetic": True}])
def test_numbers_of_injected_settings_or_made_up_never(
    run: RunFolder, marks: dict[str, object]
) -> None:
    measure(run, **marks)
    judge(run, verdict=Verdict.PASS)
    why = "small-serve: c4: its settings were injected, or its numbers are synthetic"
    assert refused(run).found == why


def test_one_failed_probe_leaves_the_whole_scenario_out(run: RunFolder) -> None:
    for probe in ("c1", "c4", "c8"):
        measure(run, probe)
    judge(run, "c1")
    judge(run, "c4", Verdict.INCONCLUSIVE)
    judge(run, "c16", Verdict.ERROR)
    told = {"name": "small-serve-c32", "scenario": "small-serve", "probe": "c32"}
    run.record(record("skipped", {"test": "c32", **told, "reason": "needs 1×B200, found none"}))
    measure(run, scenario="other")
    judge(run, verdict=Verdict.PASS, scenario="other")
    candidate = recorded(
        run,
        left_out=(
            "small-serve: c32 was skipped: needs 1×B200, found none",
            "small-serve: c8 has no verdict",
            "small-serve: the verdict of c16 is ERROR",
            "small-serve: the verdict of c4 is INCONCLUSIVE",
        ),
    )
    assert candidate.scenario == "other"


@pytest.mark.parametrize("role", ["baseline_control", "anchor_control", "reference", "a", "b"])
def test_controls_and_other_builds_are_not_the_build_under_test(run: RunFolder, role: str) -> None:
    measure(run, value=50.0, role=role)
    assert refused(run).found == "no measurements"
    measure(run, value=100.0)
    judge(run)
    assert recorded(run).entries["c4"].values(SPEED) == [100.0]


def test_a_run_of_two_builds_becomes_none(suite_root: Path) -> None:
    run = begun(suite_root, "ab", ab=["A=old", "B=new"])
    measure(run)
    judge(run)
    run.close()
    error = refused(run)
    assert "compared two builds" in error.problem
    assert error.found == "A=old B=new"


def test_a_machine_that_was_slower_as_a_whole_gives_no_level(run: RunFolder) -> None:
    measure(run)
    shifted = outcome(verdict=Verdict.PASS, judgements=(judgement(mark="HOST_SHIFT"),))
    run.record(record("verdict", {"test": "c4", **fields_of(shifted)}))
    assert "HOST_SHIFT" in str(refused(run).found)


def select(run: RunFolder, tests: Mapping[str, str]) -> None:
    """Write down which tests the run has: name of each → its scenario."""
    subjects = {
        name: {"name": name, "scenario": scenario, "probe": "c1"}
        for name, scenario in tests.items()
    }
    run.record(record("selected", {"tests": sorted(tests), "subjects": subjects}))


def test_a_run_that_did_not_finish(run: RunFolder) -> None:
    select(run, {"small-serve-c4": "small-serve", "small-serve-c8": "small-serve"})
    measure(run)
    judge(run)
    assert "did not finish: no verdict for small-serve-c8" in str(refused(run).found)


def test_an_unfinished_test_of_a_longer_name_holds_up_no_other_scenario(run: RunFolder) -> None:
    other = "t.py::test_serving[small-serve-no-padding-c8]"
    select(run, {"small-serve-c4": "small-serve", other: "small-serve-no-padding"})
    measure(run)
    judge(run)
    recorded(run)


def test_a_disturbed_start_is_used_by_nobody(run: RunFolder) -> None:
    measure(run, value=50.0, disturbed=["steal 20 %"])
    judge(run)
    assert refused(run).found == "small-serve: c4: disturbed: steal 20 %"
    measure(run, value=100.0, disturbed=[], seconds=12.5, start=2)
    told = "small-serve-c4: a start is not used, disturbed: steal 20 %"
    (one,) = recorded(run, left_out=(told,)).entries["c4"].runs
    assert (one.metrics, one.seconds, one.start) == ({SPEED: 100.0}, 12.5, 2)


def test_a_waived_loss_is_still_a_loss(run: RunFolder) -> None:
    measure(run)
    lost = judgement(waiver=applied("Ada, until 2026-12-01"))
    waived = outcome(verdict=Verdict.PASS, judgements=(lost,))
    run.record(record("verdict", {"test": "c4", **fields_of(waived)}))
    assert recorded(run).verdicts == {"c4": "REGRESSION"}


def test_a_claim_is_not_a_probe(run: RunFolder) -> None:
    measure(run)
    judge(run)
    judge(run, "fp8-costs", Verdict.INCONCLUSIVE, name="fp8-costs")
    assert recorded(run).verdicts == {"c4": "NO_BASELINE"}


def test_a_sweep_and_a_first_answer_have_no_numbers_of_their_own(run: RunFolder) -> None:
    measure(run)
    measure(run, "smoke", metrics={})
    judge(run)
    judge(run, "smoke", Verdict.PASS)
    judge(run, "sweep", Verdict.PASS)
    assert list(recorded(run).entries) == ["c4"]
    judge(run, "sweep", Verdict.INCONCLUSIVE)
    with pytest.raises(InputError, match="the verdict of sweep is INCONCLUSIVE"):
        record_candidates([run.path])


def test_no_run(suite_root: Path) -> None:
    with pytest.raises(InputError, match="no such run"):
        record_candidates([suite_root])


def test_what_a_machine_compares_with_itself_stays_on_the_machine(run: RunFolder) -> None:
    measure(run, "c4")
    measure(run, "c1", machine_bound=True)
    judge(run, "c4")
    judge(run, "c1", Verdict.PASS)
    told = "small-serve-c1: compared with the machine itself, so its numbers stay here"
    candidate = recorded(run, left_out=(told,))
    assert list(candidate.entries) == ["c4"]
    assert candidate.verdicts == {"c4": "NO_BASELINE", "c1": "PASS"}


class TestSeveralRuns:
    def test_their_fresh_starts_are_pooled(self, run: RunFolder, second: RunFolder) -> None:
        measure(second, value=103.0, started="2026-11-02T08:00:00+00:00")
        for value in (100.0, 101.0):
            measure(run, value=value, started=f"2026-11-01T08:00:0{value - 100:.0f}+00:00")
        judge(run, verdict=Verdict.PASS)
        judge(second, verdict=Verdict.REGRESSION)
        candidate = recorded(second, run)
        assert candidate.entries["c4"].values(SPEED) == [100.0, 101.0, 103.0]
        assert [one.run for one in candidate.entries["c4"].runs] == ["one", "one", "two"]
        assert candidate.reason == "recorded from runs one, two"
        assert candidate.verdicts == {"c4": "REGRESSION"}, "a loss in one is carried"

    def test_starts_of_one_probe_on_unlike_machines_are_refused(
        self, run: RunFolder, second: RunFolder
    ) -> None:
        measure(run)
        measure(second, value=99.0, fingerprint={"cpu": "Xeon", "driver": "570.1"})
        judge(run)
        judge(second)
        error = refused(run, second)
        assert "different machines for starts of one probe" in error.problem
        assert "small-serve-c4, run two" in error.problem
        told = "cpu: measured Xeon, baseline Grace; driver: measured 570.1, baseline none"
        assert error.found == told

    def test_probes_of_unlike_machines_are_refused(self, run: RunFolder, second: RunFolder) -> None:
        measure(run, "c1")
        judge(run, "c1")
        measure(second, "c4", fingerprint={"cpu": "Xeon"})
        judge(second, "c4")
        measure(second, "sums", fingerprint={"content": "a"}, metrics={SUMS: 0.5})
        judge(second, "sums")
        error = refused(run, second)
        assert "probes of one scenario" in error.problem
        assert error.found == "cpu: Grace (c1), Xeon (c4)"

    def test_of_two_commits_are_refused(self, run: RunFolder, second: RunFolder) -> None:
        measure(run)
        measure(second, engine={"name": "llama.cpp", "version": "1.3.0", "commit": "other"})
        judge(run)
        judge(second)
        error = refused(run, second)
        assert "more than one engine build" in error.problem
        assert error.found == "llama.cpp 1.3.0 (abc123), llama.cpp 1.3.0 (other)"

    def test_the_same_one_twice_and_a_copy_are_refused(
        self, run: RunFolder, second: RunFolder
    ) -> None:
        for folder in (run, second):
            measure(folder, started="2026-11-01T08:00:00+00:00")
            judge(folder)
        with pytest.raises(InputError, match="the same run is named twice"):
            record_candidates([run.path, run.path / ".." / "one"])
        error = refused(run, second)
        assert "is in two runs, and would count twice" in error.problem
        assert error.found == f"{run.path}, {second.path}"


class TestEditedRuns:
    """A run that was edited is never a candidate, nor is a rehearsal that no longer says so."""

    def test_a_word_changed_in_the_records(self, run: RunFolder) -> None:
        measure(run, synthetic=True)
        judge(run, verdict=Verdict.PASS)
        records = run.path / "records.jsonl"
        records.write_text(records.read_text().replace('"synthetic": true', '"synthetic": false'))
        assert "records.jsonl:1: the checksum is not that" in str(refused(run))

    @pytest.mark.parametrize(
        "facts",
        [
            {"arguments": ["pytest", "--rehearse"]},
            {"arguments": ["pytest", "--rehearse-fault=oom"]},
            {"rehearse_fault": "oom"},
            {"synthetic": None},
            {"synthetic": "no"},
        ],
    )
    def test_facts_that_do_not_agree_on_who_made_the_numbers(
        self, suite_root: Path, facts: dict[str, object]
    ) -> None:
        run = begun(suite_root, "two", **facts)
        measure(run)
        judge(run, verdict=Verdict.PASS)
        run.close()
        assert "does not agree with itself" in refused(run).problem

    def test_the_folder_of_the_stand_ins_tells_too(self, run: RunFolder) -> None:
        measure(run)
        judge(run, verdict=Verdict.PASS)
        (run.path / "rehearsal").mkdir()
        assert "beside the folder rehearsal" in str(refused(run).found)
