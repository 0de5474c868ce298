"""A slow machine, a slow build, both: told apart by the embedded default for real, on any machine.

Real servers, a real client, real load on the cores. How fast anything is does not matter here, and
what the machine does beside is not known: only kinds of verdicts are looked at.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited
from sizes import IS_NIGHTLY, sized

from perfgate.clients.aiperf import AIPerf
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.llama_cpp import LlamaCpp

ROOT = Path(__file__).parents[2]
SLOWED = (
    *("--inject", "engine.settings.cpu_threads=8"),
    *("--inject", "engine.settings.max_num_tokens=4"),
)
# With a band that is given the fewest starts decide; one that is measured needs some.
METRICS = ("output_throughput", "server_cpu_s_per_1k_tokens")
GIVEN = {
    "noise": "prior",
    "bands": dict.fromkeys(METRICS, 0.3),
    "reference_starts": 1,
    "max_starts": 2,
}
MEASURED = {"noise": "measured", "reference_starts": 4, "max_starts": 4}
TURNS = [*("reference", "new", "new", "reference")] * 2
# Busy until whoever started it is gone.
BURN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(100_000))\n"
PATIENCE_S = 900  # a crowded machine is slow

# Each session takes a minute or two on two quiet cores: the shortest of them on each push.
_SKIPPED = pytest.mark.skipif(not IS_NIGHTLY, reason="takes minutes: PERFGATE_NIGHTLY=1")

pytestmark = [pytest.mark.real, pytest.mark.slow]


def only_nightly(test: Callable[..., None]) -> Callable[..., None]:
    """A test that `make nightly` runs alone."""
    return pytest.mark.nightly(_SKIPPED(test))


@dataclass(frozen=True)
class Session:
    """What a session of the suite ended with."""

    status: int
    output: str
    records: list[dict[str, Any]]

    @property
    def verdict(self) -> str:
        (line,) = [line for line in self.records if line["record"] == "verdict"]
        return str(line["verdict"])

    @property
    def judgements(self) -> list[dict[str, Any]]:
        (line,) = [line for line in self.records if line["record"] == "verdict"]
        return list(line["judgements"])

    @property
    def roles(self) -> list[str]:
        return [line["role"] for line in self.records if line["record"] == "measurement"]


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
    cores = len(os.sched_getaffinity(0))
    argv = [sys.executable, "-c", BURN, str(os.getpid())]
    burners = [subprocess.Popen(argv) for _ in range(2 * cores)]
    try:
        yield
        assert all(one.poll() is None for one in burners), "they burned all the time"
    finally:
        for one in burners:
            one.kill()
        for one in burners:
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
    """An empty folder made a checkout: no accuracy, one concurrency, the fewest starts."""
    plain = yaml.safe_load((ROOT / "scenarios" / "local" / "smollm2.yaml").read_text())
    (scenario,) = plain["scenarios"]
    del scenario["accuracy"]
    scenario["workload"].update(concurrency=[1], requests=4, osl=16)
    gate = scenario["gate"]
    gate["metrics"] = list(METRICS)
    gate.update(sized(GIVEN, MEASURED))
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


@pytest.fixture
def with_reference(slowed: tuple[Checkout, Session], tmp_path: Path) -> Checkout:
    """A checkout whose machine has stored a reference of itself."""
    shutil.copytree(slowed[0].folder, tmp_path / "checkout")
    return Checkout(tmp_path / "checkout")


def skip_if_too_noisy(session: Session) -> None:
    """What runs beside may leave a machine on which nothing can be told, and the gate says so."""
    if session.verdict == "INCONCLUSIVE" and {"MACHINE"} == {
        one["mark"] for one in session.judgements
    }:
        assert session.status == 10
        pytest.skip("this machine was too noisy to tell a slowed build")


@pytest.mark.nightly
def test_a_slowed_build_is_a_regression(slowed: tuple[Checkout, Session]) -> None:
    _, session = slowed
    assert session.roles[: len(TURNS)] == sized(["new", "reference", "new"], TURNS)
    skip_if_too_noisy(session)
    assert session.verdict == "REGRESSION", session.output
    assert session.status == 1
    assert "injected: engine.settings.cpu_threads=8" in session.output


@only_nightly
def test_a_busy_machine_is_no_regression_of_the_build(tmp_path: Path) -> None:
    checkout = checkout_in(tmp_path / "checkout")
    with busy_cores():
        session = checkout.run("--self-reference", "fresh")
    assert session.verdict in ("PASS", "IMPROVEMENT", "INCONCLUSIVE"), session.output
    assert session.status in (0, 10)


@only_nightly
def test_a_slowed_build_on_a_busy_machine_never_passes(tmp_path: Path) -> None:
    checkout = checkout_in(tmp_path / "checkout")
    with busy_cores():
        session = checkout.run("--self-reference", "fresh", *SLOWED)
    assert session.verdict in ("REGRESSION", "INCONCLUSIVE"), session.output
    assert session.status in (1, 10)


class TestAgainstAStoredReference:
    """The machine was quieter when it measured its reference: controls tell it from the build."""

    @only_nightly
    def test_a_busy_machine_is_no_regression_of_the_build(self, with_reference: Checkout) -> None:
        with busy_cores():
            session = with_reference.run("--self-reference", "stored")
        assert "reference" not in session.roles
        assert session.verdict in ("PASS", "IMPROVEMENT", "INCONCLUSIVE"), session.output
        if len(session.roles) > 2:  # a loss was suspected
            assert "baseline_control" in session.roles

    @only_nightly
    def test_a_slowed_build_is_a_regression(self, with_reference: Checkout) -> None:
        session = with_reference.run("--self-reference", "stored", *SLOWED)
        skip_if_too_noisy(session)
        assert session.verdict == "REGRESSION", session.output
        assert session.roles.count("baseline_control") >= 1
        assert any(one["controls_used"] for one in session.judgements)

    @only_nightly
    def test_a_slowed_build_on_a_busy_machine_never_passes(self, with_reference: Checkout) -> None:
        with busy_cores():
            session = with_reference.run("--self-reference", "stored", *SLOWED)
        assert session.verdict in ("REGRESSION", "INCONCLUSIVE"), session.output
