"""Faults on the road: who or what fails, and what is left then: nothing but readable records.

The server is a family of processes with shared memory between them, as engines are.
"""

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest
from checkouts import ACCURACY, GIVEN_BAND, PATIENCE_S, POINT, Finished, wait_until
from leftovers import NOTHING, Watched, watched, words
from resuming import copies
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


@dataclass
class Checkout(Watched):
    """A checkout whose sessions are disturbed while they run."""

    def find(self, word: str) -> list[psutil.Process]:
        """The processes of this checkout with a word in their command line."""
        return [one for one in self.processes() if word in words(one)]

    def family(self) -> dict[str, list[psutil.Process]]:
        """Who is who while a load runs; parents before their children."""
        (server,) = (one for one in self.find("family.py") if "warden" in words(one.parent()))
        inner = server.parent()
        assert inner is not None
        outer = inner.parent()
        assert outer is not None
        return {
            "server-parent": [server],
            "server": server.children(),
            "outer-warden": [outer],
            "inner-warden": [inner],
            "launcher": [outer, inner],
            "client": self.find("standin_client.py"),
        }


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    with watched(tmp_path) as made:
        yield Checkout(made.folder)


def _under_load(checkout: Checkout, session: "subprocess.Popen[str]", scenario: str) -> None:
    """Wait until the client hangs on the server, and see that there is much to leave behind."""
    log = checkout.folder / "run" / scenario / "start-1-reference" / "c1" / "client.out"
    wait_until(lambda: log.exists() or session.poll() is not None)
    wait_until(lambda: bool(checkout.find("standin_client.py")) or session.poll() is not None)
    there = checkout.has()
    assert all(there[kind] for kind in ("processes", "leases", "ports", "shared memory"))


def test_a_fault_is_an_error_with_its_class_never_a_number(checkout: Checkout) -> None:
    copies(checkout, *FAULTS)
    checkout.edit(("start_s: 20, silence_s: 20", "start_s: 3, silence_s: 3"))
    done = checkout.run(*POINT, fault="as-the-scenario")
    assert done.status == 11, done.output
    verdicts = done.records("verdict")
    assert {line["verdict"] for line in verdicts} == {"ERROR"}
    assert {line["scenario"]: line["error"]["error_class"] for line in verdicts} == FAULTS
    for failure in FAULTS.values():
        assert FAILURES[failure].next_step in done.output
    left = checkout.left()
    # Whose memory it is, is seen while a program runs: one that dies at once was not seen with it.
    assert len(left.pop("shared memory")) <= 1
    assert left == {kind: [] for kind in NOTHING if kind != "shared memory"}


def test_a_crash_fails_what_needed_the_server_and_is_told_once(checkout: Checkout) -> None:
    done = checkout.run("--self-reference", "stored", fault="die-after-load")
    assert done.status == 11, done.output
    told = {line["probe"]: line["error"] for line in done.records("verdict")}
    assert {error["error_class"] for error in told.values()} == {"server_died"}
    assert "right after a measurement" in told["c1"]["message"]
    for probe in ("c2", "sums"):  # the sweep has c1's own words
        assert told[probe]["message"].startswith("not measured, as c1 failed before it")
    assert len(list(done.folder.rglob("server.sh"))) == 1
    assert checkout.left() == NOTHING


ALONE, WITH_A_WORKER = (), ("-n", "1", "--max-worker-restart", "0")
INTERRUPTED, KILLED, LOST = 2, -signal.SIGKILL, 11
ON_EACH_PUSH = [
    (signal.SIGINT, ALONE, INTERRUPTED),
    (signal.SIGTERM, WITH_A_WORKER, INTERRUPTED),
    (signal.SIGKILL, ALONE, KILLED),
    ("worker", WITH_A_WORKER, LOST),
]
AT_NIGHT = [
    (signal.SIGINT, WITH_A_WORKER, INTERRUPTED),
    (signal.SIGTERM, ALONE, INTERRUPTED),
    (signal.SIGKILL, WITH_A_WORKER, KILLED),
]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kill", "workers", "status"), sized(ON_EACH_PUSH, ON_EACH_PUSH + AT_NIGHT)
)
def test_a_killed_session_leaves_nothing(
    checkout: Checkout, kill: signal.Signals | str, workers: tuple[str, ...], status: int
) -> None:
    with checkout.begun(*POINT, *workers, PERFGATE_STANDIN_FAULT="client-hangs") as session:
        _under_load(checkout, session, "standin-serve")
        if isinstance(kill, signal.Signals):
            session.send_signal(kill)
        else:
            _kill_at_once(psutil.Process(session.pid).children())
        session.communicate(timeout=PATIENCE_S)
        assert checkout.left() == NOTHING
    assert session.returncode == status
    done = Finished(status, "", checkout.folder / "run")
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


def test_whoever_is_killed_the_test_fails_once_and_nothing_is_left(checkout: Checkout) -> None:
    copies(checkout, *VICTIMS)
    with checkout.begun(*POINT, PERFGATE_STANDIN_FAULT="client-hangs") as session:
        for victim in VICTIMS:
            _under_load(checkout, session, victim)
            _kill_at_once(checkout.family()[victim])
        output, _ = session.communicate(timeout=PATIENCE_S)
        assert checkout.left() == NOTHING
    assert session.returncode == 11, output
    ended = Finished(session.returncode, output, checkout.folder / "run").records("verdict")
    assert [(line["scenario"], line["error"]["error_class"]) for line in ended] == [
        *VICTIMS.items()
    ]


def _kill_at_once(victims: Sequence[psutil.Process]) -> None:
    for one in victims:
        one.suspend()  # so that none can act in between
    for one in victims:
        one.kill()


def test_a_port_stolen_before_the_server_has_it_costs_one_more_try(checkout: Checkout) -> None:
    done = checkout.run(ACCURACY, "--record", fault="port-stolen")
    assert (done.status, done.verdicts) == (0, {"sums": "NO_BASELINE"}), done.output
    assert checkout.left() == NOTHING


def test_a_log_that_fills_the_disk_is_told_and_the_records_stay_readable(
    checkout: Checkout,
) -> None:
    if subprocess.run(("unshare", "-m", "true"), check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    disk = checkout.folder / "run"
    disk.mkdir()
    # In a mount namespace of its own, which ends with the session, however that ends.
    script = (
        'mount -t tmpfs -o mode=0700,size=2g none run && { "$@"; s=$?; cp -r run kept; exit $s; }'
    )
    done = subprocess.run(
        ("unshare", "-m", "sh", "-c", script, "sh", *checkout.command(*POINT)),
        cwd=checkout.folder,
        env={
            **checkout.environment,
            "PERFGATE_STANDIN_FAULT": "log-fills-disk",
            "PERFGATE_STANDIN_DISK": str(disk),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    left = checkout.left()
    assert done.returncode == 11, done.stdout + done.stderr
    assert "disk_full" in done.stdout, done.stdout + done.stderr
    lines = (checkout.folder / "kept" / "records.jsonl").read_text().splitlines()
    assert "selected" in [json.loads(line)["record"] for line in lines]
    assert left == NOTHING


def test_a_clock_that_jumps_changes_no_verdict_and_hides_no_hang(checkout: Checkout) -> None:
    copies(checkout, "goes-on", "hangs")
    checkout.edit(("silence_s: 20", "silence_s: 3"), *GIVEN_BAND)
    words = ("-p", "jumping_clock", *POINT)
    done = checkout.run(*words, fault="takes-time", PERFGATE_STANDIN_HANGS="hangs")
    calm, hung = done.records("verdict")
    assert done.status == 11, done.output
    assert calm["verdict"] == "PASS", done.output
    seconds = [line["seconds"] for line in done.records("measurement")]
    assert 0 < min(seconds) <= max(seconds) < 600
    text = (done.folder / "records.jsonl").read_text()
    clock = [datetime.fromisoformat(json.loads(line)["at"]) for line in text.splitlines()]
    assert max(clock) - min(clock) > timedelta(minutes=30)  # it did jump
    assert hung["error"]["error_class"] == "hang"
    assert [*done.folder.glob("hangs/start-1-*/server.evidence.txt")]
    assert checkout.left() == NOTHING


def test_two_runs_started_at_once_take_turns_and_both_count(checkout: Checkout) -> None:
    words = (ACCURACY, "--record", "--run-dir")
    with (
        checkout.begun(*words, "one", PERFGATE_STANDIN_FAULT="takes-time") as one,
        checkout.begun(*words, "two", PERFGATE_STANDIN_FAULT="takes-time") as two,
    ):
        statuses = [session.wait(PATIENCE_S) for session in (one, two)]
        left = checkout.left()
    assert statuses == [0, 0]
    spans = sorted(_measuring(checkout.folder / name) for name in ("one", "two"))
    assert spans[0][1] < spans[1][0]
    assert left == NOTHING
    candidate = checkout.folder / "home/candidates/cpu/standin-serve/1.0.json"
    (entry,) = json.loads(candidate.read_text())["entries"].values()
    assert {run["run"] for run in entry["runs"]} == {"one", "two"}


def _measuring(run: Path) -> tuple[float, float]:
    """When a run began to start its server, and when its measurement ended."""
    events = [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]
    starts = [
        one["clock"] for one in events if (one["event"], one.get("kind")) == ("begin", "start")
    ]
    ends = [one["clock"] for one in events if one["event"] == "end"]
    return min(starts), max(ends)
