"""Resuming on the road: sessions that were killed or out of time, gone on with in one folder."""

import json
import signal
from pathlib import Path

import psutil
import pytest
from checkouts import Finished, Road, make_road, says, wait_until
from road_words import ACCURACY, FIRST, SECOND

pytestmark = pytest.mark.slow


def kill_in_second(road: Road, *options: str, hangs: str) -> None:
    """Kill a session once the client of the second scenario's first start is at work."""
    with road.begun_hanging(*options, hangs=hangs):
        if options:
            wait_until((road.run_folder / f"{SECOND}.broken-1").exists)
        wait_until(road.evaluating(SECOND).exists)


@pytest.fixture(scope="module")
def killed_and_resumed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Road, Finished]:
    """A run that was killed in its second group, and resumed."""
    road = make_road(tmp_path_factory.mktemp("killed"))
    kill_in_second(road, hangs=SECOND)
    road.require_one_record_a_group(FIRST)
    before = road.starts
    done = road.resume(traced=True)
    assert (done.status, road.starts) == (0, before + 1), done.output
    return road, done


@pytest.fixture(scope="module")
def once_finished(tmp_path_factory: pytest.TempPathFactory) -> Road:
    """What `whole` copies."""
    road = make_road(tmp_path_factory.mktemp("finished"))
    road.begin("--gate").require(12)
    return road


@pytest.fixture
def whole(once_finished: Road, tmp_path: Path) -> Road:
    """A run that has come to its end."""
    return once_finished.copy(tmp_path / "suite")


def test_a_killed_run_goes_on_with_its_group(killed_and_resumed: tuple[Road, Finished]) -> None:
    road, done = killed_and_resumed
    road.require_one_record_a_group(FIRST, SECOND)
    assert len(road.records("verdict")) == len(road.records("measurement")) == 2
    (resumed,) = road.records("resumed")
    assert (resumed["repeats"], resumed["groups"]) == ([SECOND], [FIRST])
    assert (done.folder / f"{SECOND}.broken-1" / "start-1-new").is_dir()
    assert not (done.folder / f"{FIRST}.broken-1").exists()
    says(done.summary, "1 group kept, 1 measured again", "**Exit status 0**")
    assert road.wait_until_empty() == []
    # It is computed again and becomes a baseline like any other.
    assert road.judged_again() == {f"{name}-sums": "NO_BASELINE" for name in (FIRST, SECOND)}
    status, output = road.perfgate("baseline", "record", str(done.folder))
    assert status == 0, output
    for path in (road.folder / "home/candidates/cpu").glob("*/1.0.json"):
        (entry,) = json.loads(path.read_text())["entries"].values()
        assert (path.parent.name in (FIRST, SECOND), len(entry["runs"])) == (True, 1)


def test_a_finished_run_is_found_by_its_name_and_replayed(whole: Road) -> None:
    folder = whole.folder / "runs" / "last-night"
    folder.parent.mkdir()
    whole.run_folder.rename(folder)
    raw = len((folder / "records.jsonl").read_text().splitlines())
    starts = whole.starts
    done = whole.session("--gate", "--resume", "last-night", ACCURACY)
    done.require(12, None, "last-night", "2 no baseline")
    assert whole.starts == starts
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["record"] for line in lines[raw:]] == ["resumed", "ended"]


def test_a_failure_is_replayed_and_what_broke_off_twice_is_moved_twice(road: Road) -> None:
    road.edit(("silence_s: 20", "silence_s: 3"))
    kill_in_second(road, hangs=f"{FIRST} {SECOND}")
    kill_in_second(road, f"--resume={road.run_folder}", hangs=SECOND)
    road.resume().require(11, None, f"ERROR: {FIRST}-sums", "hang: ", "next step:")
    verdicts = {line["scenario"]: line["verdict"] for line in road.records("verdict")}
    assert verdicts == {FIRST: "ERROR", SECOND: "NO_BASELINE"}
    (failed,) = [line for line in road.records("group") if line["scenario"] == FIRST]
    assert failed["ended"] == "failed"
    assert (road.run_folder / f"{SECOND}.broken-2").is_dir()
    road.require_one_record_a_group(FIRST, SECOND)
    assert len(road.records("resumed")) == 2


def test_a_living_session_holds_its_run_and_a_broken_one_says_how_to_go_on(road: Road) -> None:
    with road.begun_hanging(hangs=FIRST) as session:
        wait_until(road.evaluating(FIRST).exists)
        for refused in (road.resume(), road.begin()):
            refused.require(4, None, "another run is writing to this folder")
        session.send_signal(signal.SIGINT)
        told, _ = session.communicate(timeout=120)
    assert session.returncode == 2, told
    summary = (road.run_folder / "summary.md").read_text()
    assert f"{ACCURACY} --resume={road.run_folder}" in summary
    road.require_one_record_a_group()
    road.begin().require(4, None, "already holds a run")
    road.resume().require(0)
    road.require_one_record_a_group(FIRST, SECOND)


def test_the_group_of_a_killed_worker_is_measured_again(road: Road) -> None:
    (road.folder / "site.yaml").write_text("schema_version: 1\nshare_cpu: true\n")
    with road.begun_hanging("-n", "2", "--max-worker-restart", "0", hangs=SECOND) as session:
        wait_until(lambda: len(road.records("group")) == 1)
        wait_until(road.evaluating(SECOND).exists)
        for worker in psutil.Process(session.pid).children():
            worker.kill()
        told, _ = session.communicate(timeout=120)
    assert session.returncode == 11, told
    assert road.wait_until_empty() == []
    road.require_one_record_a_group(FIRST)
    before = road.starts
    road.resume().require(0)
    assert road.starts == before + 1
    road.require_one_record_a_group(FIRST, SECOND)


def require_refused(road: Road, *options: str, told: tuple[str, ...]) -> None:
    """Resume the run with other options: wrong usage, which changes nothing of it."""

    def contents() -> dict[Path, bytes]:
        files = [one for one in road.run_folder.iterdir() if one.is_file()]
        return {path: path.read_bytes() for path in files if path.suffix != ".lock"}

    before = contents()
    done = road.resume("--gate", *options)
    done.require(4, None, *told)
    assert "\x1b" not in done.output
    assert contents() == before


def test_a_run_of_something_else_is_refused_and_left_as_it_is(whole: Road) -> None:
    selection = ("1 missing", "the 2 tests selected then")
    require_refused(whole, "-k", FIRST, told=(*selection, "--gate"))
    require_refused(whole, "-n", "1", "-k", FIRST, told=selection)
    hotter = ("--inject", "accuracy.temperature=2")
    require_refused(whole, *hotter, told=("temperature=2", "expected: nothing"))
    require_refused(whole, "--engine-commit", "another", told=("commit another", "commit 1.0"))
    require_refused(whole, "--run-dir", str(whole.run_folder), told=("--run-dir beside it",))
    whole.edit(("fewshot: 0", "fewshot: 2"))
    require_refused(whole, told=("was changed since it was measured", "sums: "))
    (whole.run_folder / "run.json").unlink()
    require_refused(whole, told=("no such run",))


def test_an_attacked_run_is_refused_and_left_as_it_is(whole: Road) -> None:
    """Which lines and files are seen for what they are: tests/runs/test_attacked_run_folder.py."""
    records = whole.run_folder / "records.jsonl"
    text = records.read_text()
    forged = text.replace('"verdict": "NO_BASELINE"', '"verdict": "PASS"')
    assert forged != text
    records.write_text(forged.replace('"reason": "', '"reason": "\\u001b]0;owned\\u0007\\u202e'))
    require_refused(whole, told=("the checksum is not that of this line", "fix: "))
    first, *rest = text.splitlines(keepends=True)
    records.write_text("".join([first, rest[0][:40] + "\n", *rest[1:]]))
    require_refused(whole, told=("records.jsonl:2: not JSON", "measure again in a new run folder"))
    records.write_text(text)
    done = whole.resume("--gate")
    done.require(12)
    assert "esumed from the session before" in done.summary


def test_what_was_skipped_for_a_lack_is_tried_again(road: Road) -> None:
    road.edit(("name: stand-in,", "name: missing,"))
    road.begin("-rs").require(12, None, "PERFGATE_PROGRAM_MISSING")
    assert len(road.records("skipped")) == 2
    road.edit(("name: missing,", "name: stand-in,"))
    road.resume().require(0)
    assert road.records("skipped") == []
    assert len(road.records("verdict")) == 2
    road.require_one_record_a_group(FIRST, SECOND)


def test_what_the_budget_has_no_time_for_is_told_and_run_when_resumed(road: Road) -> None:
    done = road.begin("--budget", "1s", "--gate", "-rs", "-n", "1")
    assert (done.status, road.starts) == (12, 0), done.output
    skipped = road.records("skipped")
    assert [line["why"] for line in skipped] == ["budget", "budget"]
    says(skipped[0]["reason"], "limits say at most 20 s", "of --budget 1s are left")
    assert "## Not run for lack of time" in done.summary
    road.require_one_record_a_group()
    # Then all the time of the world until the first start, none from then on.
    started = 'os.path.exists(os.environ["PERFGATE_STANDIN_COUNTER"])'
    road.change_at("perfgate.campaign.budget", "Budget.left_s", "return 0.0", started)
    begun = road.run("--budget", "4h", "--record", ACCURACY)
    begun.require(0, None, "nothing was judged")
    assert [line["name"] for line in road.records("skipped")] == [f"{SECOND}-sums"]
    road.require_one_record_a_group(FIRST)
    road.resume().require(0)
    road.require_one_record_a_group(FIRST, SECOND)
    assert road.records("skipped") == []
