"""Small checkouts with stand-ins for their programs, and the sessions of pytest in them.

The stand-ins of tests/standins are real processes behind real sockets; only their speed is made up.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import forked
import psutil
import pytest
from registered_standins import registered_standins
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited, untraced

from perfgate.release.recomputation import Recomputed, recompute_run
from perfgate.release.required_tests import SuiteTests
from perfgate.runs.ended_run import read_run
from perfgate.scenarios.files import load_suite

ROOT = Path(__file__).parents[2]
STANDINS = ROOT / "tests" / "standins"
PLUGINS = (*XDIST, *BENCHMARK)
PATIENCE_S = 180  # how long to wait for what must happen; a crowded machine is slow
ACCURACY = "perf_tests/test_accuracy.py"
SERVING = "perf_tests/test_serving.py"
POINT = (SERVING, "-k", "c1")
SWEEP = (SERVING, "perf_tests/test_sweep.py")
SLOWER = ("--inject", "engine.settings.cpu_threads=1")
METRIC = "accuracy:sums:exact_match:strict-match"
NAMED = ("--by", "Ada", "--reason", "as it was")


@dataclass
class Finished:
    """A finished pytest session."""

    status: int
    output: str
    folder: Path

    def records(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / "records.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["record"] == kind]

    @property
    def verdicts(self) -> dict[str, str]:
        return {line["probe"]: line["verdict"] for line in self.records("verdict")}


@dataclass
class Suite:
    """A small checkout."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        paths = (str(ROOT), str(ROOT / "src"), str(STANDINS))
        return {
            **inherited(),
            "PYTHONPATH": os.pathsep.join(paths),
            "PERFGATE_ROOT": str(self.folder),
            "PERFGATE_HOME": str(self.folder / "home"),
            "PERFGATE_STANDIN_COUNTER": str(self.folder / "starts"),
            **ONLY_NEEDED_PLUGINS,
        }

    def command(self, *options: str) -> list[str]:
        """The call of a session in the run folder, unless the options name a run to go on with."""
        is_resumed = any(one.startswith("--resume") for one in options)
        where = () if is_resumed else ("--run-dir", str(self.folder / "run"))
        return [sys.executable, "-m", "pytest", *PLUGINS, "-q", *where, *options]

    def run(self, *options: str, fault: str = "", **variables: str) -> Finished:
        """A session in a new run folder, to its end."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        return self.session(*options, PERFGATE_STANDIN_FAULT=fault, **variables)

    def again(self, *options: str) -> Finished:
        """A session that goes on with the last one's run, to its end."""
        return self.session(f"--resume={self.folder / 'run'}", *options)

    def session(self, *options: str, **variables: str) -> Finished:
        """A session in the run folder as it is, to its end."""
        environment = {**self.environment, **variables}
        done = forked.run(self.command(*options), cwd=self.folder, env=environment)
        return Finished(*forked.outcome(done), self.folder / "run")

    @contextmanager
    def begun(self, *options: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
        """A session that runs while the block does; killed at its end if it still runs."""
        session = subprocess.Popen(
            self.command(*options),
            cwd=self.folder,
            env={**untraced(self.environment), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield session
        finally:
            session.kill()
            session.communicate()

    def perfgate(
        self, *words: str, folder: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """A command of perfgate in this checkout, or in a folder."""
        call = [sys.executable, "-m", "perfgate", *words]
        return forked.run(call, cwd=folder or self.folder, env=self.environment)

    def promote(self, run: Path, build: str, scenario: str = "standin-serve") -> None:
        """Make what a run measured of a build the baseline."""
        candidate = str(self.folder / f"home/candidates/cpu/{scenario}/{build}.json")
        for words in (("record", str(run)), ("promote", candidate, *NAMED)):
            done = self.perfgate("baseline", *words)
            assert done.returncode == 0, done.stderr

    def edit(self, *changes: tuple[str, str]) -> None:
        """Replace one text by another in its scenarios, each found there."""
        path = self.folder / "scenarios" / "standin.yaml"
        text = path.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)

    def add_to_conftest(self, text: str) -> None:
        with (self.folder / "conftest.py").open("a") as file:
            file.write(text)

    @property
    def starts(self) -> int:
        """Servers started so far."""
        path = self.folder / "starts"
        return int(path.read_text()) if path.exists() else 0

    def processes(self) -> list[psutil.Process]:
        """What is left of the sessions, wardens and stand-ins of this checkout.

        Told by the environment, or by the working folder: the title that an xdist worker gives
        itself overwrites its environment, and one that is just ending has none.
        """
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and self._is_ours(process):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
                continue  # gone, or going: its /proc goes bit by bit
        return found

    def _is_ours(self, process: psutil.Process) -> bool:
        if process.environ().get("PERFGATE_HOME") == str(self.folder / "home"):
            return True
        return process.pid != os.getpid() and Path(process.cwd()).is_relative_to(self.folder)

    def wait_until_empty(self) -> list[psutil.Process]:
        """The processes still there after a generous while; empty as soon as there are none."""
        deadline = time.monotonic() + 30
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left


def make_suite(folder: Path) -> Suite:
    """A checkout of its own in an empty folder."""
    (folder / "scenarios").mkdir(parents=True)
    shutil.copy(STANDINS / "standin.yaml", folder / "scenarios")
    (folder / "baselines").mkdir()
    shutil.copytree(ROOT / "perf_tests", folder / "perf_tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    made = Suite(folder)
    with_plugins(made)
    return made


def with_plugins(suite: Suite, *more: str) -> None:
    """Have the sessions of a checkout load the stand-ins, and more plugins."""
    plugins = ["perfgate.suite.plugin", "standin", *more]
    (suite.folder / "conftest.py").write_text(f"pytest_plugins = {plugins!r}\n")


def copied(suite: Suite, folder: Path) -> Suite:
    """The checkout, its machine store included, in another folder."""
    shutil.copytree(suite.folder, folder, dirs_exist_ok=True)
    return Suite(folder)


# A band that is given instead of one that is measured: the fewest starts decide.
GIVEN_BAND = (
    ("noise: measured", "bands: {output_throughput: 0.25}"),
    ("reference_starts: 4", "reference_starts: 1"),
)
STORED = ("reference: self", "reference: stored")


def document_a_score(suite: Suite) -> None:
    """Give the accuracy task a documented value, and the tasks that it takes to miss it."""
    suite.edit(("fewshot: 0}", "fewshot: 0, limit: 50}"))
    documented = suite.folder / "baselines" / "documented"
    documented.mkdir()
    source = {"document": "made.md", "section": "up", "engine_version": "1.0"}
    values = {METRIC: {"value": 0.75, "stderr": 0.03}}
    whole = {"schema_version": 1, "scenario": "standin-serve", "source": source, "values": values}
    (documented / "standin-serve.json").write_text(json.dumps(whole))


def junit(suite: Suite) -> tuple[ElementTree.Element, dict[str, ElementTree.Element]]:
    """The element of all tests in a session's JUnit XML, and name → that of one test."""
    (whole,) = ElementTree.parse(suite.folder / "junit.xml").getroot()  # noqa: S314 (pytest's own)
    return whole, {str(one.get("name")): one for one in whole.iter("testcase")}


def recomputed(checkout: Suite, run: Path | None = None) -> dict[str, Recomputed]:
    """Test → what the raw files of a run give, by default the last one's."""
    loaded = load_suite(checkout.folder / "scenarios" / "standin.yaml")
    with registered_standins():
        found = recompute_run(read_run(run or checkout.folder / "run"), SuiteTests.of(loaded))
    assert found
    return {one.test: one for one in found}


def differences(found: dict[str, Recomputed]) -> list[str]:
    """What the records say otherwise than the raw files."""
    return [told for one in found.values() for told in one.differences]


def wait_for(path: Path) -> None:
    wait_until(path.exists)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("waited in vain")
        time.sleep(0.05)
