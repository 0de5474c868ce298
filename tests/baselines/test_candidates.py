"""A candidate grows session by session, and only by what is like it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_recording import judge, measure

from perfgate.baselines import MOST_RUNS, read
from perfgate.baselines.recording import record_candidates, record_session
from perfgate.core.errors import InputError
from perfgate.core.verdict import Verdict
from perfgate.runs.run_folder import RunFolder


class Sessions:
    """Runs of one build, each on a day of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._day = 0

    def made(self, name: str = "", value: float = 100.0, **changes: object) -> RunFolder:
        """A session of one start of one probe, not judged."""
        self._day += 1
        name = name or f"night-{self._day}"
        began = f"2026-11-{self._day:02d}T02:00:00+00:00"
        folder = self.folder / str(self._day) / name
        run = RunFolder.create(folder, {"started": began, "synthetic": False})
        started = began.replace("02:00", "02:10")
        measure(run, value=value + self._day, **{"started": started, **changes})
        judge(run, str(changes.get("probe", "c4")))
        run.close()
        return run


@pytest.fixture
def nights(suite_root: Path) -> Iterator[Sessions]:
    return Sessions(suite_root / "runs")


def ended(
    folder: Path,
    verdict: Verdict = Verdict.NO_BASELINE,
    started: str = "2026-11-09T02:00:00+00:00",
) -> RunFolder:
    run = RunFolder.create(folder, {"started": "x", "synthetic": False})
    measure(run, value=101.0, started=started)
    judge(run, verdict=verdict)
    run.close()
    return run


def record(run: RunFolder) -> tuple[list[Path], list[str]]:
    return record_session(run.path)


def test_sessions_of_one_build_add_up_by_themselves(nights: Sessions) -> None:
    for number in range(1, 5):
        (path,), left_out = record(nights.made())
        assert (read(path).sessions, left_out) == (number, [])
    candidate = read(path)
    assert candidate.entries["c4"].values("output_throughput") == [101.0, 102.0, 103.0, 104.0]
    assert candidate.reason == "recorded from runs night-1, night-2, night-3, night-4"
    assert candidate.accepted_by == "nobody yet"


def test_three_starts_of_one_session_are_one_session(nights: Sessions) -> None:
    run = nights.made()
    for number in (2, 3):
        measure(run, start=number, started=f"2026-11-01T0{number + 1}:00:00+00:00")
    (path,), _ = record(run)
    assert len(read(path).entries["c4"].runs) == 3
    assert read(path).sessions == 1


def test_a_run_that_is_recorded_again_counts_once(nights: Sessions) -> None:
    first, second = nights.made(), nights.made()
    for run in (first, second, first):
        (path,), _ = record(run)
    (path,), _ = record_candidates([first.path, second.path])
    assert read(path).sessions == 2


def test_a_folder_of_the_same_name_is_another_session(nights: Sessions) -> None:
    first, second = nights.made("nightly"), nights.made("nightly")
    for run in (first, second, second, first):
        (path,), _ = record(run)
    assert read(path).sessions == 2
    (path,), _ = record_candidates([second.path], anew=True)
    assert read(path).entries["c4"].values("output_throughput") == [102.0]


def test_the_probe_with_fewest_counts(nights: Sessions) -> None:
    record(nights.made())
    both = nights.made()
    measure(both, "c8", started="2026-11-02T03:00:00+00:00")
    judge(both, "c8")
    (path,), _ = record(both)
    candidate = read(path)
    assert [len(candidate.entries[label].runs) for label in ("c4", "c8")] == [2, 1]
    assert candidate.sessions == 1


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"fingerprint": {"cpu": "Xeon"}}, "cpu: measured Xeon, candidate Grace"),
        ({"fingerprint": {"cpu": "Grace", "content": "b"}}, "content: measured b, candidate none"),
        ({"probe": "c8", "fingerprint": {"cpu": "Xeon"}}, "cpu: Grace (c4), Xeon (c8)"),
        ({"engine": {"name": "llama.cpp", "version": "1.4", "commit": "abc123"}}, "engine: "),
    ],
)
def test_what_is_unlike_begins_a_candidate_and_says_so(
    nights: Sessions, changes: dict[str, object], fact: str
) -> None:
    record(nights.made())
    record(nights.made())
    (path,), left_out = record(nights.made(**changes))
    assert read(path).sessions == 1
    (told,) = left_out
    assert "2 sessions recorded before no longer count" in told
    assert fact in told


def test_the_newest_thirty_starts_stay(nights: Sessions) -> None:
    for number in range(1, 4):
        run = nights.made()
        for start in range(2, 13):
            measure(run, start=start, started=f"2026-11-{number:02d}T03:{start:02d}:00+00:00")
        (path,), _ = record(run)
    runs = read(path).entries["c4"].runs
    assert len(runs) == MOST_RUNS
    assert (runs[0].run, runs[-1].run) == ("night-1", "night-3")
    assert [run.started for run in runs] == sorted(run.started for run in runs)


def test_a_copy_of_a_run_does_not_count_twice(nights: Sessions) -> None:
    run = nights.made("one")
    record(run)
    copy = ended(run.path.parent / "copy", started="2026-11-01T02:10:00+00:00")
    with pytest.raises(InputError, match="would count twice"):
        record(copy)


@pytest.mark.parametrize("verdict", [Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.ERROR])
def test_a_session_that_failed_spoils_nothing(nights: Sessions, verdict: Verdict) -> None:
    (path,), _ = record(nights.made())
    before = path.read_bytes()
    failed = ended(nights.folder / "failed", verdict)
    paths, left_out = record(failed)
    assert (paths, left_out) == ([], [f"small-serve: the verdict of c4 is {verdict}"])
    assert path.read_bytes() == before


def test_a_loss_is_carried_by_who_names_the_run(nights: Sessions) -> None:
    """As before: a person may accept it, with a reason."""
    record(nights.made())
    slower = ended(nights.folder / "slower", Verdict.REGRESSION)
    (path,), _ = record_candidates([slower.path])
    assert (read(path).verdicts, read(path).sessions) == ({"c4": "REGRESSION"}, 2)


def test_one_scenario_keeps_no_other_from_being_recorded(nights: Sessions) -> None:
    run = nights.made()
    for cpu in ("Grace", "Xeon"):
        measure(run, scenario="mixed", fingerprint={"cpu": cpu})
    judge(run, scenario="mixed")
    (path,), (told,) = record(run)
    assert path.parent.name == "small-serve"
    assert told.startswith("mixed: different machines for starts of one probe")


def test_an_altered_candidate_is_not_added_to(nights: Sessions) -> None:
    (path,), _ = record(nights.made())
    path.write_text(path.read_text().replace("101.0", "201.0"))
    with pytest.raises(InputError, match="edited by hand") as caught:
        record(nights.made())
    assert caught.value.file == path
    assert "delete the candidate" in str(caught.value.hint)
