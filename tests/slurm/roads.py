"""A checkout of stand-ins whose pytest sessions measure through a Slurm cluster."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from clusters import Cluster, eventually
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS

ROOT = Path(__file__).parents[2]
STANDINS = ROOT / "tests" / "standins"
PROBES = {"c1", "c2"}
PATIENCE_S = 300
ONE_PROBE = ("-k", "c1")  # the other one would get a start of its own


@dataclass
class Road:
    """The checkout."""

    folder: Path
    cluster: Cluster

    @property
    def environment(self) -> dict[str, str]:
        paths = (str(ROOT), str(ROOT / "src"), str(STANDINS))
        return {
            **self.cluster.env,
            "PYTHONPATH": os.pathsep.join(paths),
            "PERFGATE_ROOT": str(self.folder),
            "PERFGATE_HOME": str(self.folder / "home"),
            "PERFGATE_STANDIN_COUNTER": str(self.folder / "starts"),
            **ONLY_NEEDED_PLUGINS,
        }

    @property
    def login(self) -> tuple[str, ...]:
        """What stands before a session, so that it is on the machine that sessions are on."""
        return self.cluster.login

    def site(self, text: str) -> None:
        """Write the site file's slurm section: ``field: value`` lines."""
        lines = "\n".join(f"  {line}" for line in text.splitlines())
        (self.folder / "site.yaml").write_text(f"schema_version: 1\nslurm:\n{lines}\n")

    def command(self, *options: str, run: str = "run") -> list[str]:
        return [
            *(sys.executable, "-m", "pytest", *BENCHMARK, "-q", "--launcher", "slurm"),
            *("--run-dir", str(self.folder / run), "perf_tests/test_serving.py", *options),
        ]

    @contextmanager
    def session(
        self, *options: str, before: tuple[str, ...] = (), fault: str = "", run: str = "run"
    ) -> Iterator["subprocess.Popen[str]"]:
        """A session where sessions are, killed at the end of the block if it is still there."""
        argv = (*self.login, *before, *self.command(*options, run=run))
        with subprocess.Popen(
            argv,
            cwd=self.folder,
            env={**self.environment, "PERFGATE_STANDIN_FAULT": fault},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as started:
            try:
                yield started
            finally:
                started.kill()

    def run(self, *options: str, before: tuple[str, ...] = (), fault: str = "") -> tuple[int, str]:
        """A session that ends by itself: its status, and its output."""
        with self.session(*options, before=before, fault=fault) as session:
            output, _ = session.communicate(timeout=PATIENCE_S)
        return session.returncode, output

    def until_loaded(self) -> None:
        """Wait until a client is at work."""
        eventually(self.client_runs)

    def measured(self) -> list[dict[str, Any]]:
        """The measurements under load of c1."""
        return [line for line in self.records("measurement") if line["probe"] == "c1"]

    def records(self, kind: str, run: str = "run") -> list[dict[str, Any]]:
        lines = (self.folder / run / "records.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["record"] == kind]

    def verdicts(self, run: str = "run") -> dict[str, str]:
        return {line["probe"]: line["verdict"] for line in self.records("verdict", run)}

    def failures(self) -> set[str]:
        ends = self.records("verdict")
        return {line["error"]["error_class"] for line in ends if line["error"] is not None}

    @property
    def starts(self) -> int:
        """Starts of the stand-in server so far."""
        counter = self.folder / "starts"
        return int(counter.read_text() or 0) if counter.exists() else 0

    def client_runs(self) -> bool:
        """Whether the stand-in client is at work on a node."""
        for one in self._ours():
            with suppress(psutil.Error):  # it may end while it is looked at
                words = " ".join(one.cmdline())
                if "standin_client.py" in words and one.name() not in ("srun", "env"):
                    return True
        return False

    def processes(self) -> list[str]:
        """What is left of this checkout's sessions, on whatever node."""
        return [f"{one.pid} {' '.join(one.cmdline())}" for one in self._ours()]

    def _ours(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                home = process.environ().get("PERFGATE_HOME")
                if home == str(self.folder / "home") and process.status() != psutil.STATUS_ZOMBIE:
                    process.cmdline()
                    yield process
            except psutil.Error:
                continue

    def jobs(self) -> list[str]:
        """Numbers and states of the jobs that have not ended."""
        return self.cluster.run(("squeue", "-h", "-o", "%A %T %j")).stdout.splitlines()

    def steps(self) -> list[str]:
        """Steps that have not ended."""
        return self.cluster.run(("squeue", "-h", "-s", "-o", "%i %j")).stdout.splitlines()

    def job_id(self) -> str:
        """The number of the only job."""
        (line,) = self.jobs()
        return line.split()[0]


def make_road(folder: Path, cluster: Cluster) -> Road:
    """A checkout of its own in `folder`."""
    (folder / "scenarios").mkdir()
    (folder / "baselines").mkdir()
    text = (STANDINS / "standin.yaml").read_text()
    fewer = text.replace("reference_starts: 4", "reference_starts: 3")  # each is a job of its own
    (folder / "scenarios" / "standin.yaml").write_text(fewer)
    shutil.copytree(ROOT / "perf_tests", folder / "perf_tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    plugins = ["perfgate.suite.plugin", "standin"]
    (folder / "conftest.py").write_text(f"pytest_plugins = {plugins!r}\n")
    return Road(folder, cluster)
