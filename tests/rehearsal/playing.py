"""A stage with the suite's own scenarios, and how a stand-in is run on it."""

import os
import shlex
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import forked

from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.rehearsal.faults import parse_fault
from perfgate.rehearsal.setup import set_up
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario

ROOT = Path(__file__).parents[2]
MIN_LATENCY = "b200-r1-fp4-min-latency"  # trtllm-bench, real prompts, MTP; documented values
SERVED = "b200-r1-0528-fp8-serve"  # trtllm-serve, benchmark_serving, gsm8k
STREAMED = "h200-r1-fp8-chunked-context-off"  # trtllm-bench, streaming, synthetic prompts
UNSTREAMED = "h200-r1-fp8-explore"
OLD = "h200-v3-fp8-2node-mpirun"  # its document's release is the oldest of all
WEIGHED = "gb200-r1-fp4-chat-streaming"  # its document says how large the weights are
SHAREGPT = "h200-r1-0528-fp8-sharegpt"  # vllm bench serve
GPQA = "h200-v3-fp8-gpqa"
GPQA_EVAL = "h200-v3-fp8-gpqa-eval"
QUICKSTART = "h200-v3-fp8-quickstart"


DATA = '{"task_id": 0, "input_ids": [1, 2], "output_tokens": 4}\n'


@cache
def scenarios() -> Mapping[str, Scenario]:
    return {scenario.id: scenario for scenario in load_scenarios(ROOT / "scenarios")}


@dataclass(frozen=True)
class Ended:
    """How a stand-in ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Stage:
    """A stage: where it is, and the environment that it gives."""

    folder: Path
    env: Mapping[str, str]
    version: str | None

    @property
    def locations(self) -> Locations:
        return Locations(
            models=self.folder / "models",
            datasets=self.folder / "datasets",
            source=self.folder / "source",
            hosts=tuple(self.env["PERFGATE_HOSTS"].split()),
        )

    def build(self, scenario: Scenario) -> EngineBuild:
        version = self.version or scenario.source.engine_version or "1.0.0"
        return EngineBuild("tensorrt-llm", version, version)

    def environment(self, scenario: str, probe: str = "", start: int = 1) -> dict[str, str]:
        marks = {"PERFGATE_SCENARIO": scenario, "PERFGATE_PROBE": probe}
        return {**os.environ, **self.env, **marks, "PERFGATE_START": str(start)}

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def run(
        self,
        argv: Sequence[str],
        folder: Path,
        scenario: str = MIN_LATENCY,
        probe: str = "",
        start: int = 1,
    ) -> Ended:
        """Run a stand-in to its end in `folder`: without the start of Python, where it is one."""
        env = self.environment(scenario, probe, start)
        script = Path(argv[0])
        if script.parent == self.folder / "bin":
            _, python, *call = shlex.split(script.read_text().splitlines()[-1])
            words = [python, *call[:-1], *argv[1:]]  # all but "$@"
            done = forked.run(words, cwd=folder, env=env, timeout=60, traced=True)
        else:
            done = subprocess.run(
                argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
            )
        return Ended(done.returncode, done.stdout, done.stderr)

    def step(
        self, command: Command, folder: Path, scenario: str, probe: str = "", start: int = 1
    ) -> Ended:
        """Run a rendered command as the launcher would, its logs in ``benchmark.out`` and .err."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in command.files.items():
            (folder / name).write_text(content)
        ended = self.run(command.argv, folder, scenario, probe, start)
        (folder / (command.stdout or "benchmark.out")).write_text(ended.out)
        (folder / "benchmark.err").write_text(ended.err)
        return ended


Put = Callable[..., Stage]  # of a release and a fault, or none


def staged(
    folder: Path,
    version: str | None = None,
    fault: str | None = None,
    cases: Iterable[Scenario] | None = None,
) -> Stage:
    """Stage the whole suite, or these scenarios alone, below `folder`."""
    env = set_up(
        folder,
        scenarios().values() if cases is None else cases,
        engine_version=version,
        fault=parse_fault(fault) if fault else None,
        seed=7,
    )
    return Stage(folder, env, version)


@contextmanager
def serving(
    argv: Sequence[str], url: str, folder: Path, env: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """A server from when it is healthy on; its logs are ``server.out`` and ``server.err``."""
    with (folder / "server.out").open("w") as out, (folder / "server.err").open("w") as err:
        server = subprocess.Popen(argv, cwd=folder, env=env, stdout=out, stderr=err)
        try:
            deadline = time.monotonic() + 60
            while not _is_healthy(url):
                assert server.poll() is None, (folder / "server.err").read_text()
                assert time.monotonic() < deadline, "the server never came up"
                time.sleep(0.05)
            yield server
        finally:
            server.terminate()
            server.wait(30)


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return True
    except OSError:
        return False
