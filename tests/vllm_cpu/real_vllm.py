"""Sessions of the suite on a real vLLM on the CPU, and what they leave behind.

Sessions are watched from outside: by their processes, the files that perfgate writes and the port.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

ROOT = Path(__file__).parents[2]
REQUIRED = os.environ.get("PERFGATE_REQUIRE_VLLM") == "1"
PROGRAM = "PERFGATE_PROGRAM_VLLM_SERVE"
CLIENT = "PERFGATE_PROGRAM_VLLM"
MODELS = "PERFGATE_MODELS"
MODEL = "SmolLM2-135M-Instruct"
PATIENCE_S = 900  # a crowded machine is slow: a start takes half a minute on two quiet cores
_SCORES = ["accuracy:perfgate_arithmetic:exact_match:strict-match"]
SHARED_MEMORY = Path("/dev/shm")
# What a session's processes need to end when nobody waits for them: their wardens end them.
ENDING_S = 60

Change = Callable[[dict[str, Any], dict[str, Any]], None]


def require_vllm() -> None:
    """Skip where there is no vLLM for the CPU; fail where PERFGATE_REQUIRE_VLLM=1 demands one."""
    missing = [name for name in (PROGRAM, CLIENT, MODELS) if not os.environ.get(name)]
    why = f"needs {' and '.join(missing)}, which `make vllm-test` sets" if missing else ""
    if not missing and not (Path(os.environ[MODELS]) / MODEL / "config.json").is_file():
        why = f"no {MODEL} below {os.environ[MODELS]}: run `make vllm-env`"
    if why:
        (pytest.fail if REQUIRED else pytest.skip)(why)


@dataclass
class Traces:
    """What a session's processes were seen with while it ran."""

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
                    if _program(words) == "vllm serve" and "--port" in words:
                        self.ports.add(int(words[words.index("--port") + 1]))
                    maps = Path(f"/proc/{process.pid}/maps").read_text()
                    found = (line.partition("/dev/shm/")[2] for line in maps.splitlines())
                    self.shared_memory |= {one.removesuffix(" (deleted)") for one in found if one}

    def left(self) -> list[str]:
        """What of it is still there; a process that only waits to be reaped is gone."""
        found = []
        for (pid, created), words in self.processes.items():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                if process.create_time() == created and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"process {pid}: {words}")
        found += [str(SHARED_MEMORY / one) for one in self.shared_memory if _exists(one)]
        return found + [f"port {port}" for port in self.ports if listens(port)]


def _program(words: list[str]) -> str:
    """The program and its subcommand of a process that runs vLLM: ``vllm serve``."""
    called = (at for at, word in enumerate(words[:-1]) if word.endswith("/bin/vllm"))
    return next((f"vllm {words[at + 1]}" for at in called), "")


def _exists(name: str) -> bool:
    return (SHARED_MEMORY / name).exists()


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

    @property
    def records(self) -> list[dict[str, Any]]:
        lines = (self.run / "records.jsonl").read_text().splitlines()
        return [*map(json.loads, lines)]

    def left(self) -> list[str]:
        """What is left of it, after what its wardens need to end it."""
        deadline = time.monotonic() + ENDING_S
        while (found := self.traces.left()) and time.monotonic() < deadline:
            time.sleep(0.5)
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.records if line["record"] == kind]


@dataclass(frozen=True)
class Checkout:
    """A gate repository with one scenario, and a machine store of its own."""

    folder: Path

    def run(
        self,
        *options: str,
        act: Callable[["Running"], bool] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Session:
        """Run the suite to its end.

        Args:
            options: further options of pytest.
            act: called twice a second until it says that it did what it was to do.
            environment: further variables.
        """
        run = self.folder / "run"
        log = self.folder / "output.txt"
        argv = [sys.executable, "-m", "pytest", *BENCHMARK, "-q", "-p", "no:cacheprovider"]
        argv += ["-m", "vllm_cpu and opt_in", "--run-dir", str(run), *options]
        settings = {
            **inherited(),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
            "PERFGATE_ROOT": str(self.folder),
            "PERFGATE_HOME": str(self.folder / "home"),
            **ONLY_NEEDED_PLUGINS,
            **(environment or {}),
        }
        traces, deadline, did = Traces(), time.monotonic() + PATIENCE_S, act is None
        with log.open("w") as output:
            process = subprocess.Popen(
                argv, cwd=self.folder, env=settings, stdout=output, stderr=subprocess.STDOUT
            )
            try:
                while process.poll() is None and time.monotonic() < deadline:
                    traces.look(process.pid)
                    if not did and act is not None:
                        did = act(Running(process, run))
                    time.sleep(0.5)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait(ENDING_S)
        text = log.read_text()
        assert time.monotonic() < deadline, text
        assert did, f"the session ended before anything was done to it:\n{text}"
        return Session(process.returncode, text, run, traces)


@dataclass(frozen=True)
class Running:
    """A session that runs."""

    process: "subprocess.Popen[bytes]"
    run: Path

    def server(self, title: str) -> psutil.Process | None:
        """The process of the server with this title; ``vllm serve``: the first one."""
        with suppress(psutil.NoSuchProcess):
            for one in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    words = one.cmdline()
                    if title in (*words[:1], _program(words)):
                        return one
        return None

    def is_loaded(self) -> bool:
        """Whether a client has begun to write: its load is under way, or nearly."""
        return any(self.run.glob("*/start-*/c*/client.out"))

    def port(self) -> int | None:
        """The port that perfgate gave the server, which it has not opened yet."""
        for script in self.run.glob("*/start-*/server.sh"):
            found = re.search(r"--port[\s\\]+(\d+)", script.read_text())
            if found:
                return int(found[1])
        return None


def checkout(folder: Path, change: Change | None = None, name: str = "bench") -> Checkout:
    """A repository with one of the scenarios: one start of it, no reference.

    Args:
        folder: made here.
        name: ``bench``, which vLLM's own client loads, or ``serve``.
        change: changes the scenario, and the defaults of its file.
    """
    plain = yaml.safe_load((ROOT / "scenarios" / "local" / "smollm2_vllm.yaml").read_text())
    plain.pop("claims", None)
    (scenario,) = [one for one in plain["scenarios"] if one["id"].endswith(name)]
    plain["scenarios"] = [scenario]
    scenario.pop("gate", None)
    if change is not None:
        change(scenario, plain["defaults"])
    kept = plain["defaults"]["gate"]["disturbance"]
    plain["defaults"]["gate"] = {
        "metrics": ["output_throughput", *_SCORES[: len(scenario.get("accuracy", ()))]],
        "max_starts": 1,
        "disturbance": kept,
    }
    plain["defaults"]["limits"]["start_s"] = 600
    (folder / "scenarios").mkdir(parents=True)
    (folder / "baselines").mkdir()
    (folder / "scenarios" / "vllm.yaml").write_text(yaml.safe_dump(plain))
    shutil.copy(ROOT / "scenarios" / "markers.yaml", folder / "scenarios")
    for needed in ("perf_tests", "fixtures"):
        shutil.copytree(ROOT / needed, folder / needed)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "conftest.py").write_text("pytest_plugins = ['perfgate.suite.plugin']\n")
    return Checkout(folder)
