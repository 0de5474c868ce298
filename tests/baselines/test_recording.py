"""What of runs becomes a candidate, which grows session by session, and what never does."""

from pathlib import Path
from typing import Any

import pytest
from building import SUMS, applied, judgement
from life import METRIC, begun, judge, measure
from plain_records import record
from refusals import refused
from tables import each

from perfgate.baselines import MOST_RUNS, Baseline, candidate_store, read, suite_store
from perfgate.baselines.baseline import BuildSource
from perfgate.baselines.recording import record_candidates, record_session
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild
from perfgate.runs.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("suite_root")
Fields = dict[str, Any]


def filled(folder: Path, starts: Any, ends: Any, *others: Any, **facts: object) -> RunFolder:
    """A finished run of these measurements and verdicts."""
    run = begun(folder, **facts)
    for start in starts:
        measure(run, **start)
    for end in ends:
        judge(run, **end)
    for one in others:
        run.record(one)
    run.close()
    return run


def recorded(*runs: RunFolder, left_out: tuple[str, ...] = ()) -> Baseline:
    """The only candidate of the runs."""
    (path,), told = record_candidates([run.path for run in runs])
    assert tuple(told) == left_out
    return read(path)


def no_candidate(*runs: RunFolder) -> InputError:
    """Why the runs give no candidate at all."""
    error = refused(record_candidates, [run.path for run in runs])
    assert candidate_store().list() == []
    return error


def test_a_run_becomes_a_candidate(tmp_path) -> None:
    answers = {SUMS: {"q1": True, "q2": False}}
    image, programs = "registry.example/trtllm:1.3.0", {"PERFGATE_PROGRAM_AIPERF": "/a"}
    starts = []
    for day, digest, value in (("02", "sha256:new", 102.0), ("01", "sha256:old", 100.0)):
        source = {"image": image, "digest": digest, "programs": programs}
        started = f"2026-11-{day}T01:00:00+00:00"
        starts.append({"value": value, "started": started, "source": source})
    of_task = {"probe": "sums", "metrics": {SUMS: 0.5}, "answers": answers}
    candidate = recorded(filled(tmp_path / "one", [*starts, of_task], [{}, {"probe": "sums"}]))
    assert candidate.file == candidate_store().folder / "cpu" / "small-serve" / "abc123.json"
    assert candidate.engine == EngineBuild("llama.cpp", "1.3.0", "abc123")
    assert (candidate.accepted_by, candidate.reason) == ("nobody yet", "recorded from run one")
    assert candidate.entries["c4"].values(METRIC) == [100.0, 102.0]
    assert candidate.entries["sums"].runs[0].answers == answers
    # As its last start was.
    assert candidate.source == BuildSource(image=image, digest="sha256:new", programs=programs)
    assert suite_store().list() == []


XEON = {"cpu": "Xeon", "driver": "570.1"}
OTHER = {"name": "llama.cpp", "version": "1.3.0", "commit": "other"}
INJECTED = "c4: its settings were injected, or its numbers are synthetic"
ONE, PASSED = [{}], [{"verdict": "PASS"}]
MIXED = "measured Xeon, baseline Grace; driver: measured 570.1, baseline none"
ROLES = ("baseline_control", "anchor_control", "reference", "a", "b")
OF_A_REHEARSAL: tuple[Fields, ...] = (
    {"arguments": ["pytest", "--rehearse"]},
    {"arguments": ["pytest", "--rehearse-fault=oom"]},
    {"rehearse_fault": "oom"},
    {"synthetic": None},
    {"synthetic": "no"},
)
SCORED = {"probe": "sums", "fingerprint": {"content": "a"}, "metrics": {SUMS: 0.5}}
SHIFTED = (judgement(mark="HOST_SHIFT"),)


@each(
    "starts, ends, facts, why",
    [
        (ONE, [{"verdict": "INCONCLUSIVE"}], {}, "the verdict of c4 is INCONCLUSIVE"),
        (ONE, [], {}, "c4 has no verdict"),
        (ONE, [{}, {"probe": "sweep", "verdict": "ERROR"}], {}, "the verdict of sweep is ERROR"),
        ([{"injected": ["a=1"]}], PASSED, {}, INJECTED),
        ([{"synthetic": True}], PASSED, {}, INJECTED),
        ([{"disturbed": ["steal 20 %"]}], ONE, {}, "small-serve: c4: disturbed: steal 20 %"),
        (ONE, [{"verdict": "PASS", "judgements": SHIFTED}], {}, "HOST_SHIFT"),
        *(([{"role": role}], [], {}, "found: no measurements") for role in ROLES),
        (ONE, ONE, {"ab": ["A=old", "B=new"]}, "compared two builds"),
        ([{}, {"engine": OTHER}], ONE, {}, "llama.cpp 1.3.0 (abc123), llama.cpp 1.3.0 (other)"),
        ([{}, {"fingerprint": XEON}], ONE, {}, f"c4, run one\n  found: cpu: {MIXED}"),
        ([{"probe": "c1"}, {"fingerprint": XEON}, SCORED],
         [{"probe": "c1"}, {}, {"probe": "sums"}], {},
         "probes of one scenario: small-serve\n  found: cpu: Grace (c1), Xeon (c4)"),
        *((ONE, PASSED, facts, "does not agree with itself") for facts in OF_A_REHEARSAL),
    ],
)  # fmt: skip
def test_what_never_becomes_a_candidate(starts, ends, facts, why, tmp_path) -> None:
    assert why in str(no_candidate(filled(tmp_path / "one", starts, ends, **facts)))


WAIVED = {"verdict": "PASS", "judgements": (judgement(waiver=applied("Ada, until 2026-12-01")),)}
CLAIM = {"probe": "fp8-costs", "verdict": "INCONCLUSIVE", "name": "fp8-costs"}
FIRST_ANSWER, SWEEP = {"probe": "smoke", "metrics": {}}, {"probe": "sweep", "verdict": "PASS"}
SMOKE, C1 = {"probe": "smoke", "verdict": "PASS"}, {"probe": "c1", "verdict": "PASS"}
NEW = {"c4": "NO_BASELINE"}
UNUSED = ({"value": 50.0, "role": "reference"}, {"value": 50.0, "disturbed": ["hot"]})
OWN = "small-serve-c1: compared with the machine itself, so its numbers stay here"


@each(
    "starts, ends, verdicts, left_out",
    [
        (ONE, PASSED, {"c4": "PASS"}, ()),
        (ONE, [{"verdict": "IMPROVEMENT"}], {"c4": "IMPROVEMENT"}, ()),
        (ONE, [{"verdict": "NOT_COMPARABLE"}], {"c4": "NOT_COMPARABLE"}, ()),
        # A waived loss is still a loss, and a claim is no probe.
        (ONE, [WAIVED, CLAIM], {"c4": "REGRESSION"}, ()),
        # A sweep and a first answer have no numbers of their own.
        ([{}, FIRST_ANSWER], [{}, SMOKE, SWEEP], {**NEW, "smoke": "PASS", "sweep": "PASS"}, ()),
        ([*UNUSED, {}], ONE, NEW, ("small-serve-c4: a start is not used, disturbed: hot",)),
        ([{}, {"probe": "c1", "machine_bound": True}], [{}, C1], {**NEW, "c1": "PASS"}, (OWN,)),
    ],
)
def test_what_becomes_one_and_what_does_not(starts, ends, verdicts, left_out, tmp_path) -> None:
    run = filled(tmp_path / "one", starts, ends)
    (path,), told = record_candidates([run.path], fresh=True)
    candidate = read(path)
    assert (candidate.verdicts, tuple(told)) == (verdicts, left_out)
    assert list(candidate.entries) == ["c4"]
    assert candidate.entries["c4"].values(METRIC) == [100.0]


def test_one_failed_probe_leaves_the_whole_scenario_out(tmp_path) -> None:
    told = {"name": "small-serve-c32", "scenario": "small-serve", "probe": "c32"}
    starts = [{"probe": "c1"}, {"probe": "c4"}, {"probe": "c8"}, {"scenario": "other"}]
    open_, failed = {"verdict": "INCONCLUSIVE"}, {"probe": "c16", "verdict": "ERROR"}
    ends = [{"probe": "c1"}, open_, failed, {"scenario": "other", "verdict": "PASS"}]
    skipped = record("skipped", {"test": "c32", **told, "reason": "needs 1×B200, found none"})
    run = filled(tmp_path / "one", starts, ends, skipped)
    why = (
        "c32 was skipped: needs 1×B200, found none",
        "c8 has no verdict",
        "the verdict of c16 is ERROR",
        "the verdict of c4 is INCONCLUSIVE",
    )
    candidate = recorded(run, left_out=tuple(f"small-serve: {one}" for one in why))
    assert candidate.scenario == "other"


def selected(scenario: str, test: str = "small-serve-c4") -> Any:
    """The record of the only test that a run has."""
    subjects = {test: {"name": test, "scenario": scenario, "probe": "c1"}}
    return record("selected", {"tests": [test], "subjects": subjects})


def test_a_run_that_did_not_finish_holds_up_its_own_scenario_alone(tmp_path) -> None:
    other = selected("small-serve-no-padding", "t.py::test_serving[small-serve-no-padding-c8]")
    recorded(filled(tmp_path / "one", ONE, ONE, selected("small-serve"), other))
    run = filled(tmp_path / "two", ONE, ONE, selected("small-serve", "small-serve-c8"))
    why = "did not finish: no verdict for small-serve-c8"
    refused(record_candidates, [run.path], match=why)


def test_what_is_no_run_or_was_edited(tmp_path) -> None:
    refused(record_candidates, [tmp_path], match="no such run")
    run = filled(tmp_path / "one", [{"synthetic": True}], PASSED)
    (run.path / "rehearsal").mkdir()
    assert "beside the folder rehearsal" in str(no_candidate(run).found)
    records = run.path / "records.jsonl"
    records.write_text(records.read_text().replace('"synthetic": true', '"synthetic": false'))
    (run.path / "rehearsal").rmdir()
    assert "records.jsonl:1: the checksum is not that" in str(no_candidate(run))


def test_fresh_starts_of_several_runs_are_pooled_but_none_twice(tmp_path) -> None:
    at = "2026-11-0{}T08:00:00+00:00".format
    one = filled(tmp_path / "one", [{"started": at(1)}, {"value": 101.0, "started": at(2)}], [{}])
    lost = [{"verdict": "REGRESSION"}]
    two = filled(tmp_path / "two", [{"value": 103.0, "started": at(3)}], lost)
    copy = filled(tmp_path / "copy", [{"started": at(1)}], [{}])
    twice = [one.path, one.path / ".." / "one"]
    refused(record_candidates, twice, match="the same run is named twice")
    error = no_candidate(one, copy)
    assert "is in two runs, and would count twice" in error.problem
    assert error.found == f"{one.path}, {copy.path}"
    candidate = recorded(two, one)
    assert candidate.entries["c4"].values(METRIC) == [100.0, 101.0, 103.0]
    assert [start.run for start in candidate.entries["c4"].runs] == ["one", "one", "two"]
    assert candidate.reason == "recorded from runs one, two"
    assert candidate.verdicts == {"c4": "REGRESSION"}, "a loss in one is carried"
    refused(record_session, copy.path, match="would count twice")


class Sessions:
    """Runs of one build, each on a day of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.day = folder, 0

    def made(self, name: str = "", verdict: str = "NO_BASELINE", **changes: Any) -> RunFolder:
        """A session of one start of one probe, whose value is 100 and the day."""
        self.day += 1
        began = f"2026-11-{self.day:02d}T02:00:00+00:00"
        start = {"value": 100.0 + self.day, "started": began.replace("02:00", "02:10"), **changes}
        end = {"probe": changes.get("probe", "c4"), "verdict": verdict}
        folder = self.folder / str(self.day) / (name or f"night-{self.day}")
        return filled(folder, [start], [end], started=began)

    def record(self, *runs: RunFolder) -> Baseline:
        """The candidate after these, or one more."""
        for run in runs or [self.made()]:
            (path,), left_out = record_session(run.path)
            assert left_out == []
        return read(path)


@pytest.fixture
def nights(suite_root: Path) -> Sessions:
    return Sessions(suite_root / "runs")


def test_sessions_of_one_build_add_up_by_themselves(nights) -> None:
    assert [nights.record().sessions for _ in range(3)] == [1, 2, 3]
    again = nights.made()
    for number in (2, 3):  # three starts of one session are one session
        measure(again, value=104.0, start=number, started=f"2026-11-04T0{number + 1}:00:00+00:00")
    for _ in range(2):  # a run that is recorded again counts once
        candidate = nights.record(again)
        assert candidate.sessions == 4
        values = candidate.entries["c4"].values(METRIC)
        assert values == [101.0, 102.0, 103.0, 104.0, 104.0, 104.0]
    assert candidate.reason == "recorded from runs night-1, night-2, night-3, night-4"
    # The probe with fewest counts.
    both = nights.made()
    measure(both, "c8", started="2026-11-05T03:00:00+00:00")
    judge(both, "c8")
    candidate = nights.record(both)
    assert [len(candidate.entries[label].runs) for label in ("c4", "c8")] == [7, 1]
    assert candidate.sessions == 1


def test_a_folder_of_the_same_name_is_another_session(nights) -> None:
    first, second = nights.made("nightly"), nights.made("nightly")
    assert nights.record(first, second, second, first).sessions == 2
    (path,), _ = record_candidates([second.path], fresh=True)
    assert read(path).entries["c4"].values(METRIC) == [102.0]


@each(
    "changes, fact",
    [
        ({"fingerprint": {"cpu": "Xeon"}}, "cpu: measured Xeon, candidate Grace"),
        ({"fingerprint": {"cpu": "Grace", "content": "b"}}, "content: measured b, candidate none"),
        ({"probe": "c8", "fingerprint": {"cpu": "Xeon"}}, "cpu: Grace (c4), Xeon (c8)"),
        ({"engine": {"name": "llama.cpp", "version": "1.4", "commit": "abc123"}}, "engine: "),
    ],
)
def test_what_is_unlike_begins_a_candidate_and_says_so(changes, fact, tmp_path) -> None:
    nights = Sessions(tmp_path)
    record_candidates([nights.made().path], fresh=True)
    nights.record()
    (path,), (told,) = record_session(nights.made(**changes).path)
    assert read(path).sessions == 1
    assert "2 sessions recorded before no longer count" in told
    assert fact in told


def test_the_newest_thirty_starts_stay(nights) -> None:
    for number in range(1, 4):
        run = nights.made()
        for start in range(2, 13):
            measure(run, start=start, started=f"2026-11-{number:02d}T03:{start:02d}:00+00:00")
        runs = nights.record(run).entries["c4"].runs
    assert len(runs) == MOST_RUNS
    assert (runs[0].run, runs[-1].run) == ("night-1", "night-3")
    assert [run.started for run in runs] == sorted(run.started for run in runs)


def test_a_session_that_failed_spoils_nothing(nights) -> None:
    file = nights.record().file
    before = file.read_bytes()
    for verdict in ("INCONCLUSIVE", "ERROR", "REGRESSION"):
        failed = nights.made(verdict=verdict)
        left_out = [f"small-serve: the verdict of c4 is {verdict}"]
        assert record_session(failed.path) == ([], left_out)
    assert file.read_bytes() == before
    # A loss is carried by who names the run: a person may accept it, with a reason.
    candidate = recorded(failed)
    assert (candidate.verdicts, candidate.sessions) == ({"c4": "REGRESSION"}, 2)


def test_one_scenario_keeps_no_other_from_being_recorded(tmp_path) -> None:
    mixed = [{"scenario": "mixed", "fingerprint": {"cpu": cpu}} for cpu in ("Grace", "Xeon")]
    run = filled(tmp_path / "one", [{}, *mixed], [{}, {"scenario": "mixed"}])
    (path,), (told,) = record_session(run.path)
    assert path.parent.name == "small-serve"
    assert told.startswith("mixed: different machines for starts of one probe")


def test_an_altered_candidate_is_not_added_to(nights) -> None:
    file = nights.record().file
    file.write_text(file.read_text().replace("101.0", "201.0"))
    error = refused(nights.record, match="edited by hand")
    assert error.file == file
    assert "delete the candidate" in error.hint
