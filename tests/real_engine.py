"""Sessions of the suite on a real engine on the CPU, and what they leave behind.

Sessions are watched from outside: by their processes, the files that perfgate writes and the port.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

ROOT = Path(__file__).parents[1]
MODELS = "PERFGATE_MODELS"
MODEL = "SmolLM2-135M-Instruct"
SHARED_MEMORY = Path("/dev/shm")
# What a session's processes need to end when nobody waits for them: their wardens end them.
ENDING_S = 60
OF_ENGINE = 11  # the exit status of a session whose engine failed

Plain = dict[str, Any]


@dataclass(frozen=True)
class RealEngine:
    """What the tests of one engine on the CPU need to know of it.

    Attributes:
        name: what `make NAME-test` and the marker ``NAME_cpu`` are called by.
        required: the variable that says so.
        needs: variables of its programs.
        patience_s: how long a session may take; a crowded machine is slow.
        is_server: whether the words of a process are those of the server's process of a title.
        loading: what its client prints when the load is under way.
        parent: the title of the process that is launched.
        keeps_memory: whether its shared memory is looked at.
    """

    name: str
    required: str
    needs: tuple[str, ...]
    patience_s: float
    is_server: Callable[[Sequence[str], str], bool]
    parent: str
    loading: str = ""
    keeps_memory: bool = False

    def require(self) -> None:
        """Skip where there is none; fail where one is required."""
        missing = [name for name in (*self.needs, MODELS) if not os.environ.get(name)]
        why = ""
        if missing:
            why = f"needs {' and '.join(missing)}, which `make {self.name}-test` sets"
        elif not (Path(os.environ[MODELS]) / MODEL / "config.json").is_file():
            why = f"no {MODEL} below {os.environ[MODELS]}: run `make {self.name}-env`"
        if why:
            (pytest.fail if os.environ.get(self.required) == "1" else pytest.skip)(why)


@dataclass
class Traces:
    """What a session's processes were seen with while it ran."""

    engine: RealEngine
    processes: dict[tuple[int, float], str] = field(default_factory=dict)
    shared_memory: set[str] = field(default_factory=set)
    ports: set[int] = field(default_factory=set)

    def look(self, session: int) -> None:
        """Add what is seen now; processes may end meanwhile."""
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(session).children(recursive=True):
                with suppress(psutil.Error, OSError):
                    words = process.cmdline()
                    self.processes[process.pid, process.create_time()] = " ".join(words)[:120]
                    if self.engine.is_server(words, self.engine.parent) and "--port" in words:
                        self.ports.add(int(words[words.index("--port") + 1]))
                    if self.engine.keeps_memory:
                        maps = Path(f"/proc/{process.pid}/maps").read_text()
                        found = (line.partition("/dev/shm/")[2] for line in maps.splitlines())
                        self.shared_memory |= {one.removesuffix(" (deleted)") for one in found}

    def left(self) -> list[str]:
        """What of it is still there; a process that only waits to be reaped is gone."""
        found = []
        for (pid, created), words in self.processes.items():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                if process.create_time() == created and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"process {pid}: {words}")
        memory = [SHARED_MEMORY / one for one in self.shared_memory if one]
        found += [str(one) for one in memory if one.exists()]
        return found + [f"port {port}" for port in self.ports if listens(port)]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class Session:
    """What a session of the suite ended with."""

    status: int
    output: str
    run: Path
    traces: Traces

    def of(self, kind: str) -> list[Plain]:
        lines = map(json.loads, (self.run / "records.jsonl").read_text().splitlines())
        return [line for line in lines if line["record"] == kind]

    def log(self) -> str:
        """All that the server wrote."""
        return "".join(one.read_text() for one in self.run.glob("*/start-*/server.[eo][ru][rt]"))

    def left(self) -> list[str]:
        """What is left of it, after what its wardens need to end it."""
        deadline = time.monotonic() + ENDING_S
        while (found := self.traces.left()) and time.monotonic() < deadline:
            time.sleep(0.5)
        return found

    def error(self) -> Plain:
        """The error of its one verdict; nothing was measured, and nothing is left."""
        assert self.left() == [], self.output
        (verdict,) = self.of("verdict")
        assert verdict["verdict"] == "ERROR", self.output
        assert self.of("measurement") == []
        assert self.status == OF_ENGINE, self.output
        error: Plain = verdict["error"]
        assert error["next_step"]
        assert error["message"] in self.output
        return error


@dataclass(frozen=True)
class Running:
    """A session that runs."""

    process: "subprocess.Popen[bytes]"
    run: Path
    engine: RealEngine

    def server(self, title: str) -> psutil.Process | None:
        """The process of the server with this title."""
        with suppress(psutil.NoSuchProcess):
            for one in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if self.engine.is_server(one.cmdline(), title):
                        return one
        return None

    def is_loaded(self) -> bool:
        """Whether the client's load is under way, or nearly."""
        logs = self.run.glob("*/start-*/c*/client.out")
        return any(self.engine.loading in one.read_text() for one in logs)

    def port(self) -> int | None:
        """The port that perfgate gave the server, which it has not opened yet."""
        for script in self.run.glob("*/start-*/server.sh"):
            if found := re.search(r"--port[\s\\]+(\d+)", script.read_text()):
                return int(found[1])
        return None


Act = Callable[[Running], bool]


def under_load(title: str, number: signal.Signals) -> Act:
    """Sends a signal to one process of the server once the client is at work."""

    def act(running: Running) -> bool:
        victim = running.server(title) if running.is_loaded() else None
        if victim is not None:
            victim.send_signal(number)
        return victim is not None

    return act


@dataclass(frozen=True)
class Checkout:
    """A gate repository with one scenario, and a machine store of its own."""

    folder: Path
    engine: RealEngine

    def run(self, act: Act | None = None, environment: Mapping[str, str] | None = None) -> Session:
        """Run the suite to its end.

        Args:
            act: called twice a second until it says that it did what it was to do.
            environment: further variables.
        """
        run, log = self.folder / "run", self.folder / "output.txt"
        argv = [sys.executable, "-m", "pytest", *BENCHMARK, "-q", "-p", "no:cacheprovider"]
        argv += ["-m", f"{self.engine.name}_cpu and opt_in", "--run-dir", str(run)]
        settings = {
            **inherited(),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
            "PERFGATE_ROOT": str(self.folder),
            "PERFGATE_HOME": str(self.folder / "home"),
            **ONLY_NEEDED_PLUGINS,
            **(environment or {}),
        }
        traces, did = Traces(self.engine), act is None
        deadline = time.monotonic() + self.engine.patience_s
        with log.open("w") as output:
            process = subprocess.Popen(
                argv, cwd=self.folder, env=settings, stdout=output, stderr=subprocess.STDOUT
            )
            try:
                while process.poll() is None and time.monotonic() < deadline:
                    traces.look(process.pid)
                    if not did and act is not None:
                        did = act(Running(process, run, self.engine))
                    time.sleep(0.5)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait(ENDING_S)
        text = log.read_text()
        assert time.monotonic() < deadline, text
        assert did, f"the session ended before anything was done to it:\n{text}"
        return Session(process.returncode, text, run, traces)


def local_scenarios(engine: RealEngine) -> Plain:
    """The suite's file for this engine on the CPU, as plain values."""
    file = ROOT / "scenarios" / "local" / f"smollm2_{engine.name}.yaml"
    plain: Plain = yaml.safe_load(file.read_text())
    return plain


def repository(folder: Path, engine: RealEngine, plain: Plain) -> Checkout:
    """A repository with these scenarios, made in a folder that is not there yet."""
    (folder / "scenarios").mkdir(parents=True)
    (folder / "baselines").mkdir()
    (folder / "scenarios" / f"{engine.name}.yaml").write_text(yaml.safe_dump(plain))
    shutil.copy(ROOT / "scenarios" / "markers.yaml", folder / "scenarios")
    for needed in ("perf_tests", "fixtures"):
        shutil.copytree(ROOT / needed, folder / needed)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "conftest.py").write_text("pytest_plugins = ['perfgate.suite.plugin']\n")
    return Checkout(folder, engine)
