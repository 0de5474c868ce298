"""The hosts that the tests of this folder share: a cluster's nodes, of which only ssh is used."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "slurm"))

from clusters import Cluster, eventually, running
from mpi_hosts import PROGRAMS, hosted


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Four hosts, each with its name, address, /dev/shm and sshd on port 2233."""
    with running(SLURM_WITH_SSHD="1") as cluster:
        yield cluster


@pytest.fixture
def hosts(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The hosts as this process reaches them; nothing may be left there after the test."""
    for name in [name for name in os.environ if name.startswith(("OMPI_", "PMIX_", "SLURM"))]:
        monkeypatch.delenv(name)
    for name, value in cluster.env.items():
        if name.startswith("OMPI_"):
            monkeypatch.setenv(name, value)
    program = f"{sys.executable} {PROGRAMS / 'llmapi_launch.py'}"
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_LLMAPI_LAUNCH", program)
    yield cluster
    eventually(lambda: not hosted(cluster))
