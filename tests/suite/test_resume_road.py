"""Resuming on the road: sessions killed at different moments, gone on with in the same folder."""

import json
import signal
from pathlib import Path

import forked
import psutil
import pytest
from checkouts import (
    ACCURACY,
    Suite,
    copied,
    differences,
    make_suite,
    recomputed,
    wait_for,
    wait_until,
)
from resuming import BOTH, FIRST, SECOND, Road, copies

from perfgate.core.verdict import Verdict

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def killed_and_resumed(tmp_path_factory: pytest.TempPathFactory) -> Road:
    """A run that was killed in its second group, and resumed."""
    suite = make_suite(tmp_path_factory.mktemp("killed"))
    copies(suite, FIRST, SECOND)
    road = Road(suite)
    road.kill_in(SECOND, hangs=SECOND)
    road.require_one_record_a_group(FIRST)
    before = suite.starts
    done = road.finish_here()
    assert (done.status, suite.starts) == (0, before + 1), done.output
    return road


@pytest.fixture(scope="module")
def once_finished(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """What `finished_road` copies."""
    suite = make_suite(tmp_path_factory.mktemp("finished"))
    copies(suite, FIRST, SECOND)
    done = Road(suite).begin_here("--gate")
    assert done.status == 12, done.output
    return suite


@pytest.fixture
def finished_road(once_finished: Suite, tmp_path: Path) -> Road:
    """A run that has come to its end, whole."""
    return Road(copied(once_finished, tmp_path / "suite"))


def test_a_run_killed_in_a_group_goes_on_with_that_group_alone(
    killed_and_resumed: Road,
) -> None:
    road = killed_and_resumed
    road.require_one_record_a_group(FIRST, SECOND)
    assert len(road.records("verdict")) == len(road.records("measurement")) == 2
    (resumed,) = road.records("resumed")
    assert (resumed["repeats"], resumed["groups"]) == ([SECOND], [FIRST])
    assert (road.folder / f"{SECOND}.broken-1" / "start-1-new").is_dir()
    assert not (road.folder / f"{FIRST}.broken-1").exists()
    summary = (road.folder / "summary.md").read_text()
    assert "1 group kept, 1 measured again" in summary
    assert "**Exit status 0**" in summary
    assert road.checkout.wait_until_empty() == []


def test_a_run_gone_on_with_is_computed_anew_and_becomes_a_baseline_like_any_other(
    killed_and_resumed: Road,
) -> None:
    road = killed_and_resumed
    found = recomputed(road.checkout)
    assert {name: one.verdict for name, one in found.items()} == {
        f"{name}-sums": Verdict.NO_BASELINE for name in BOTH
    }
    assert differences(found) == []
    status, output = forked.outcome(road.checkout.perfgate("baseline", "record", str(road.folder)))
    assert status == 0, output
    for scenario in BOTH:
        path = road.checkout.folder / f"home/candidates/cpu/{scenario}/1.0.json"
        (entry,) = json.loads(path.read_text())["entries"].values()
        assert len(entry["runs"]) == 1


def test_a_finished_run_is_found_by_its_name_replayed_and_ends_the_same(
    finished_road: Road,
) -> None:
    road = finished_road
    runs = road.checkout.folder / "runs"
    runs.mkdir()
    road.folder = road.folder.rename(runs / "last-night")
    raw = len((road.folder / "records.jsonl").read_text().splitlines())
    starts = road.checkout.starts
    done = road.checkout.session("--gate", "--resume", "last-night", ACCURACY)
    assert done.status == 12, done.output
    assert "last-night" in done.output
    assert "2 no baseline" in done.output
    assert road.checkout.starts == starts
    lines = (road.folder / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["record"] for line in lines[raw:]] == ["resumed", "ended"]
    road.require_one_record_a_group(FIRST, SECOND)


def test_a_failure_is_replayed_with_its_text_and_what_broke_off_twice_is_moved_aside_twice(
    road: Road,
) -> None:
    road.checkout.edit(("silence_s: 20", "silence_s: 3"))
    road.kill_in(SECOND, hangs=f"{FIRST} {SECOND}")
    road.kill_in(SECOND, road.resumed, hangs=SECOND)
    done = road.finish_here()
    assert done.status == 11, done.output
    for told in (f"ERROR: {FIRST}-sums", "hang: ", "next step:"):
        assert told in done.output
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
    with road.begun(hangs=FIRST) as session:
        wait_for(road.evaluating(FIRST))
        resumed, begun = road.finish_here(), road.begin_here()
        session.send_signal(signal.SIGINT)
        told, _ = session.communicate(timeout=120)
    for refused in (resumed, begun):
        assert refused.status == 4, refused.output
        assert "another run is writing to this folder" in refused.output
    assert session.returncode == 2, told
    summary = (road.folder / "summary.md").read_text()
    assert f"{ACCURACY} --resume={road.folder}" in summary
    road.require_one_record_a_group()
    again = road.begin_here()
    assert again.status == 4
    assert "already holds a run" in again.output
    assert road.finish_here().status == 0
    road.require_one_record_a_group(FIRST, SECOND)


def test_the_group_of_a_killed_worker_is_measured_again(road: Road) -> None:
    (road.checkout.folder / "site.yaml").write_text("schema_version: 1\nshare_cpu: true\n")
    with road.begun("-n", "2", "--max-worker-restart", "0", hangs=SECOND) as session:
        wait_until(lambda: len(road.records("group")) == 1)
        wait_for(road.evaluating(SECOND))
        for worker in psutil.Process(session.pid).children():
            worker.kill()
        told, _ = session.communicate(timeout=120)
    assert session.returncode == 11, told
    assert road.checkout.wait_until_empty() == []
    road.require_one_record_a_group(FIRST)
    before = road.checkout.starts
    done = road.finish_here("-n", "2")
    assert (done.status, road.checkout.starts) == (0, before + 1), done.output
    road.require_one_record_a_group(FIRST, SECOND)


def require_refused(road: Road, *options: str, told: tuple[str, ...]) -> str:
    """Resume the run with other options: wrong usage, which changes nothing of it."""

    def contents() -> dict[Path, bytes]:
        files = [one for one in road.folder.iterdir() if one.is_file() and one.suffix != ".lock"]
        return {path: path.read_bytes() for path in files}

    before = contents()
    done = road.finish_here("--gate", *options)
    assert done.status == 4, done.output
    for one in told:
        assert one in done.output, done.output
    assert contents() == before
    return done.output


def test_a_run_that_was_started_for_something_else_is_refused_and_left_as_it_is(
    finished_road: Road,
) -> None:
    road = finished_road
    selection = ("1 missing", "the 2 tests selected then")
    require_refused(road, "-k", FIRST, told=(*selection, "--gate"))
    require_refused(road, "-n", "1", "-k", FIRST, told=selection)
    require_refused(
        road, "--inject", "accuracy.temperature=2", told=("temperature=2", "expected: nothing")
    )
    require_refused(road, "--engine-commit", "another", told=("commit another", "commit 1.0"))
    require_refused(road, "--run-dir", str(road.folder), told=("--run-dir beside it",))
    road.checkout.edit(("fewshot: 0", "fewshot: 2"))
    require_refused(road, told=("was changed since it was measured", "sums: "))
    (road.folder / "run.json").unlink()
    require_refused(road, told=("no such run",))


def test_a_run_that_was_attacked_is_refused_and_left_as_it_is(finished_road: Road) -> None:
    """Which lines and files are seen for what they are: tests/runs/test_attacked_run_folder.py."""
    road = finished_road
    records = road.folder / "records.jsonl"
    whole = records.read_text()
    forged = whole.replace('"verdict": "NO_BASELINE"', '"verdict": "PASS"')
    assert forged != whole
    records.write_text(forged.replace('"reason": "', '"reason": "\\u001b]0;owned\\u0007\\u202e'))
    told = ("the checksum is not that of this line", "fix: ")
    assert "\x1b" not in require_refused(road, told=told)
    first, *rest = whole.splitlines(keepends=True)
    records.write_text("".join([first, rest[0][:40] + "\n", *rest[1:]]))
    require_refused(road, told=("records.jsonl:2: not JSON", "measure again in a new run folder"))
    records.write_text(whole)
    done = road.finish_here("--gate")
    assert done.status == 12, done.output
    assert "esumed from the session before" in (road.folder / "summary.md").read_text()


def test_what_was_skipped_for_a_lack_is_asked_again(road: Road) -> None:
    road.checkout.edit(("name: stand-in,", "name: missing,"))
    lacking = road.begin_here("-rs")
    assert (lacking.status, len(road.records("skipped"))) == (12, 2)
    assert "PERFGATE_PROGRAM_MISSING" in lacking.output
    road.checkout.edit(("name: missing,", "name: stand-in,"))
    done = road.finish_here()
    assert done.status == 0, done.output
    assert road.records("skipped") == []
    assert len(road.records("verdict")) == 2
    road.require_one_record_a_group(FIRST, SECOND)
