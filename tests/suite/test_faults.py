"""Faults on the road: who or what fails, and what is left then: nothing but readable records.

The server is a family of processes with shared memory between them, as engines are.
"""

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest
from checkouts import ACCURACY, GIVEN_BAND, POINT, Finished, wait_until
from leftovers import NOTHING, Watched, watched, words
from resuming import copies
from sizes import sized

pytestmark = pytest.mark.slow


@dataclass
class Checkout(Watched):
    """A checkout whose sessions are disturbed while they run."""

    @contextmanager
    def session(self, *options: str, fault: str) -> Iterator["subprocess.Popen[str]"]:
        """A session that runs while the block does; killed at its end if it still runs."""
        session = subprocess.Popen(
            self.command(*options),
            cwd=self.folder,
            env={**self.environment, "PERFGATE_STANDIN_FAULT": fault},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield session
        finally:
            session.kill()
            session.communicate()

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


ALONE, WITH_A_WORKER = (), ("-n", "1")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("number", "workers"),
    sized(
        [(signal.SIGINT, ALONE), (signal.SIGTERM, WITH_A_WORKER), (signal.SIGKILL, ALONE)],
        [
            (number, workers)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
            for workers in (ALONE, WITH_A_WORKER)
        ],
    ),
)
def test_a_killed_session_leaves_nothing(
    checkout: Checkout, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    with checkout.session(*POINT, *workers, fault="client-hangs") as session:
        _under_load(checkout, session, "standin-serve")
        session.send_signal(number)
        status = session.wait(60)
        assert checkout.left() == NOTHING
    assert status == (-number if number == signal.SIGKILL else 2)
    assert len(Finished(status, "", checkout.folder / "run").records("selected")) == 1


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
    with checkout.session(*POINT, fault="client-hangs") as session:
        for victim in VICTIMS:
            _under_load(checkout, session, victim)
            _kill_at_once(checkout.family()[victim])
        output, _ = session.communicate(timeout=100)
        assert checkout.left() == NOTHING
    assert session.returncode == 11, output
    ended = Finished(session.returncode, output, checkout.folder / "run").records("verdict")
    assert [(line["scenario"], line["error"]["error_class"]) for line in ended] == [
        *VICTIMS.items()
    ]


def test_a_killed_worker_is_an_error_and_nothing_is_left(checkout: Checkout) -> None:
    workers = ("-n", "1", "--max-worker-restart", "0")
    with checkout.session(*POINT, *workers, fault="client-hangs") as session:
        _under_load(checkout, session, "standin-serve")
        _kill_at_once(psutil.Process(session.pid).children())
        output, _ = session.communicate(timeout=100)
        assert checkout.left() == NOTHING
    assert session.returncode == 11, output
    assert Finished(session.returncode, output, checkout.folder / "run").records("verdict") == []


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


def test_two_runs_started_at_once_take_turns(checkout: Checkout) -> None:
    words = (ACCURACY, "--record", "--run-dir")
    with (
        checkout.session(*words, "one", fault="takes-time") as one,
        checkout.session(*words, "two", fault="takes-time") as two,
    ):
        statuses = [session.wait(100) for session in (one, two)]
        left = checkout.left()
    assert statuses == [0, 0]
    spans = sorted(_measuring(checkout.folder / name) for name in ("one", "two"))
    assert spans[0][1] < spans[1][0]
    assert left == NOTHING


def _measuring(run: Path) -> tuple[float, float]:
    """When a run began to start its server, and when its measurement ended."""
    events = [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]
    starts = [
        one["clock"] for one in events if (one["event"], one.get("kind")) == ("begin", "start")
    ]
    ends = [one["clock"] for one in events if one["event"] == "end"]
    return min(starts), max(ends)
