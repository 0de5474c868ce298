"""Faults on the road: who or what fails, and what is left then: nothing but readable records.

The server is a family of processes with shared memory between them, as engines are.
"""

import json
import subprocess
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals

import psutil
import pytest
from checkouts import NOTHING, Finished, Watched, wait_until, words_of
from road_words import ACCURACY, GIVEN_BAND, PATIENCE_S, POINT
from sizes import sized

from perfgate.core.failures import FAILURES

pytestmark = pytest.mark.slow

FAULTS = {
    "die-at-start": "model_file",
    "wrong-model": "start_timeout",
    "never-ready": "start_timeout",
    "die-on-load": "server_died",
    "client-fails": "client_failed",
    "client-hangs": "hang",
    "failed-requests": "incomplete",
    "zeros": "incomplete",
    "cut": "truncated_output",
    "no-result": "no_metrics",
}


def find(checkout: Watched, word: str) -> list[psutil.Process]:
    """The processes of the checkout with a word in their command line."""
    return [one for one in checkout.processes() if word in words_of(one)]


def family(checkout: Watched) -> dict[str, list[psutil.Process]]:
    """Who is who while a load runs; parents before their children."""
    servers = find(checkout, "family.py")
    (server,) = (one for one in servers if "warden" in words_of(one.parent()))
    inner, outer = server.parents()[:2]
    return {
        "server-parent": [server],
        "server": server.children(),
        "outer-warden": [outer],
        "inner-warden": [inner],
        "launcher": [outer, inner],
        "client": find(checkout, "standin_client.py"),
    }


def kill_at_once(victims: Sequence[psutil.Process]) -> None:
    for one in victims:
        one.suspend()  # so that none can act in between
    for one in victims:
        one.kill()


def under_load(checkout: Watched, session: "subprocess.Popen[str]", scenario: str) -> None:
    """Wait until the client hangs on the server, and see that there is much to leave behind."""
    log = checkout.run_folder / scenario / "start-1-reference" / "c1" / "client.out"
    wait_until(lambda: log.exists() or session.poll() is not None)
    wait_until(lambda: bool(find(checkout, "standin_client.py")) or session.poll() is not None)
    there = checkout.has()
    assert all(there[kind] for kind in ("processes", "leases", "ports", "shared memory"))


def test_a_fault_is_an_error_with_its_class_never_a_number(watched: Watched) -> None:
    watched.scenarios_named(*FAULTS)
    watched.edit(("start_s: 20, silence_s: 20", "start_s: 3, silence_s: 3"))
    done = watched.run(*POINT, fault="as-the-scenario")
    done.require(11, {"c1": "ERROR"}, *(FAILURES[one].next_step for one in FAULTS.values()))
    verdicts = done.records("verdict")
    assert {line["verdict"] for line in verdicts} == {"ERROR"}
    assert {line["scenario"]: line["error"]["error_class"] for line in verdicts} == FAULTS
    left = watched.left()
    # Whose memory it is, is seen while a program runs: one that dies at once was not seen with it.
    assert len(left.pop("shared memory")) <= 1
    assert not any(left.values()), left


def test_a_crash_fails_what_needed_the_server_and_is_told_once(watched: Watched) -> None:
    done = watched.run("--self-reference", "stored", fault="die-after-load")
    done.require(11)
    told = {line["probe"]: line["error"] for line in done.records("verdict")}
    assert {error["error_class"] for error in told.values()} == {"server_died"}
    assert "right after a measurement" in told["c1"]["message"]
    for probe in ("c2", "sums"):  # the sweep has c1's own words
        assert told[probe]["message"].startswith("not measured, as c1 failed before it")
    assert len(list(done.folder.rglob("server.sh"))) == 1
    assert watched.left() == NOTHING


ALONE, WORKER = (), ("-n", "1", "--max-worker-restart", "0")
STATUS = {SIGINT: 2, SIGTERM: 2, SIGKILL: -SIGKILL, "worker": 11}
ON_EACH_PUSH = [(SIGINT, ALONE), (SIGTERM, WORKER), (SIGKILL, ALONE), ("worker", WORKER)]
AT_NIGHT = [(SIGINT, WORKER), (SIGTERM, ALONE), (SIGKILL, WORKER)]


@pytest.mark.nightly
@pytest.mark.parametrize(("kill", "workers"), sized(ON_EACH_PUSH, ON_EACH_PUSH + AT_NIGHT))
def test_a_killed_session_leaves_nothing(
    watched: Watched, kill: Signals | str, workers: tuple[str, ...]
) -> None:
    """SIGTERM comes again while it ends its programs, and while it sums up."""
    watched.change_at("perfgate.launchers.local.job", "LocalJob._end", "os.kill(os.getpid(), 15)")
    with (watched.folder / "conftest.py").open("a") as file:
        file.write("def pytest_sessionfinish():\n    os.kill(os.getpid(), 15)\n")
    with watched.begun(*POINT, *workers, PERFGATE_STANDIN_FAULT="client-hangs") as session:
        under_load(watched, session, "standin-serve")
        if isinstance(kill, Signals):
            session.send_signal(kill)
        else:
            kill_at_once(psutil.Process(session.pid).children())
        session.communicate(timeout=PATIENCE_S)
        assert watched.left() == NOTHING
    assert session.returncode == STATUS[kill]
    done = Finished(session.returncode, "", watched.run_folder)
    assert (len(done.records("selected")), done.records("verdict")) == (1, [])


# Who is killed, and how the test that needed it ends; the names are those of scenarios, too.
VICTIMS = {
    "client": "killed",
    "server": "server_died",
    "server-parent": "killed",
    "inner-warden": "killed",
    "outer-warden": "killed",
    "launcher": "killed",
}


def test_whoever_is_killed_the_test_fails_once_and_nothing_is_left(watched: Watched) -> None:
    watched.scenarios_named(*VICTIMS)
    with watched.begun(*POINT, PERFGATE_STANDIN_FAULT="client-hangs") as session:
        for victim in VICTIMS:
            under_load(watched, session, victim)
            kill_at_once(family(watched)[victim])
        output, _ = session.communicate(timeout=PATIENCE_S)
        assert watched.left() == NOTHING
    done = Finished(session.returncode, output, watched.run_folder)
    done.require(11)
    ended = [(line["scenario"], line["error"]["error_class"]) for line in done.records("verdict")]
    assert ended == [*VICTIMS.items()]


def test_a_port_stolen_before_the_server_has_it_costs_one_more_try(watched: Watched) -> None:
    done = watched.run(ACCURACY, "--record", fault="port-stolen")
    done.require(0, {"sums": "NO_BASELINE"})
    assert watched.left() == NOTHING


def test_a_clock_that_jumps_changes_no_verdict_and_hides_no_hang(watched: Watched) -> None:
    watched.scenarios_named("goes-on", "hangs")
    watched.edit(("silence_s: 20", "silence_s: 3"), *GIVEN_BAND)
    words = ("-p", "jumping_clock", *POINT)
    done = watched.run(*words, fault="takes-time", PERFGATE_STANDIN_HANGS="hangs")
    done.require(11)
    calm, hung = done.records("verdict")
    assert calm["verdict"] == "PASS", done.output
    seconds = [line["seconds"] for line in done.measured]
    assert 0 < min(seconds) <= max(seconds) < 600
    text = (done.folder / "records.jsonl").read_text()
    clock = [datetime.fromisoformat(json.loads(line)["at"]) for line in text.splitlines()]
    assert max(clock) - min(clock) > timedelta(minutes=30)  # it did jump
    assert hung["error"]["error_class"] == "hang"
    assert [*done.folder.glob("hangs/start-1-*/server.evidence.txt")]
    assert watched.left() == NOTHING


def test_two_runs_started_at_once_take_turns_and_both_count(watched: Watched) -> None:
    words = (ACCURACY, "--record", "--run-dir")
    with (
        watched.begun(*words, "one", PERFGATE_STANDIN_FAULT="takes-time") as one,
        watched.begun(*words, "two", PERFGATE_STANDIN_FAULT="takes-time") as two,
    ):
        statuses = [session.wait(PATIENCE_S) for session in (one, two)]
        left = watched.left()
    assert statuses == [0, 0]
    first, second = sorted(measuring(watched.folder / name) for name in ("one", "two"))
    assert first[1] < second[0]
    assert left == NOTHING
    candidate = watched.folder / "home/candidates/cpu/standin-serve/1.0.json"
    (entry,) = json.loads(candidate.read_text())["entries"].values()
    assert {run["run"] for run in entry["runs"]} == {"one", "two"}


def measuring(run: Path) -> tuple[float, float]:
    """When a run began to start its server, and when its measurement ended."""
    events = [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]
    starts = [one["clock"] for one in events if one["event"] == "begin" and one["kind"] == "start"]
    return min(starts), max(one["clock"] for one in events if one["event"] == "end")
