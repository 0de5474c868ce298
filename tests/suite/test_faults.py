"""Faults on the road: who or what fails, and what is left then: nothing but readable records.

The server is a family of processes with shared memory between them, as engines are. Set
PERFGATE_FAULTS_TABLE to a file to have a line written into it for each fault.
"""

import json
import os
import re
import signal
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest
from sessions import is_held, untraced
from test_road import PLUGINS, STANDINS, Finished, Suite, _wait_until, suite  # noqa: F401

pytestmark = pytest.mark.slow

SHM = Path("/dev/shm")
SERVING = ("perf_tests/test_serving.py", "-k", "c1")
LEFT_NOTHING = {"processes": [], "leases": [], "ports": [], "shared memory": []}


@dataclass
class Checkout(Suite):
    """A checkout whose servers have shared memory, and which has its own leases."""

    memory: str

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "PERFGATE_STANDIN_MEMORY": self.memory,
            "PERFGATE_LEASES": str(self.folder / "leases"),
        }
        # What these sessions run is counted where they are let run to their end.
        return {**untraced(super().environment), **own}

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

    @property
    def scenario(self) -> Path:
        return self.folder / "run" / "standin-serve"

    def has(self) -> dict[str, list[str]]:
        """What of this checkout is there now, of all that could be left behind."""
        calls = [path.read_text() for path in self.scenario.glob("start-*/server.sh")]
        ports = {int(port) for call in calls for port in re.findall(r"--port\W+(\d+)", call)}
        return {
            "processes": [str(one) for one in self.processes()],
            "leases": [path.name for path in (self.folder / "leases").iterdir() if is_held(path)],
            "ports": [str(port) for port in sorted(ports) if _listens(port)],
            "shared memory": [path.name for path in SHM.glob(f"{self.memory}*")],
        }

    def left(self) -> dict[str, list[str]]:
        """What is there when all processes are gone, or a generous while has passed."""
        self.wait_until_empty()
        return self.has()

    def find(self, *words: str) -> list[psutil.Process]:
        """The processes of this checkout with one of `words` in their command line."""
        return [one for one in self.processes() if any(word in _call(one) for word in words)]

    def family(self) -> dict[str, list[psutil.Process]]:
        """Who is who while a load runs; parents before their children."""
        (server,) = (one for one in self.find("family.py") if "warden" in _call(one.parent()))
        inner = server.parent()
        assert inner is not None
        outer = inner.parent()
        assert outer is not None
        return {
            "server's parent": [server],
            "server": server.children(),
            "outer warden": [outer],
            "inner warden": [inner],
            "launcher": [outer, inner],
            "client": self.find("standin_client.py"),
        }


def _call(process: psutil.Process | None) -> str:
    try:
        return " ".join(process.cmdline()) if process else ""
    except psutil.NoSuchProcess:
        return ""


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def checkout(suite: Suite) -> Iterator[Checkout]:  # noqa: F811
    plugins = ["perfgate.suite.plugin", "standin", "standin_family"]
    (suite.folder / "conftest.py").write_text(f"pytest_plugins = {plugins!r}\n")
    (suite.folder / "leases").mkdir()
    checkout = Checkout(suite.folder, f"perfgate-standin-{uuid.uuid4().hex}-")
    yield checkout
    for path in SHM.glob(f"{checkout.memory}*"):
        path.unlink()


@pytest.fixture
def tell(checkout: Checkout) -> Callable[..., None]:
    """Adds a line to the table of faults, if somebody wants one."""

    def tell(fault: str, status: int, told: str, left: Mapping[str, list[str]]) -> None:
        counts = ", ".join(f"{len(found)} {what}" for what, found in left.items())
        if table := os.environ.get("PERFGATE_FAULTS_TABLE"):
            with Path(table).open("a") as file:
                file.write(f"{fault:<28} exit {status:>3}  {told:<22} left: {counts}\n")

    return tell


def _under_load(checkout: Checkout, session: "subprocess.Popen[str]") -> None:
    """Wait until the client hangs on the server, and see that there is much to leave behind."""
    _wait_until(lambda: bool(checkout.find("standin_client.py")) or session.poll() is not None)
    assert all(checkout.has().values())


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "with a worker"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_session_leaves_nothing(
    checkout: Checkout,
    tell: Callable[..., None],
    number: signal.Signals,
    workers: tuple[str, ...],
) -> None:
    with checkout.session(*SERVING, *workers, fault="client-hangs") as session:
        _under_load(checkout, session)
        session.send_signal(number)
        status = session.wait(60)
        left = checkout.left()
    tell(" ".join(("pytest", *workers)) + f": {number.name}", status, "-", left)
    assert left == LEFT_NOTHING
    assert status == (-number if number == signal.SIGKILL else 2)
    assert len(Finished(status, "", checkout.folder / "run").records("selected")) == 1


@pytest.mark.parametrize(
    ("victim", "failure"),
    [
        ("client", "killed"),
        ("server", "server_died"),
        ("server's parent", "killed"),
        ("inner warden", "killed"),
        ("outer warden", "killed"),
        ("launcher", "killed"),
        ("worker", None),
    ],
)
def test_whoever_is_killed_the_test_fails_once_and_nothing_is_left(
    checkout: Checkout, tell: Callable[..., None], victim: str, failure: str | None
) -> None:
    workers = ("-n", "1", "--max-worker-restart", "0") if victim == "worker" else ()
    with checkout.session(*SERVING, *workers, fault="client-hangs") as session:
        _under_load(checkout, session)
        children = psutil.Process(session.pid).children()
        victims = {**checkout.family(), "worker": children}[victim]
        for one in victims:
            one.suspend()  # so that they die at once: none can act in between
        for one in victims:
            one.kill()
        output, _ = session.communicate(timeout=100)
        left = checkout.left()
    tell(f"{victim}: SIGKILL", session.returncode, failure or "worker crashed", left)
    assert left == LEFT_NOTHING
    assert session.returncode == 11, output
    ended = Finished(session.returncode, output, checkout.folder / "run").records("verdict")
    classes = [line["error"]["class"] for line in ended]
    assert classes == ([failure] if failure else []), output


@pytest.mark.parametrize(
    ("fault", "status", "verdict"),
    [("port-stolen", 0, "NO_BASELINE"), ("port-stolen-always", 11, "ERROR")],
)
def test_a_port_stolen_before_the_server_has_it_costs_one_more_try(
    checkout: Checkout, tell: Callable[..., None], fault: str, status: int, verdict: str
) -> None:
    done = checkout.run("perf_tests/test_accuracy.py", "--record", fault=fault)
    left = checkout.left()
    tell(fault, done.status, verdict, left)
    assert (done.status, done.verdicts) == (status, {"sums": verdict}), done.output
    if verdict == "ERROR":
        assert done.records("verdict")[0]["error"]["class"] == "port_in_use"
    assert left == LEFT_NOTHING


def test_a_log_that_fills_the_disk_is_told_and_the_records_stay_readable(
    checkout: Checkout, tell: Callable[..., None]
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
        ("unshare", "-m", "sh", "-c", script, "sh", *checkout.command(*SERVING)),
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
    tell("log fills the disk", done.returncode, "disk_full", left)
    assert done.returncode == 11, done.stdout + done.stderr
    assert "disk_full" in done.stdout, done.stdout + done.stderr
    lines = (checkout.folder / "kept" / "records.jsonl").read_text().splitlines()
    assert "selected" in [json.loads(line)["record"] for line in lines]
    assert left == LEFT_NOTHING


def test_a_clock_that_jumps_changes_no_verdict(
    checkout: Checkout, tell: Callable[..., None]
) -> None:
    done = checkout.run("-p", "jumping_clock", "-k", "c1", fault="takes-time")
    left = checkout.left()
    tell("clock jumps by an hour", done.status, str(done.verdicts["c1"]), left)
    assert (done.status, done.verdicts) == (0, {"c1": "PASS"}), done.output
    seconds = [line["seconds"] for line in done.records("measurement")]
    assert 0 < min(seconds) <= max(seconds) < 600
    clock = [datetime.fromisoformat(line["at"]) for line in done.records("measurement")]
    assert max(clock) - min(clock) > timedelta(minutes=30)  # it did jump
    assert left == LEFT_NOTHING


def test_a_hang_is_found_though_the_clock_jumps(
    checkout: Checkout, tell: Callable[..., None]
) -> None:
    checkout.edit(lambda text: text.replace("silence_s: 20", "silence_s: 3"))
    done = checkout.run("-p", "jumping_clock", *SERVING, fault="client-hangs")
    left = checkout.left()
    (ended,) = done.records("verdict")
    tell("clock jumps in a hang", done.status, ended["error"]["class"], left)
    assert (done.status, ended["error"]["class"]) == (11, "hang"), done.output
    assert (checkout.scenario / "start-1-reference" / "server.evidence.txt").exists()
    assert left == LEFT_NOTHING


def test_two_runs_started_at_once_take_turns(checkout: Checkout, tell: Callable[..., None]) -> None:
    words = ("perf_tests/test_accuracy.py", "--record", "--run-dir")
    with (
        checkout.session(*words, "one", fault="takes-time") as one,
        checkout.session(*words, "two", fault="takes-time") as two,
    ):
        statuses = [session.wait(100) for session in (one, two)]
        left = checkout.left()
    tell("two runs at once", max(statuses), "NO_BASELINE twice", left)
    assert statuses == [0, 0]
    spans = sorted(_measuring(checkout.folder / name) for name in ("one", "two"))
    assert spans[0][1] < spans[1][0]
    assert left == LEFT_NOTHING


def _measuring(run: Path) -> tuple[float, float]:
    """When a run began to start its server, and when its measurement ended."""
    events = [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]
    starts = [
        one["clock"] for one in events if (one["event"], one.get("kind")) == ("begin", "start")
    ]
    ends = [one["clock"] for one in events if one["event"] == "end"]
    return min(starts), max(ends)
