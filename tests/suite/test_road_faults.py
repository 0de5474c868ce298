"""Faults on the whole road: programs that fail, disks that fill, sessions that are killed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from sessions import untraced
from test_road import Finished, Suite, _wait_for, _wait_until, suite

__all__ = ["suite"]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        ("die-at-start", "model_file"),
        ("wrong-model", "start_timeout"),
        ("never-ready", "start_timeout"),
        ("die-on-load", "server_died"),
        ("client-fails", "client_failed"),
        ("client-hangs", "hang"),
        ("failed-requests", "incomplete"),
        ("zeros", "incomplete"),
        ("cut", "truncated_output"),
        ("no-result", "no_metrics"),
    ],
)
def test_a_fault_is_an_error_with_its_class_never_a_number(
    suite: Suite, fault: str, failure: str
) -> None:
    suite.edit(lambda text: text.replace("start_s: 20, silence_s: 20", "start_s: 3, silence_s: 3"))
    done = suite.run("perf_tests/test_serving.py", fault=fault)
    assert done.status == 11, done.output
    assert set(done.verdicts.values()) == {"ERROR"}
    assert {line["error"]["class"] for line in done.records("verdict")} == {failure}
    assert "next step:" in done.output
    assert suite.wait_until_empty() == []


def test_a_crash_fails_what_needed_the_server_and_is_told_once(suite: Suite) -> None:
    done = suite.run("perf_tests", "--self-reference", "stored", fault="die-after-load")
    assert done.status == 11, done.output
    told = {line["probe"]: line["error"] for line in done.records("verdict")}
    assert {error["class"] for error in told.values()} == {"server_died"}
    assert "right after a measurement" in told["c1"]["message"]
    for probe in ("c2", "sums"):  # the sweep has c1's own words
        assert told[probe]["message"].startswith("not measured, as c1 failed before it")
    assert len(list(done.folder.rglob("server.sh"))) == 1
    assert suite.wait_until_empty() == []


def test_two_runs_in_one_folder_are_refused(suite: Suite) -> None:
    first = subprocess.Popen(
        suite.command("perf_tests/test_serving.py"),
        cwd=suite.folder,
        env={**untraced(suite.environment), "PERFGATE_STANDIN_FAULT": "never-ready"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(suite.folder / "run" / "records.jsonl")
        second = suite.again()
    finally:
        first.terminate()
        first.wait(60)
    assert second.returncode == 4, second.stdout
    assert "another run is writing to this folder" in second.stdout + second.stderr
    third = suite.again()
    assert third.returncode == 4
    assert "already holds a run" in third.stdout + third.stderr


@pytest.fixture
def small_disk(suite: Suite) -> Iterator[Callable[[int], Path]]:
    """Makes the run folder a file system of its own, of so many MiB."""
    folder = suite.folder / "run"
    folder.mkdir()

    def mount(mebibytes: int) -> Path:
        call = ["mount", "-t", "tmpfs", "-o", f"mode=0700,size={mebibytes}m", "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(call, check=False, capture_output=True).returncode:
            pytest.skip("needs the right to mount a small file system")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_small_disk_is_told_before_anything_starts(
    suite: Suite, small_disk: Callable[[int], Path]
) -> None:
    folder = small_disk(100)
    done = suite.again("perf_tests/test_serving.py")
    assert done.returncode == 11, done.stdout
    assert "run folder: 100 MiB free" in done.stdout
    assert not list(folder.rglob("server.sh"))


def test_a_disk_that_fills_is_told_and_leaves_readable_records(
    suite: Suite, small_disk: Callable[[int], Path]
) -> None:
    folder = small_disk(1100)
    with subprocess.Popen(
        suite.command("perf_tests/test_serving.py"),
        cwd=suite.folder,
        env={**suite.environment, "PERFGATE_STANDIN_FAULT": "takes-time"},  # to fill it meanwhile
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        wait_until(lambda: any(folder.rglob("client.sh")))
        fill(folder / "full")
        said = run.communicate(timeout=120)[0]
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert run.returncode != 0
    assert "disk_full" in said
    assert json.loads(lines[0])["record"] == "selected"
    assert suite.wait_until_empty() == []


def fill(file: Path) -> None:
    """Write until there is no room left."""
    piece = bytes(1 << 20)
    with file.open("wb", buffering=0) as out:
        while piece:
            try:
                out.write(piece)
            except OSError:
                piece = piece[: len(piece) // 2]


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("stage", ["start", "load"])
def test_nothing_outlives_a_killed_session_and_its_records_stay_readable(
    suite: Suite, number: signal.Signals, stage: str
) -> None:
    fault = {"start": "never-ready", "load": "client-hangs"}[stage]
    session = subprocess.Popen(
        suite.command("perf_tests/test_serving.py"),
        cwd=suite.folder,
        env={**untraced(suite.environment), "PERFGATE_STANDIN_FAULT": fault},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    folder = suite.folder / "run" / "standin-serve" / "start-1-reference"
    _wait_for(folder / "server.out" if stage == "start" else folder / "c1" / "client.out")
    _wait_until(lambda: len(suite.processes()) >= 3)
    session.send_signal(number)
    status = session.wait(60)
    assert suite.wait_until_empty() == []
    assert status == (-number if number == signal.SIGKILL else 2)
    assert Finished(status, "", suite.folder / "run").records("selected")


def test_a_killed_worker_is_an_error_and_leaves_nothing(suite: Suite) -> None:
    session = subprocess.Popen(
        suite.command("perf_tests/test_serving.py", "-n", "1", "--max-worker-restart", "0"),
        cwd=suite.folder,
        env={**untraced(suite.environment), "PERFGATE_STANDIN_FAULT": "client-hangs"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    folder = suite.folder / "run" / "standin-serve" / "start-1-reference"
    try:
        _wait_for(folder / "c1" / "client.out")
        workers = [child for child in psutil.Process(session.pid).children() if _is_worker(child)]
        assert workers
        for worker in workers:
            worker.kill()
        output, _ = session.communicate(timeout=60)
    finally:
        session.kill()
        session.communicate()
    assert suite.wait_until_empty() == []
    assert session.returncode == 11, output


def _is_worker(process: psutil.Process) -> bool:
    return any("serve" in word or "execnet" in word for word in process.cmdline())
