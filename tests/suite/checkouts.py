"""Small checkouts with stand-ins for their programs, sessions of pytest in them, and rehearsals.

The stand-ins of tests/standins are real processes behind real sockets; only their speed is made up.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen
from typing import IO, Any, Self
from xml.etree import ElementTree

import forked
import psutil
import pytest
from plain_records import recorded
from registered_standins import registered_standins
from road_words import ACCURACY, FIRST, NAMED, PATIENCE_S, PLUGINS, ROOT, SECOND, STANDINS
from sessions import ONLY_NEEDED_PLUGINS, inherited, is_held, tracing

from perfgate.core.files.durable_files import append_line
from perfgate.release.policy import SuiteTests
from perfgate.release.recomputation import Recomputed, recompute_run
from perfgate.runs.ended_run import read_run
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.files import load_suite

Begun = AbstractContextManager["Popen[str]"]
CHANGED_FUNCTION = """
import os
import perfgate.core.errors as errors
import {module} as module

whole = module.{name}

def changed(*given, **more):
    if {when}:
        {does}
    return whole(*given, **more)

module.{name} = changed
"""


def says(text: str, *parts: str) -> None:
    """Fail unless each part stands in the text."""
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in:\n{text}"


@dataclass
class Finished:
    """A finished pytest session; its verdicts by the field `named` of their records."""

    status: int
    output: str
    folder: Path
    named: str = "probe"

    def records(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / "records.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["record"] == kind]

    @property
    def verdicts(self) -> dict[str, str]:
        return {line[self.named]: line["verdict"] for line in self.records("verdict")}

    @property
    def measured(self) -> list[dict[str, Any]]:
        return self.records("measurement")

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text()

    def require(self, status: int, verdicts: dict[str, str] | None = None, *told: str) -> None:
        """Fail unless it ended so, with these verdicts, and printed each of these texts."""
        assert self.status == status, self.output[-9000:]
        assert verdicts is None or self.verdicts == verdicts, self.output[-9000:]
        says(self.output, *told)


@contextmanager
def begun(
    call: Sequence[str], folder: Path, environment: Mapping[str, str], log: int | IO[str] = PIPE
) -> Iterator["Popen[str]"]:
    """A program that runs while the block does; killed at its end if it still runs."""
    program = Popen(
        call, cwd=folder, env=environment, stdin=DEVNULL, stdout=log, stderr=STDOUT, text=True
    )
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


@dataclass
class Suite:
    """A small checkout."""

    folder: Path

    @property
    def run_folder(self) -> Path:
        return self.folder / "run"

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
        where = () if is_resumed else ("--run-dir", str(self.run_folder))
        return [sys.executable, "-m", "pytest", *PLUGINS, "-q", *where, *options]

    def run(
        self, *options: str, fault: str = "", traced: bool = False, **variables: str
    ) -> Finished:
        """A session in a new run folder, to its end."""
        shutil.rmtree(self.run_folder, ignore_errors=True)
        variables["PERFGATE_STANDIN_FAULT"] = fault
        return self.session(*options, traced=traced, **variables)

    def session(self, *options: str, traced: bool = False, **variables: str) -> Finished:
        """A session in the run folder as it is, to its end; `traced` for the coverage."""
        env = {**self.environment, **variables}
        done = forked.run(self.command(*options), cwd=self.folder, env=env, traced=traced)
        return Finished(*forked.outcome(done), self.run_folder)

    def begun(self, *options: str, **variables: str) -> Begun:
        """A session in the background."""
        return begun(self.command(*options), self.folder, {**self.environment, **variables})

    def perfgate(self, *words: str, folder: Path | None = None) -> tuple[int, str]:
        """A command of perfgate in this checkout, or in a folder: its status and output."""
        call = [sys.executable, "-m", "perfgate", *words]
        return forked.outcome(forked.run(call, cwd=folder or self.folder, env=self.environment))

    def promote(self, run: Path, build: str, scenario: str = "standin-serve") -> None:
        """Make what a run measured of a build the baseline."""
        candidate = str(self.folder / f"home/candidates/cpu/{scenario}/{build}.json")
        for words in (("record", str(run)), ("promote", candidate, *NAMED)):
            status, output = self.perfgate("baseline", *words)
            assert status == 0, output

    def edit(self, *changes: tuple[str, str]) -> None:
        """Replace one text by another in its scenarios, each found there."""
        path = self.folder / "scenarios" / "standin.yaml"
        text = path.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)

    def scenarios_named(self, *names: str) -> None:
        """The stand-ins' scenario under each of these names, in their order."""
        text = (STANDINS / "standin.yaml").read_text()
        head, _, block = text.partition("  - id: standin-serve\n")
        text = head + "".join(f"  - id: {name}\n{block}" for name in names)
        (self.folder / "scenarios" / "standin.yaml").write_text(text)

    def copy(self, folder: Path) -> Self:
        """The checkout, its machine store included, in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return type(self)(folder)

    def change_at(self, module: str, name: str, does: str, when: str = "True") -> None:
        """Have a function of a module do something else in sessions, when called with `given`."""
        text = CHANGED_FUNCTION.format(module=module, name=name, does=does, when=when)
        with (self.folder / "conftest.py").open("a") as file:
            file.write(text)

    def junit(self) -> tuple[list[str | None], dict[str, ElementTree.Element]]:
        """Failures, errors and skips in a session's junit.xml, and name → element of one test."""
        (whole,) = ElementTree.parse(self.folder / "junit.xml").getroot()  # noqa: S314 (pytest's)
        counts = [whole.get(name) for name in ("failures", "errors", "skipped")]
        return counts, {str(one.get("name")): one for one in whole.iter("testcase")}

    def recomputed(self, run: Path | None = None) -> dict[str, Recomputed]:
        """Test → what the raw files of a run give, by default the last one's."""
        loaded = load_suite(self.folder / "scenarios" / "standin.yaml")
        with registered_standins():
            found = recompute_run(read_run(run or self.run_folder), SuiteTests.of(loaded))
        assert found
        return {one.test: one for one in found}

    def judged_again(self, run: Path | None = None) -> dict[str, str]:
        """Test → verdict by the raw files of a run; fails unless they give all that is recorded."""
        assert self.differences(run) == []
        found = self.recomputed(run)
        return {test: one.verdict.value for test, one in found.items() if one.verdict}

    def differences(self, run: Path | None = None) -> list[str]:
        """What the records of a run say otherwise than its raw files."""
        return [told for one in self.recomputed(run).values() for told in one.differences]

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


class Road(Suite):
    """A checkout of two scenarios with one accuracy task each, and sessions in one run folder."""

    def begun_hanging(self, *options: str, hangs: str) -> Begun:
        """A session while a block runs; on its start of scenario `hangs` the client hangs."""
        return self.begun(*_recording(options), PERFGATE_STANDIN_HANGS=hangs)

    def begin(self, *options: str, traced: bool = False) -> Finished:
        """A session to its end, by default a first one."""
        return self.session(*_recording(options), traced=traced)

    def resume(self, *options: str, traced: bool = False) -> Finished:
        """A session that goes on with the run, to its end."""
        return self.begin(f"--resume={self.run_folder}", *options, traced=traced)

    def evaluating(self, scenario: str) -> Path:
        """A file that is there once the client of the scenario's first start is at work."""
        return self.run_folder / scenario / "start-1-new" / "sums" / "evaluator.out"

    def records(self, kind: str) -> list[dict[str, Any]]:
        """The records that stand."""
        return recorded(RunFolder(self.run_folder), kind)

    def require_one_record_a_group(self, *groups: str) -> None:
        assert sorted(str(line["scenario"]) for line in self.records("group")) == sorted(groups)


def _recording(options: tuple[str, ...]) -> list[str]:
    # The accuracy tasks have no baseline to be judged by.
    return [*(() if "--gate" in options else ("--record",)), *options, ACCURACY]


NOTHING = {"processes": [], "leases": [], "ports": [], "shared memory": [], "temporary files": []}


class Watched(Suite):
    """A checkout of which all is known that a session could leave behind.

    It has leases, temporary files and shared memory of its own; its servers are families of
    processes with shared memory between them, as engines are.
    """

    @property
    def memory(self) -> str:
        """What the names of its files in /dev/shm begin with."""
        return f"perfgate-{self.folder.parent.name}-{os.getpid()}-"

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {
            "PERFGATE_LEASES": str(self.folder / "leases"),
            "PERFGATE_STANDIN_MEMORY": self.memory,
            "TMPDIR": str(self.folder / "temporary"),
        }

    def has(self) -> dict[str, list[str]]:
        """What of this checkout is there now, of all that could be left behind."""
        temporary = [one.name for one in (self.folder / "temporary").iterdir()]
        return {
            "processes": [words_of(one) for one in self.processes()],
            "leases": [one.name for one in (self.folder / "leases").iterdir() if is_held(one)],
            "ports": [str(port) for port in sorted(self._listening())],
            "shared memory": [one.name for one in self.memories()],
            # pytest removes all but the last three of its own
            "temporary files": [one for one in temporary if not one.startswith("pytest-of-")],
        }

    def left(self) -> dict[str, list[str]]:
        """What is there when all processes are gone, or a generous while has passed."""
        self.wait_until_empty()
        return self.has()

    def memories(self) -> list[Path]:
        return list(Path("/dev/shm").glob(f"{self.memory}*"))

    def _listening(self) -> set[int]:
        """Ports of its servers on which something still listens, be it of an unknown process."""
        calls = [path.read_text() for path in self.folder.glob("run/*/start-*/server.sh")]
        ours = {int(port) for call in calls for port in re.findall(r"--port\W+(\d+)", call)}
        return {
            one.laddr.port
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN
            and one.laddr.port in ours
            and (one.pid is None or "standin" in words_of(psutil.Process(one.pid)))
        }


def words_of(process: psutil.Process | None) -> str:
    """The command line of a process; empty if it is gone."""
    try:
        return " ".join(process.cmdline()) if process else ""
    except psutil.Error:
        return ""


def make_suite(folder: Path, *plugins: str, scenarios: str = "standin.yaml") -> Suite:
    """A checkout of its own in an empty folder, whose sessions load the stand-ins and `plugins`."""
    (folder / "scenarios").mkdir(parents=True)
    shutil.copy(STANDINS / scenarios, folder / "scenarios" / "standin.yaml")
    (folder / "baselines").mkdir()
    shutil.copytree(ROOT / "perf_tests", folder / "perf_tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    loaded = ["perfgate.suite.plugin", "standin", *plugins]
    (folder / "conftest.py").write_text(f"pytest_plugins = {loaded!r}\n")
    return Suite(folder)


def make_road(folder: Path) -> Road:
    """Two scenarios, no session begun."""
    road = Road(make_suite(folder).folder)
    road.scenarios_named(FIRST, SECOND)
    return road


def rehearse(place: Path, *options: str, traced: bool = False, **variables: str) -> Finished:
    """A session of the real suite with stand-ins for the engine's programs; verdicts by name.

    Args:
        place: for its files; its run is in ``run``.
        options: of pytest.
        traced: it and its programs count for the coverage of the tests, which takes time.
        variables: of the environment.
    """
    words = [*PLUGINS, "-q", "-p", "no:cacheprovider", "perf_tests", "--rehearse", *options]
    if not any(one.startswith("--resume") for one in options):
        words.append(f"--run-dir={place / 'run'}")
    environment = rehearsal_environment(place, **variables, **(tracing() if traced else {}))
    session = forked.session(words, ROOT, environment, traced=traced)
    return Finished(*session, place / "run", "name")


def rehearsal_environment(place: Path, **variables: str) -> dict[str, str]:
    """That of a rehearsal with its files in `place`, and these variables."""
    return inherited("PERFGATE_") | {
        "PERFGATE_HOME": str(place / "home"),
        "PERFGATE_LEASES": os.environ["PERFGATE_LEASES"],
        **ONLY_NEEDED_PLUGINS,
        **variables,
    }


def run_alone(
    call: Sequence[str], folder: Path, environment: Mapping[str, str], umask: int = -1
) -> "subprocess.CompletedProcess[str]":
    """A program that needs a process of its own, to its end."""
    return subprocess.run(
        call,
        cwd=folder,
        env=environment,
        umask=umask,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def pytest_in(folder: Path, *words: str, **variables: str) -> tuple[int, str]:
    """A session in any folder, without stand-ins: its exit status and output."""
    environment = {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS, **variables}
    return forked.session((*PLUGINS, *words), folder, environment)


def rerecord(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change each record as somebody would who can compute the checksums."""
    path = run / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    for line in lines:
        line.pop("checksum", None)
        change(line)
        append_line(path, line, base=run / "run.json")


def twice_as_fast(line: dict[str, Any]) -> None:
    """A change for `rerecord`."""
    if line["record"] == "measurement":
        line["metrics"]["output_throughput"] *= 2


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("waited in vain")
        time.sleep(0.05)
