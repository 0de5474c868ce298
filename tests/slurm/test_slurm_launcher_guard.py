"""The cleanup guard: whatever ends it, and whenever, a job that was submitted is cancelled."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import eventually

from perfgate.launchers.local.launcher import GUARD


class Kept:
    """A guard whose sbatch and scancel are scripts that write down their calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.beat = folder / "beat"

    def program(self, name: str, script: str) -> None:
        file = self.folder / name
        file.write_text(f'#!/bin/sh\necho {name} "$@" >> {self.log}\n{script}\n')
        file.chmod(0o755)

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[str]"]:
        call = {"guards": "job", "sbatch": ["sbatch", "x"], "beat": str(self.beat), "every_s": 0.05}
        with subprocess.Popen(
            (sys.executable, "-I", "-S", str(GUARD), json.dumps(call)),
            env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            text=True,
        ) as guard:
            try:
                yield guard
            finally:
                guard.kill()

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    kept = Kept(tmp_path)
    kept.program("sbatch", "echo '12;here'")
    kept.program("scancel", "")
    return kept


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_tells_the_job_gives_signs_of_life_and_cancels(kept: Kept, sent: signal.Signals) -> None:
    with kept.running() as guard:
        assert guard.stdout is not None
        assert json.loads(guard.stdout.readline()) == {"job": "12"}
        seen = kept.beat.read_text()
        eventually(lambda: kept.beat.read_text() != seen)
        assert kept.calls == ["sbatch x"]
        guard.send_signal(sent)
        assert guard.wait(timeout=60) == 0
    assert kept.calls == ["sbatch x", "scancel 12"]


def test_a_signal_in_the_middle_of_sbatch_does_not_lose_the_job(kept: Kept) -> None:
    kept.program("sbatch", "sleep 1; echo 12")
    kept.program("scancel", "sleep 0.2; echo done >> $0.log")
    with kept.running() as guard:
        eventually(lambda: kept.calls == ["sbatch x"])
        # As the wardens do: to the guard and to what it started.
        (child,) = Path(f"/proc/{guard.pid}/task/{guard.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        guard.send_signal(signal.SIGTERM)
        assert guard.wait(timeout=60) == 0
    assert kept.calls == ["sbatch x", "scancel 12"]
    assert (kept.folder / "scancel.log").read_text() == "done\n"


def test_without_a_reader_it_still_cancels(kept: Kept) -> None:
    with kept.running() as guard:
        assert guard.stdout is not None
        guard.stdout.close()
        eventually(lambda: guard.poll() is not None or kept.beat.exists())
        guard.send_signal(signal.SIGTERM)
        guard.wait(timeout=60)
    assert kept.calls == ["sbatch x", "scancel 12"]


def test_what_sbatch_refuses_is_not_cancelled(kept: Kept) -> None:
    kept.program("sbatch", "exit 3")
    with kept.running() as guard:
        assert guard.wait(timeout=60) == 3
    assert kept.calls == ["sbatch x"]
