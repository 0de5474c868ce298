"""What of runs becomes a candidate, which grows session by session, and what never does."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from building import SUMS, applied, judgement
from life import METRIC, begun, judge, measure
from plain_records import record
from tables import each

from perfgate.baselines import MOST_RUNS, Baseline, candidate_store, read, suite_store
from perfgate.baselines.recording import record_candidates, record_session
from perfgate.core.errors import InputError
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.runs.run_folder import RunFolder

PASS, UNDECIDED = Verdict.PASS, Verdict.INCONCLUSIVE
XEON = {"cpu": "Xeon", "driver": "570.1"}
OTHER = {"name": "llama.cpp", "version": "1.3.0", "commit": "other"}
SHIFTED = (judgement(mark="HOST_SHIFT"),)
WAIVED = (judgement(waiver=applied("Ada, until 2026-12-01")),)
Fields = dict[str, Any]


@pytest.fixture
def run(suite_root: Path) -> Iterator[RunFolder]:
    folder = begun(suite_root / "runs" / "one")
    yield folder
    folder.close()


def filled(folder: Path, starts: list[Fields], ends: list[Fields], **facts: object) -> RunFolder:
    """A finished run of these measurements and verdicts."""
    run = begun(folder, **facts)
    for start in starts:
        measure(run, **start)
    for end in ends:
        judge(run, **end)
    run.close()
    return run


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
    image, programs = "registry.example/trtllm:1.3.0", {"PERFGATE_PROGRAM_AIPERF": "/a"}
    for day, digest, value in (("02", "sha256:new", 102.0), ("01", "sha256:old", 100.0)):
        told = {"image": image, "digest": digest, "programs": programs}
        measure(run, value=value, started=f"2026-11-{day}T01:00:00+00:00", source=told)
    measure(run, "sums", metrics={SUMS: 0.5}, answers=answers)
    for probe in ("c4", "sums"):
        judge(run, probe)
    candidate = recorded(run)
    assert candidate.file == candidate_store().folder / "cpu" / "small-serve" / "abc123.json"
    assert candidate.engine == EngineBuild("llama.cpp", "1.3.0", "abc123")
    assert (candidate.accepted_by, candidate.reason) == ("nobody yet", "recorded from run one")
    assert candidate.entries["c4"].values(METRIC) == [100.0, 102.0]
    assert candidate.entries["sums"].runs[0].answers == answers
    assert candidate.verdicts == {"c4": "NO_BASELINE", "sums": "NO_BASELINE"}
    # As its last start was.
    assert candidate.source == BuildSource(image=image, digest="sha256:new", programs=programs)
    assert suite_store().list() == []


INJECTED = "c4: its settings were injected, or its numbers are synthetic"
ONE, PASSED = [{}], [{"verdict": PASS}]
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


@each(
    "starts, ends, facts, why",
    [
        (ONE, [{"verdict": UNDECIDED}], {}, "the verdict of c4 is INCONCLUSIVE"),
        (ONE, [{"verdict": Verdict.ERROR}], {}, "the verdict of c4 is ERROR"),
        (ONE, [], {}, "c4 has no verdict"),
        (ONE, [{}, {"probe": "sweep", "verdict": UNDECIDED}], {}, "the verdict of sweep is INC"),
        ([{"injected": ["a=1"]}], PASSED, {}, INJECTED),
        ([{"synthetic": True}], PASSED, {}, INJECTED),
        ([{"disturbed": ["steal 20 %"]}], ONE, {}, "small-serve: c4: disturbed: steal 20 %"),
        (ONE, [{"verdict": PASS, "judgements": SHIFTED}], {}, "HOST_SHIFT"),
        *(([{"role": role}], [], {}, "found: no measurements") for role in ROLES),
        (ONE, ONE, {"ab": ["A=old", "B=new"]}, "compared two builds"),
        ([{}, {"engine": OTHER}], ONE, {}, "llama.cpp 1.3.0 (abc123), llama.cpp 1.3.0 (other)"),
        ([{}, {"fingerprint": XEON}], ONE, {}, f"c4, run one\n  found: cpu: {MIXED}"),
        (
            [{"probe": "c1"}, {"fingerprint": XEON}, SCORED],
            [{"probe": "c1"}, {}, {"probe": "sums"}],
            {},
            "probes of one scenario: small-serve\n  found: cpu: Grace (c1), Xeon (c4)",
        ),
        *((ONE, PASSED, facts, "does not agree with itself") for facts in OF_A_REHEARSAL),
    ],
)
def test_what_never_becomes_a_candidate(
    starts: list[Fields],
    ends: list[Fields],
    facts: Fields,
    why: str,
    suite_root: Path,
    tmp_path: Path,
) -> None:
    assert why in str(refused(filled(tmp_path / "one", starts, ends, **facts)))


WAIVED_LOSS = {"verdict": PASS, "judgements": WAIVED}
CLAIM = {"probe": "fp8-costs", "verdict": UNDECIDED, "name": "fp8-costs"}
FIRST_ANSWER, SWEEP = {"probe": "smoke", "metrics": {}}, {"probe": "sweep", "verdict": PASS}
SMOKE, C1 = {"probe": "smoke", "verdict": PASS}, {"probe": "c1", "verdict": PASS}
NEW = {"c4": "NO_BASELINE"}
UNUSED = ({"value": 50.0, "role": "reference"}, {"value": 50.0, "disturbed": ["hot"]})
OWN = "small-serve-c1: compared with the machine itself, so its numbers stay here"


@each(
    "starts, ends, verdicts, left_out",
    [
        (ONE, PASSED, {"c4": "PASS"}, ()),
        (ONE, [{"verdict": Verdict.IMPROVEMENT}], {"c4": "IMPROVEMENT"}, ()),
        (ONE, [{"verdict": Verdict.NOT_COMPARABLE}], {"c4": "NOT_COMPARABLE"}, ()),
        # A waived loss is still a loss, and a claim is no probe.
        (ONE, [WAIVED_LOSS, CLAIM], {"c4": "REGRESSION"}, ()),
        # A sweep and a first answer have no numbers of their own.
        ([{}, FIRST_ANSWER], [{}, SMOKE, SWEEP], {**NEW, "smoke": "PASS", "sweep": "PASS"}, ()),
        ([*UNUSED, {}], ONE, NEW, ("small-serve-c4: a start is not used, disturbed: hot",)),
        ([{}, {"probe": "c1", "machine_bound": True}], [{}, C1], {**NEW, "c1": "PASS"}, (OWN,)),
    ],
)
def test_what_becomes_one_and_what_is_left_out_of_it(
    starts: list[Fields],
    ends: list[Fields],
    verdicts: Fields,
    left_out: tuple[str, ...],
    suite_root: Path,
    tmp_path: Path,
) -> None:
    run = filled(tmp_path / "one", starts, ends)
    (path,), told = record_candidates([run.path], anew=True)
    candidate = read(path)
    assert (candidate.verdicts, tuple(told)) == (verdicts, left_out)
    assert list(candidate.entries) == ["c4"]
    assert candidate.entries["c4"].values(METRIC) == [100.0]


def test_one_failed_probe_leaves_the_whole_scenario_out(run: RunFolder) -> None:
    for probe in ("c1", "c4", "c8"):
        measure(run, probe)
    judge(run, "c1")
    judge(run, "c4", UNDECIDED)
    judge(run, "c16", Verdict.ERROR)
    told = {"name": "small-serve-c32", "scenario": "small-serve", "probe": "c32"}
    run.record(record("skipped", {"test": "c32", **told, "reason": "needs 1×B200, found none"}))
    measure(run, scenario="other")
    judge(run, verdict=PASS, scenario="other")
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


def select(run: RunFolder, tests: Mapping[str, str]) -> None:
    """Write down which tests the run has: name of each → its scenario."""
    subjects = {
        name: {"name": name, "scenario": scenario, "probe": "c1"}
        for name, scenario in tests.items()
    }
    run.record(record("selected", {"tests": sorted(tests), "subjects": subjects}))


def test_a_run_that_did_not_finish_holds_up_its_own_scenario_alone(run: RunFolder) -> None:
    other = "t.py::test_serving[small-serve-no-padding-c8]"  # a longer name
    select(run, {"small-serve-c4": "small-serve", other: "small-serve-no-padding"})
    measure(run)
    judge(run)
    recorded(run)
    select(run, {"small-serve-c8": "small-serve"})
    with pytest.raises(InputError, match="did not finish: no verdict for small-serve-c8"):
        record_candidates([run.path])


def test_what_is_no_run_or_was_edited(run: RunFolder, suite_root: Path) -> None:
    with pytest.raises(InputError, match="no such run"):
        record_candidates([suite_root])
    measure(run, synthetic=True)
    judge(run, verdict=PASS)
    (run.path / "rehearsal").mkdir()
    assert "beside the folder rehearsal" in str(refused(run).found)
    records = run.path / "records.jsonl"
    records.write_text(records.read_text().replace('"synthetic": true', '"synthetic": false'))
    (run.path / "rehearsal").rmdir()
    assert "records.jsonl:1: the checksum is not that" in str(refused(run))


def test_fresh_starts_of_several_runs_are_pooled_but_none_twice(
    suite_root: Path, tmp_path: Path
) -> None:
    at = "2026-11-0{}T08:00:00+00:00".format
    one = filled(tmp_path / "one", [{"started": at(1)}, {"value": 101.0, "started": at(2)}], [{}])
    lost = [{"verdict": Verdict.REGRESSION}]
    two = filled(tmp_path / "two", [{"value": 103.0, "started": at(3)}], lost)
    copy = filled(tmp_path / "copy", [{"started": at(1)}], [{}])
    with pytest.raises(InputError, match="the same run is named twice"):
        record_candidates([one.path, one.path / ".." / "one"])
    error = refused(one, copy)
    assert "is in two runs, and would count twice" in error.problem
    assert error.found == f"{one.path}, {copy.path}"
    candidate = recorded(two, one)
    assert candidate.entries["c4"].values(METRIC) == [100.0, 101.0, 103.0]
    assert [start.run for start in candidate.entries["c4"].runs] == ["one", "one", "two"]
    assert candidate.reason == "recorded from runs one, two"
    assert candidate.verdicts == {"c4": "REGRESSION"}, "a loss in one is carried"
    with pytest.raises(InputError, match="would count twice"):
        record_session(copy.path)


class Sessions:
    """Runs of one build, each on a day of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.day = 0

    def made(
        self, name: str = "", verdict: Verdict = Verdict.NO_BASELINE, **changes: Any
    ) -> RunFolder:
        """A session of one start of one probe, whose value is 100 and the day."""
        self.day += 1
        began = f"2026-11-{self.day:02d}T02:00:00+00:00"
        start = {"value": 100.0 + self.day, "started": began.replace("02:00", "02:10"), **changes}
        end = {"probe": changes.get("probe", "c4"), "verdict": verdict}
        folder = self.folder / str(self.day) / (name or f"night-{self.day}")
        return filled(folder, [start], [end], started=began)

    def record(self, *arguments: Any, **changes: Any) -> Baseline:
        """The candidate after one more."""
        (path,), left_out = record_session(self.made(*arguments, **changes).path)
        assert left_out == []
        return read(path)


@pytest.fixture
def nights(suite_root: Path) -> Sessions:
    return Sessions(suite_root / "runs")


def test_sessions_of_one_build_add_up_by_themselves(nights: Sessions) -> None:
    assert [nights.record().sessions for _ in range(3)] == [1, 2, 3]
    again = nights.made()
    for number in (2, 3):  # three starts of one session are one session
        measure(again, value=104.0, start=number, started=f"2026-11-04T0{number + 1}:00:00+00:00")
    for _ in range(2):  # a run that is recorded again counts once
        (path,), _ = record_session(again.path)
        candidate = read(path)
        assert candidate.sessions == 4
        values = candidate.entries["c4"].values(METRIC)
        assert values == [101.0, 102.0, 103.0, 104.0, 104.0, 104.0]
    assert candidate.reason == "recorded from runs night-1, night-2, night-3, night-4"
    assert candidate.accepted_by == "nobody yet"


def test_a_folder_of_the_same_name_is_another_session(nights: Sessions) -> None:
    first, second = nights.made("nightly"), nights.made("nightly")
    for run in (first, second, second, first):
        (path,), _ = record_session(run.path)
    assert read(path).sessions == 2
    (path,), _ = record_candidates([second.path], anew=True)
    assert read(path).entries["c4"].values(METRIC) == [102.0]


def test_the_probe_with_fewest_counts(nights: Sessions) -> None:
    nights.record()
    both = nights.made()
    measure(both, "c8", started="2026-11-02T03:00:00+00:00")
    judge(both, "c8")
    (path,), _ = record_session(both.path)
    candidate = read(path)
    assert [len(candidate.entries[label].runs) for label in ("c4", "c8")] == [2, 1]
    assert candidate.sessions == 1


@each(
    "changes, fact",
    [
        ({"fingerprint": {"cpu": "Xeon"}}, "cpu: measured Xeon, candidate Grace"),
        ({"fingerprint": {"cpu": "Grace", "content": "b"}}, "content: measured b, candidate none"),
        ({"probe": "c8", "fingerprint": {"cpu": "Xeon"}}, "cpu: Grace (c4), Xeon (c8)"),
        ({"engine": {"name": "llama.cpp", "version": "1.4", "commit": "abc123"}}, "engine: "),
    ],
)
def test_what_is_unlike_begins_a_candidate_and_says_so(
    changes: Fields, fact: str, suite_root: Path, tmp_path: Path
) -> None:
    nights = Sessions(tmp_path)
    record_candidates([nights.made().path], anew=True)
    nights.record()
    (path,), (told,) = record_session(nights.made(**changes).path)
    assert read(path).sessions == 1
    assert "2 sessions recorded before no longer count" in told
    assert fact in told


def test_the_newest_thirty_starts_stay(nights: Sessions) -> None:
    for number in range(1, 4):
        run = nights.made()
        for start in range(2, 13):
            measure(run, start=start, started=f"2026-11-{number:02d}T03:{start:02d}:00+00:00")
        (path,), _ = record_session(run.path)
    runs = read(path).entries["c4"].runs
    assert len(runs) == MOST_RUNS
    assert (runs[0].run, runs[-1].run) == ("night-1", "night-3")
    assert [run.started for run in runs] == sorted(run.started for run in runs)


def test_a_session_that_failed_spoils_nothing(nights: Sessions) -> None:
    file = nights.record().file
    assert file is not None
    before = file.read_bytes()
    for verdict in (UNDECIDED, Verdict.ERROR, Verdict.REGRESSION):
        failed = nights.made(verdict=verdict)
        left_out = [f"small-serve: the verdict of c4 is {verdict}"]
        assert record_session(failed.path) == ([], left_out)
    assert file.read_bytes() == before
    # A loss is carried by who names the run: a person may accept it, with a reason.
    candidate = recorded(failed)
    assert (candidate.verdicts, candidate.sessions) == ({"c4": "REGRESSION"}, 2)


def test_one_scenario_keeps_no_other_from_being_recorded(nights: Sessions) -> None:
    run = nights.made()
    for cpu in ("Grace", "Xeon"):
        measure(run, scenario="mixed", fingerprint={"cpu": cpu})
    judge(run, scenario="mixed")
    (path,), (told,) = record_session(run.path)
    assert path.parent.name == "small-serve"
    assert told.startswith("mixed: different machines for starts of one probe")


def test_an_altered_candidate_is_not_added_to(nights: Sessions) -> None:
    file = nights.record().file
    assert file is not None
    file.write_text(file.read_text().replace("101.0", "201.0"))
    with pytest.raises(InputError, match="edited by hand") as caught:
        nights.record()
    assert caught.value.file == file
    assert "delete the candidate" in str(caught.value.hint)
