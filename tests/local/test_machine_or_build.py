"""A slow machine, a slow build, both: told apart by the embedded default for real, on any machine.

Real servers, a real client, real load on the cores; only kinds of verdicts are looked at, as what
the machine does beside is not known. Each session takes minutes: `make nightly` runs them.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited
from sizes import IS_NIGHTLY

from perfgate.clients.aiperf import AIPerf
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.llama_cpp import LlamaCpp

ROOT = Path(__file__).parents[2]
SLOWED = ("--inject=engine.settings.cpu_threads=8", "--inject=engine.settings.max_num_tokens=4")
NO_LOSS = ("PASS", "IMPROVEMENT", "INCONCLUSIVE")
TURNS = [*("reference", "new", "new", "reference")] * 2
# Busy until whoever started it is gone.
BURN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(100_000))\n"
PATIENCE_S = 900  # a crowded machine is slow

pytestmark = [
    *(pytest.mark.real, pytest.mark.slow, pytest.mark.nightly),
    pytest.mark.skipif(not IS_NIGHTLY, reason="takes minutes: PERFGATE_NIGHTLY=1"),
]


@dataclass(frozen=True)
class Session:
    """What a session of the suite with one test ended with."""

    status: int
    output: str
    records: list[dict[str, Any]]

    @property
    def roles(self) -> list[str]:
        return [line["role"] for line in self.records if line["record"] == "measurement"]

    def require(self, *verdicts: str) -> list[dict[str, Any]]:
        """Check verdict and exit status; skips where nothing can be told on this machine."""
        (line,) = [line for line in self.records if line["record"] == "verdict"]
        judgements: list[dict[str, Any]] = line["judgements"]
        statuses = {"REGRESSION": 1, "INCONCLUSIVE": 10}
        assert self.status == statuses.get(line["verdict"], 0)
        if line["verdict"] not in verdicts and {one["mark"] for one in judgements} == {"MACHINE"}:
            pytest.skip("this machine was too noisy to tell a slowed build")
        assert line["verdict"] in verdicts, self.output
        return judgements


@dataclass(frozen=True)
class Checkout:
    """A checkout with the embedded default, one concurrency of it, and a machine store."""

    folder: Path

    def run(self, *options: str) -> Session:
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *BENCHMARK, "-q", "-p", "no:cacheprovider"]
            + ["perf_tests/test_serving.py", "--run-dir", str(run), *options],
            cwd=self.folder,
            env={
                **inherited(),
                "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
                "PERFGATE_ROOT": str(self.folder),
                "PERFGATE_HOME": str(self.folder / "home"),
                **ONLY_NEEDED_PLUGINS,
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        output = done.stdout + done.stderr
        assert (run / "records.jsonl").exists(), output
        lines = (run / "records.jsonl").read_text().splitlines()
        return Session(done.returncode, output, [*map(json.loads, lines)])


@contextmanager
def busy_cores() -> Iterator[None]:
    """Two programs for each core that compute and do nothing else."""
    argv = [sys.executable, "-c", BURN, str(os.getpid())]
    burners = [subprocess.Popen(argv) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        yield
        assert all(one.poll() is None for one in burners), "they burned all the time"
    finally:
        for one in burners:
            one.kill()
            one.wait()


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    """Skip where the programs of the embedded default are not installed."""
    try:
        LlamaCpp().build(Locations())
        AIPerf().version(EngineBuild("llama.cpp", "1.0", "1.0"), Locations())
    except (MissingProgram, InputError) as error:
        pytest.skip(f"the embedded default is not installed: {error}")


def checkout_in(folder: Path) -> Checkout:
    """An empty folder made a checkout: no accuracy, one concurrency, few starts."""
    plain = yaml.safe_load((ROOT / "scenarios" / "local" / "smollm2.yaml").read_text())
    (scenario,) = plain["scenarios"]
    del scenario["accuracy"]
    scenario["workload"].update(concurrency=[1], requests=4, osl=16)
    metrics = ["output_throughput", "server_cpu_s_per_1k_tokens"]
    starts = {"reference_starts": 4, "max_starts": 4}
    alone = {"blocks": 0, "disturbance": {"others_cpu": 1, "steal": 1, "cpu_clock": 0}}
    scenario["gate"].update(metrics=metrics, noise="measured", bands={}, **starts, **alone)
    (folder / "scenarios").mkdir(parents=True)
    (folder / "baselines").mkdir()
    (folder / "scenarios" / "local.yaml").write_text(yaml.safe_dump(plain))
    shutil.copytree(ROOT / "perf_tests", folder / "perf_tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "conftest.py").write_text("pytest_plugins = ['perfgate.suite.plugin']\n")
    return Checkout(folder)


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, Session]:
    """A slowed build, in turns with the machine's own reference, which is then stored."""
    checkout = checkout_in(tmp_path_factory.mktemp("slowed") / "checkout")
    return checkout, checkout.run("--self-reference", "fresh", *SLOWED)


def test_a_slowed_build_is_a_regression(slowed: tuple[Checkout, Session]) -> None:
    _, session = slowed
    assert session.roles[: len(TURNS)] == TURNS
    session.require("REGRESSION")
    assert "injected: engine.settings.cpu_threads=8" in session.output


@pytest.mark.parametrize(
    ("build", "verdicts"),
    [((), NO_LOSS), (SLOWED, ("REGRESSION", "INCONCLUSIVE"))],
    ids=["same", "slowed"],
)
def test_on_a_busy_machine_no_slow_build_passes_and_no_other_is_a_regression(
    tmp_path: Path, build: tuple[str, ...], verdicts: tuple[str, ...]
) -> None:
    checkout = checkout_in(tmp_path / "checkout")
    with busy_cores():
        checkout.run("--self-reference", "fresh", *build).require(*verdicts)


@pytest.mark.parametrize(
    ("is_busy", "build", "verdicts"),
    [
        (True, (), NO_LOSS),
        (False, SLOWED, ("REGRESSION",)),
        (True, SLOWED, ("REGRESSION", "INCONCLUSIVE")),
    ],
    ids=["busy", "slowed", "both"],
)
def test_controls_tell_the_build_from_a_machine_that_was_quieter_when_it_measured_its_reference(
    slowed: tuple[Checkout, Session],
    tmp_path: Path,
    is_busy: bool,
    build: tuple[str, ...],
    verdicts: tuple[str, ...],
) -> None:
    checkout = Checkout(shutil.copytree(slowed[0].folder, tmp_path / "checkout"))
    with busy_cores() if is_busy else nullcontext():
        session = checkout.run("--self-reference", "stored", *build)
    judgements = session.require(*verdicts)
    assert "reference" not in session.roles
    if len(session.roles) > 2:  # a loss was suspected
        assert "baseline_control" in session.roles
    if not is_busy:
        assert any(one["controls_used"] for one in judgements)
