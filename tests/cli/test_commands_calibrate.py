"""`perfgate calibrate` with the stand-ins of tests/standins, as processes of their own."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from perfgate.baselines.stored_json import with_hash

ROOT = Path(__file__).parents[2]
STANDINS = ROOT / "tests" / "standins"
# The stand-ins register themselves when they are imported.
CALL = "import sys, standin; from perfgate.cli.main import main; sys.exit(main())"


@dataclass
class Checkout:
    """A small checkout with stand-ins for its programs."""

    folder: Path

    @property
    def noise(self) -> Path:
        return self.folder / "home" / "noise" / "cpu" / "history" / "run.json"

    @property
    def run_folder(self) -> Path:
        return self.folder / "run"

    def environment(self, fault: str = "", **more: str) -> dict[str, str]:
        paths = (str(ROOT), str(ROOT / "src"), str(STANDINS))
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PERFGATE_ROOT": str(self.folder),
            "PERFGATE_HOME": str(self.folder / "home"),
            "PERFGATE_STANDIN_COUNTER": str(self.folder / "starts"),
            "PERFGATE_STANDIN_FAULT": fault,
            **more,
        }

    def command(self, *words: str) -> list[str]:
        run = ["--run-dir", str(self.run_folder)]
        return [sys.executable, "-c", CALL, "calibrate", "standin-serve", *run, *words]

    def calibrate(
        self, *words: str, fault: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(self.run_folder, ignore_errors=True)
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment(fault, **more),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def edit(self, change: Callable[[str], str]) -> None:
        path = self.folder / "scenarios" / "standin.yaml"
        path.write_text(change(path.read_text()))

    def stored(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.noise.read_text())
        return found

    def records(self) -> list[dict[str, Any]]:
        lines = (self.run_folder / "records.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def processes(self) -> list[psutil.Process]:
        """What is left of this checkout's stand-ins and wardens."""
        found = []
        for process in psutil.process_iter():
            try:
                home = process.environ().get("PERFGATE_HOME")
                if process.status() != psutil.STATUS_ZOMBIE and home == str(self.folder / "home"):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "scenarios").mkdir()
    shutil.copy(STANDINS / "standin.yaml", tmp_path / "scenarios")
    (tmp_path / "baselines").mkdir()
    return Checkout(tmp_path)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("waited in vain")
        time.sleep(0.05)


@pytest.mark.slow
def test_a_calibration_from_start_to_file(checkout: Checkout) -> None:
    done = checkout.calibrate("--starts", "3")
    assert done.returncode == 0, done.stderr
    stored = checkout.stored()
    assert (stored["kind"], stored["run"], stored["hardware"]) == ("calibration", "run", "cpu")
    found = {(one["probe"], one["repeat"]): one for one in stored["series"]}
    assert list(found) == [("c1", 1), ("c2", 1), ("c1", 2), ("c2", 2)]
    # The stand-in's speed differs from start to start and never on one.
    first, second = found["c1", 1]["values"], found["c1", 2]["values"]
    assert len(set(first["output_throughput"])) == 3
    assert first["output_throughput"] == second["output_throughput"]
    assert all(one["own"] for one in stored["series"])

    assert "standin-serve on cpu, stand-in 1.0: 3 fresh starts, each point measured 2 times" in (
        done.stdout
    )
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("throughput"))
    assert row[-2:] == ["8+0", "3.00%"]  # two points, two repeats, two differences each
    assert "session 1 of 3: calibrate again on another night" in done.stdout
    assert "it is used on this machine" in done.stdout
    assert "standin-serve: step 1 of 15: start 1" in done.stderr

    assert int((checkout.folder / "starts").read_text()) == 3
    records = checkout.records()
    assert {line["record"] for line in records} == {"calibration"}
    assert [(line["start"], line["repeat"], line["probe"]) for line in records[:5]] == [
        (1, 1, "c1"),
        (1, 1, "c2"),
        (1, 2, "c1"),
        (1, 2, "c2"),
        (2, 1, "c1"),
    ]
    facts = json.loads((checkout.run_folder / "run.json").read_text())
    assert (facts["purpose"], facts["synthetic"]) == ("calibrate", False)
    assert (checkout.run_folder / "standin-serve/start-3-calibration/server.out").is_file()
    until(lambda: not checkout.processes())

    # Another night adds a session to the first, and both are told of.
    checkout.noise.rename(checkout.noise.with_name("night-1.json"))
    moved = {**stored, "run": "night-1"}
    checkout.noise.with_name("night-1.json").write_text(json.dumps(with_hash(moved)))
    again = checkout.calibrate("--repeats", "1", "--points", "c2", "--format", "json")
    assert again.returncode == 0, again.stderr
    plain = json.loads(again.stdout)
    assert (plain["file"], plain["sessions"], plain["starts"]) == (str(checkout.noise), 2, 2)
    told = plain["families"]["throughput"]
    assert (told["differences_within"], told["differences_between"]) == (9, 1)
    assert told["sigma"] == pytest.approx(math.hypot(told["start"], told["session"]))


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["die-at-start", "failed-requests"])
def test_too_few_good_starts_store_nothing(checkout: Checkout, fault: str) -> None:
    done = checkout.calibrate("--starts", "6", fault=fault)
    assert done.returncode == 1
    assert "2 of 2 fresh starts failed" in done.stderr
    assert "next step:" in done.stderr
    assert f"run folder: {checkout.run_folder}" in done.stderr
    assert not checkout.noise.exists()
    assert int((checkout.folder / "starts").read_text()) == 2
    until(lambda: not checkout.processes())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_calibration_leaves_nothing_running(
    checkout: Checkout, number: signal.Signals
) -> None:
    session = subprocess.Popen(
        checkout.command("--starts", "5"),
        cwd=checkout.folder,
        env=checkout.environment("client-hangs"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    client = checkout.run_folder / "standin-serve/start-1-calibration/repeat-1/c1/client.out"
    try:
        until(client.exists)
        until(lambda: len(checkout.processes()) >= 4)
        session.send_signal(number)
        _, told = session.communicate(timeout=60)
    finally:
        session.kill()
        session.communicate()
    assert session.returncode == 130
    assert "interrupted; no noise was stored" in told
    assert not checkout.noise.exists()
    until(lambda: not checkout.processes())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--starts", "1"], "--starts: too few fresh starts to see any noise"),
        (["--repeats", "0"], "--repeats: nothing would be measured"),
        (["--points", "c3"], "--points: no such point of the sweep"),
        (["--launcher", "slrum"], "unknown launcher"),
    ],
)
def test_bad_wishes_are_refused_before_anything_starts(
    checkout: Checkout, words: list[str], problem: str
) -> None:
    done = checkout.calibrate(*words)
    assert done.returncode == 2
    assert problem in done.stderr
    assert not checkout.run_folder.exists()
    assert not (checkout.folder / "starts").exists()


def test_numbers_of_a_rehearsal_are_never_stored(checkout: Checkout) -> None:
    done = checkout.calibrate(PERFGATE_REHEARSAL="/somewhere/playbook.json")
    assert done.returncode == 2
    assert "PERFGATE_REHEARSAL: the stand-ins of a rehearsal have no noise" in done.stderr
    assert not checkout.run_folder.exists()


def test_an_unknown_scenario_and_one_without_load_are_refused(checkout: Checkout) -> None:
    words = checkout.command()
    words[words.index("standin-serve")] = "standin-srve"
    done = subprocess.run(
        words, env=checkout.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "did you mean standin-serve?" in done.stderr


def test_a_machine_without_the_gpus_is_told(checkout: Checkout) -> None:
    checkout.edit(
        lambda text: text.replace("gpu: none, gpus: 0", "gpu: B200, gpus: 1").replace(
            "reference: self", "reference: stored"
        )
    )
    done = checkout.calibrate()
    assert done.returncode == 2
    assert "this machine cannot run the scenario" in done.stderr
    assert "needs 1×B200" in done.stderr
    assert not checkout.run_folder.exists()


def test_where_each_measurement_is_a_start_nothing_can_be_repeated(checkout: Checkout) -> None:
    checkout.edit(lambda text: text.replace("client: stand-in", "client: stand-in-offline"))
    done = checkout.calibrate("--repeats", "2")
    assert done.returncode == 2
    assert "each measurement is a fresh start" in done.stderr
    assert not checkout.run_folder.exists()
