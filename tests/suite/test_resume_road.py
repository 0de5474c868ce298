"""Resuming on the road: sessions killed at different moments, gone on with in the same folder."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import forked
import psutil
import pytest
from registered_standins import registered_standins
from sessions import untraced
from test_road import (
    PLUGINS,
    STANDINS,
    Finished,
    Suite,
    _wait_for,
    _wait_until,
    copied,
    make_suite,
    suite,
)

from perfgate.gate.verdict import Verdict
from perfgate.release.recomputation import recompute_run
from perfgate.runs.records import RunFolder
from perfgate.scenarios.files import load_scenarios

__all__ = ["suite"]

pytestmark = pytest.mark.slow

ACCURACY = "perf_tests/test_accuracy.py"
FIRST, SECOND = "a-first", "b-second"
BOTH = {FIRST, SECOND}


@pytest.fixture
def two(suite: Suite) -> Suite:
    """A checkout of two scenarios; of each, one accuracy task on one start is run."""
    return with_two_scenarios(suite)


def with_two_scenarios(suite: Suite) -> Suite:
    text = (STANDINS / "standin.yaml").read_text()
    head, _, block = text.partition("  - id: standin-serve\n")
    (suite.folder / "scenarios" / "standin.yaml").write_text(
        head + "".join(f"  - id: {name}\n{block}" for name in (FIRST, SECOND))
    )
    return suite


class Road:
    """Sessions in one run folder, one after the other."""

    def __init__(self, checkout: Suite) -> None:
        self.checkout = checkout
        self.folder = checkout.folder / "run"

    def begin(self, *options: str, hangs: str = "") -> subprocess.Popen[str]:
        """A first session; on its start of scenario `hangs` the client hangs for ever."""
        return self._session("--run-dir", str(self.folder), *options, hangs=hangs)

    def share_cpu(self) -> None:
        """Have scenarios without a GPU run side by side from now on."""
        (self.checkout.folder / "site.yaml").write_text("schema_version: 1\nshare_cpu: true\n")

    def resume(self, *options: str, hangs: str = "") -> subprocess.Popen[str]:
        return self._session(f"--resume={self.folder}", *options, hangs=hangs)

    def finish(self, *options: str) -> Finished:
        return self.end(self.resume(*options))

    def begin_here(self, *options: str) -> Finished:
        """A first session, in this process."""
        return self._here("--run-dir", *options)

    def finish_here(self, *options: str) -> Finished:
        """A session that goes on with the run, in this process."""
        return self._here("--resume", *options)

    def _here(self, where: str, *options: str) -> Finished:
        words = self._words(f"{where}={self.folder}", *options)
        done = forked.session(words, self.checkout.folder, untraced(self.checkout.environment))
        return Finished(*done, self.folder)

    def end(self, session: subprocess.Popen[str]) -> Finished:
        output, _ = session.communicate(timeout=120)
        return Finished(session.returncode, output, self.folder)

    def _words(self, *options: str) -> list[str]:
        words = options if any("perf_tests" in one for one in options) else (*options, ACCURACY)
        if "--gate" not in options:
            words = ("--record", *words)  # the accuracy tasks have no baseline to be judged by
        return [*PLUGINS, "-q", *words]

    def _session(self, *options: str, hangs: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *self._words(*options)],
            cwd=self.checkout.folder,
            env={**untraced(self.checkout.environment), "PERFGATE_STANDIN_HANGS": hangs},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill_in(self, session: subprocess.Popen[str], scenario: str) -> None:
        """Kill the session once the client of the scenario's first start is at work."""
        try:
            _wait_for(self.folder / scenario / "start-1-new" / "sums" / "evaluator.out")
        finally:
            session.send_signal(signal.SIGKILL)
            session.communicate()

    def records(self, kind: str) -> list[dict[str, object]]:
        """The records that stand."""
        return RunFolder(self.folder).records(kind)

    def starts(self) -> int:
        """Servers started in this checkout so far."""
        path = self.checkout.folder / "starts"
        return int(path.read_text()) if path.exists() else 0

    def require_one_record_a_group(self, *groups: str) -> None:
        assert sorted(str(line["scenario"]) for line in self.records("group")) == sorted(groups)


@pytest.fixture
def road(two: Suite) -> Road:
    return Road(two)


@dataclass(frozen=True)
class KilledAndResumed:
    """A run that was killed in its second group, and what resuming it did."""

    road: Road
    groups_before: list[str]
    starts: int
    done: Finished


@pytest.fixture(scope="module")
def killed_and_resumed(tmp_path_factory: pytest.TempPathFactory) -> KilledAndResumed:
    road = Road(with_two_scenarios(make_suite(tmp_path_factory.mktemp("killed"))))
    road.kill_in(road.begin(hangs=SECOND), SECOND)
    groups = [str(line["scenario"]) for line in road.records("group")]
    before = road.starts()
    done = road.finish_here()
    return KilledAndResumed(road, groups, road.starts() - before, done)


@pytest.fixture(scope="module")
def once_finished(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """What `finished_road` copies."""
    road = Road(with_two_scenarios(make_suite(tmp_path_factory.mktemp("finished"))))
    done = road.begin_here("--gate")
    assert done.status == 12, done.output
    return road.checkout


@pytest.fixture
def finished_road(once_finished: Suite, tmp_path: Path) -> Road:
    """A run that has come to its end, whole."""
    return Road(copied(once_finished, tmp_path))


def test_a_run_killed_in_a_group_goes_on_with_that_group_alone(
    killed_and_resumed: KilledAndResumed,
) -> None:
    road, done = killed_and_resumed.road, killed_and_resumed.done
    assert killed_and_resumed.groups_before == [FIRST]
    assert done.status == 0, done.output
    assert killed_and_resumed.starts == 1
    road.require_one_record_a_group(FIRST, SECOND)
    assert len(road.records("verdict")) == 2
    assert len(road.records("measurement")) == 2
    (resumed,) = road.records("resumed")
    assert (resumed["repeats"], resumed["groups"]) == ([SECOND], [FIRST])
    assert (road.folder / f"{SECOND}.broken-1" / "start-1-new").is_dir()
    assert not (road.folder / f"{FIRST}.broken-1").exists()
    summary = (road.folder / "summary.md").read_text()
    assert "1 group kept, 1 measured anew" in summary
    assert "**Exit status 0**" in summary
    assert road.checkout.wait_until_empty() == []


def test_the_verdicts_of_a_run_gone_on_with_are_computed_anew(
    killed_and_resumed: KilledAndResumed,
) -> None:
    road = killed_and_resumed.road
    with registered_standins():
        found = recompute_run(
            road.folder, load_scenarios(road.checkout.folder / "scenarios" / "standin.yaml")
        )
    assert {one.test: one.verdict for one in found} == {
        f"{name}-sums": Verdict.NO_BASELINE for name in BOTH
    }
    assert [told for one in found for told in one.differences] == []


def test_a_finished_run_is_found_by_its_name_replayed_and_ends_the_same(
    finished_road: Road,
) -> None:
    road = finished_road
    runs = road.checkout.folder / "runs"
    runs.mkdir()
    road.folder = road.folder.rename(runs / "last-night")
    raw = len((road.folder / "records.jsonl").read_text().splitlines())
    starts = road.starts()
    words = [*PLUGINS, "-q", "--gate", "--resume", "last-night", ACCURACY]
    folder, environment = road.checkout.folder, untraced(road.checkout.environment)
    status, output = forked.session(words, folder, environment)
    assert status == 12, output
    assert "last-night" in output
    assert "2 skipped" in output
    assert road.starts() == starts
    lines = (road.folder / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["record"] for line in lines[raw:]] == ["resumed", "ended"]
    road.require_one_record_a_group(FIRST, SECOND)


def test_a_failure_is_replayed_with_its_text_and_what_broke_off_twice_is_moved_aside_twice(
    road: Road,
) -> None:
    road.checkout.edit(lambda text: text.replace("silence_s: 20", "silence_s: 3"))
    road.kill_in(road.begin(hangs=f"{FIRST} {SECOND}"), SECOND)
    session = road.resume(hangs=SECOND)
    _wait_for(road.folder / f"{SECOND}.broken-1")
    road.kill_in(session, SECOND)
    done = road.finish_here()
    assert done.status == 11, done.output
    assert f"ERROR: {FIRST}-sums" in done.output
    assert "hang: " in done.output
    assert "next step:" in done.output
    verdicts = {line["scenario"]: line["verdict"] for line in road.records("verdict")}
    assert verdicts == {FIRST: "ERROR", SECOND: "NO_BASELINE"}
    (failed,) = [line for line in road.records("group") if line["scenario"] == FIRST]
    assert failed["ended"] == "failed"
    assert (road.folder / f"{SECOND}.broken-2").is_dir()
    road.require_one_record_a_group(FIRST, SECOND)
    assert len(road.records("resumed")) == 2


def test_a_living_session_holds_its_run_and_one_that_was_broken_off_says_how_to_go_on(
    road: Road,
) -> None:
    session = road.begin(hangs=FIRST)
    try:
        _wait_for(road.folder / FIRST / "start-1-new" / "sums" / "evaluator.out")
        refused = road.finish_here()
    finally:
        session.send_signal(signal.SIGINT)
        broken_off = road.end(session)
    assert refused.status == 4, refused.output
    assert "--resume: another run is writing to this folder" in refused.output
    assert broken_off.status == 2, broken_off.output
    summary = (road.folder / "summary.md").read_text()
    assert f"{ACCURACY} --resume={road.folder}" in summary
    road.require_one_record_a_group()
    assert road.finish_here().status == 0
    road.require_one_record_a_group(FIRST, SECOND)


def test_the_group_of_a_killed_worker_is_measured_again(road: Road) -> None:
    road.share_cpu()
    session = road.begin("-n", "2", "--max-worker-restart", "0", hangs=SECOND)
    try:
        _wait_until(lambda: len(road.records("group")) == 1)
        _wait_for(road.folder / SECOND / "start-1-new" / "sums" / "evaluator.out")
        for worker in psutil.Process(session.pid).children():
            worker.kill()
        first = road.end(session)
    finally:
        session.kill()
    assert first.status == 11, first.output
    road.require_one_record_a_group(FIRST)
    before = road.starts()
    done = road.finish("-n", "2")
    assert done.status == 0, done.output
    assert road.starts() == before + 1
    road.require_one_record_a_group(FIRST, SECOND)


def test_a_resumed_run_becomes_a_baseline_like_any_other(
    killed_and_resumed: KilledAndResumed,
) -> None:
    road = killed_and_resumed.road
    status, output = forked.outcome(road.checkout.perfgate("baseline", "record", str(road.folder)))
    assert status == 0, output
    for scenario in BOTH:
        path = road.checkout.folder / f"home/candidates/cpu/{scenario}/1.0.json"
        (entry,) = json.loads(path.read_text())["entries"].values()
        assert len(entry["runs"]) == 1


def contents(folder: Path) -> dict[Path, bytes]:
    """All files at the top of a run folder but its locks."""
    files = [path for path in folder.iterdir() if path.is_file() and path.suffix != ".lock"]
    return {path: path.read_bytes() for path in files}


def require_refused(road: Road, *options: str, told: tuple[str, ...]) -> Finished:
    """Resume the run with other options: wrong usage, which changes nothing of it."""
    before = contents(road.folder)
    words = ("--gate", *options)
    done = road.finish(*words) if "-n" in options else road.finish_here(*words)
    assert done.status == 4, done.output
    for one in told:
        assert one in done.output, done.output
    assert contents(road.folder) == before
    return done


def test_a_run_that_was_started_for_something_else_is_refused_and_left_as_it_is(
    finished_road: Road,
) -> None:
    road = finished_road
    selection = ("1 missing", "the 2 tests selected then", f"--gate {ACCURACY}")
    require_refused(road, "-k", FIRST, told=selection)
    require_refused(road, "-n", "1", "-k", FIRST, told=selection[:2])
    require_refused(
        road, "--inject", "accuracy.temperature=2", told=("temperature=2", "expected: nothing")
    )
    require_refused(road, "--engine-commit", "another", told=("commit another", "commit 1.0"))
    require_refused(road, "--run-dir", str(road.folder), told=("--run-dir beside it",))
    records = road.folder / "records.jsonl"
    whole = records.read_text()
    records.write_text(whole.replace('"judgements": []', '"judgements": [5]', 1))
    require_refused(road, told=("records.jsonl:", "the checksum is not that of this line"))
    first, *rest = whole.splitlines(keepends=True)
    records.write_text("".join([first, rest[0][:40] + "\n", *rest[1:]]))
    require_refused(road, told=("records.jsonl:2: not JSON", "measure anew in a run of its own"))
    records.write_text(whole)
    road.checkout.edit(lambda text: text.replace("fewshot: 0", "fewshot: 2"))
    require_refused(road, told=("was changed since it was measured", "sums: "))
    (road.folder / "run.json").unlink()
    require_refused(road, told=("no such run",))


def test_a_run_that_was_attacked_is_refused_and_left_as_it_is(finished_road: Road) -> None:
    road = finished_road
    records, facts = road.folder / "records.jsonl", road.folder / "run.json"
    whole = records.read_text()
    forged = whole.replace('"verdict": "NO_BASELINE"', '"verdict": "PASS"')
    assert forged != whole
    forged = forged.replace('"reason": "', '"reason": "\\u001b]0;owned\\u0007\\u202e')
    records.write_text(forged)
    refused = require_refused(road, told=("the checksum is not that of this line", "fix: "))
    assert "\x1b" not in refused.output
    records.write_text(whole)
    before = facts.read_text()
    facts.write_text(before.replace('"synthetic": false', '"synthetic": true'))
    require_refused(road, told=("whether it is a rehearsal differs",))
    facts.write_text(before.replace('"id": "run"', '"id": "other"'))
    require_refused(road, told=("records.jsonl:1: ", "this line after run.json"))
    facts.write_text(before)
    (road.folder / "summary.md").rename(road.folder.parent / "foreign")
    (road.folder / "summary.md").symlink_to(road.folder.parent / "foreign")
    require_refused(road, told=("summary.md: not a regular file", "a symbolic link to"))
    (road.folder / "summary.md").unlink()
    road.folder.chmod(0o777)
    require_refused(road, told=("everybody may write to it (mode 0777)",))
    road.folder.chmod(0o755)
    done = road.finish_here("--gate")
    assert done.status == 12, done.output
    assert "resumed from the session before" in done.output


def test_what_was_skipped_for_a_lack_is_asked_again(road: Road) -> None:
    road.checkout.edit(lambda text: text.replace("name: stand-in,", "name: missing,"))
    assert road.begin_here("-rs").status == 12
    assert len(road.records("skipped")) == 2
    road.checkout.edit(lambda text: text.replace("name: missing,", "name: stand-in,"))
    done = road.finish_here()
    assert done.status == 0, done.output
    assert road.records("skipped") == []
    assert len(road.records("verdict")) == 2
    road.require_one_record_a_group(FIRST, SECOND)
