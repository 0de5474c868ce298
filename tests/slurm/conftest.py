"""The cluster that the tests of this folder share; one per worker process."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import Cluster, eventually, running
from roads import Road, make_road

from perfgate.core.files.paths import repository
from perfgate.launchers.base import PlacementRequest
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario


@pytest.fixture(scope="session")
def slurm() -> Iterator[Cluster]:
    """Four nodes with 8 pretended GPUs each, and an sshd on port 2233."""
    with running(SLURM_WITH_SSHD="1") as cluster:
        yield cluster


@pytest.fixture
def road(tmp_path: Path, slurm: Cluster) -> Iterator[Road]:
    """A checkout of stand-ins; nothing of its sessions may be left after the test."""
    road = make_road(tmp_path, slurm)
    yield road
    try:
        eventually(lambda: not road.jobs())
        assert road.steps() == []
        eventually(lambda: not road.processes())
    finally:
        slurm.run(("scancel", *(line.split()[0] for line in road.jobs())))


@pytest.fixture
def scenario() -> Scenario:
    (found,) = load_scenarios(repository() / "scenarios" / "local" / "smollm2.yaml")
    return found


@pytest.fixture
def start_request(
    tmp_path: Path, slurm: Cluster, monkeypatch: pytest.MonkeyPatch, scenario: Scenario
) -> PlacementRequest:
    """A start of the embedded default's, asked for by a client of the cluster."""
    for name in [name for name in os.environ if name.startswith(("SLURM", "SBATCH"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    return PlacementRequest(scenario, tmp_path / "start", 60.0, lambda _: None)
