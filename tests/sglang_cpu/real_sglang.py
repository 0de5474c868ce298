"""Sessions of the suite on a real SGLang on the CPU, and what they leave behind.

Its kernels are stubs (ci/sglang_stubs.py), so no number of such a session is looked at. Sessions
are watched from outside: by their processes and by what perfgate writes.
"""

import json
import os
import re
import shutil
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
REQUIRED = os.environ.get("PERFGATE_REQUIRE_SGLANG") == "1"
SERVER = "PERFGATE_PROGRAM_SGLANG"
CLIENT = "PERFGATE_PROGRAM_SGLANG_BENCH_SERVING"
MODELS = "PERFGATE_MODELS"
MODEL = "SmolLM2-135M-Instruct"
SCHEDULER, DETOKENIZER, PARENT = "sglang::scheduler", "sglang::detokenizer", "launch_server"
PATIENCE_S = 1200  # a start takes 20 s on two idle cores, and minutes on crowded ones
ENDING_S = 60

Change = Callable[[dict[str, Any], dict[str, Any]], None]


def require_sglang() -> None:
    """Skip where there is none; fail where PERFGATE_REQUIRE_SGLANG=1 demands one."""
    missing = [name for name in (SERVER, CLIENT, MODELS) if not os.environ.get(name)]
    why = f"needs {' and '.join(missing)}, which `make sglang-test` sets" if missing else ""
    if not missing and not (Path(os.environ[MODELS]) / MODEL / "config.json").is_file():
        why = f"no {MODEL} below {os.environ[MODELS]}: run `make sglang-env`"
    if why:
        (pytest.fail if REQUIRED else pytest.skip)(why)


@dataclass(frozen=True)
class Running:
    """A session that runs."""

    process: "subprocess.Popen[bytes]"
    run: Path

    def of_server(self, title: str) -> psutil.Process | None:
        """The process of the server with this title; `PARENT`: the one that was launched."""
        with suppress(psutil.NoSuchProcess):
            for one in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    words = one.cmdline()
                    if title in words[:1] or (title == PARENT and f"sglang.{PARENT}" in words[1:3]):
                        return one
        return None

    def is_loaded(self) -> bool:
        """Whether the client's load is under way."""
        logs = self.run.glob("*/start-*/c*/client.out")
        return any("Starting main benchmark run" in one.read_text() for one in logs)

    def port(self) -> int | None:
        """The port that perfgate gave the server, which it opens when the model is loaded."""
        for script in self.run.glob("*/start-*/server.sh"):
            if found := re.search(r"--port[\s\\]+(\d+)", script.read_text()):
                return int(found[1])
        return None


@dataclass(frozen=True)
class Session:
    """What a session ended with."""

    status: int
    output: str
    run: Path
    seen: dict[tuple[int, float], str] = field(default_factory=dict)

    def of(self, kind: str) -> list[dict[str, Any]]:
        lines = map(json.loads, (self.run / "records.jsonl").read_text().splitlines())
        return [line for line in lines if line["record"] == kind]

    def log(self) -> str:
        """All that the server wrote."""
        return "".join(one.read_text() for one in self.run.glob("*/start-*/server.[eo][ru][rt]"))

    def left(self) -> list[str]:
        """Which of its processes still run, after what their wardens need to end them."""
        deadline = time.monotonic() + ENDING_S
        while (found := [*filter(None, map(self._alive, self.seen))]) and (
            time.monotonic() < deadline
        ):
            time.sleep(0.5)
        return found

    def _alive(self, one: tuple[int, float]) -> str:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(one[0])
            if process.create_time() == one[1] and process.status() != psutil.STATUS_ZOMBIE:
                return f"process {one[0]}: {self.seen[one]}"
        return ""


@dataclass(frozen=True)
class Checkout:
    """A gate repository with the one scenario, and a machine store of its own."""

    folder: Path

    def run(
        self,
        act: Callable[[Running], bool] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Session:
        """Run the suite to its end.

        Args:
            act: called twice a second until it says that it did what it was to do.
            environment: further variables.
        """
        run, log = self.folder / "run", self.folder / "output.txt"
        argv = [sys.executable, "-m", "pytest", *BENCHMARK, "-q", "-p", "no:cacheprovider"]
        argv += ["-m", "sglang_cpu and opt_in", "--run-dir", str(run)]
        settings = {
            **inherited(),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
            "PERFGATE_ROOT": str(self.folder),
            "PERFGATE_HOME": str(self.folder / "home"),
            **ONLY_NEEDED_PLUGINS,
            **(environment or {}),
        }
        seen: dict[tuple[int, float], str] = {}
        deadline, did = time.monotonic() + PATIENCE_S, act is None
        with log.open("w") as output:
            process = subprocess.Popen(
                argv, cwd=self.folder, env=settings, stdout=output, stderr=subprocess.STDOUT
            )
            try:
                while process.poll() is None and time.monotonic() < deadline:
                    _note(process.pid, seen)
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
        return Session(process.returncode, text, run, seen)


def _note(session: int, seen: dict[tuple[int, float], str]) -> None:
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(session).children(recursive=True):
            with suppress(psutil.Error):
                words = " ".join(process.cmdline())
                seen[process.pid, process.create_time()] = words[:120]


def checkout(folder: Path, change: Change | None = None) -> Checkout:
    """A repository with the local scenario.

    Args:
        folder: made here.
        change: changes the scenario, and the defaults of its file.
    """
    plain = yaml.safe_load((ROOT / "scenarios" / "local" / "smollm2_sglang.yaml").read_text())
    if change is not None:
        change(plain["scenarios"][0], plain["defaults"])
    (folder / "scenarios").mkdir(parents=True)
    (folder / "baselines").mkdir()
    (folder / "scenarios" / "sglang.yaml").write_text(yaml.safe_dump(plain))
    shutil.copy(ROOT / "scenarios" / "markers.yaml", folder / "scenarios")
    for needed in ("perf_tests", "fixtures"):
        shutil.copytree(ROOT / needed, folder / needed)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "conftest.py").write_text("pytest_plugins = ['perfgate.suite.plugin']\n")
    return Checkout(folder)
