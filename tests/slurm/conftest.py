"""The cluster that the tests of this folder share; one per worker process."""

from collections.abc import Iterator

import pytest
from clusters import Cluster, running


@pytest.fixture(scope="session")
def slurm() -> Iterator[Cluster]:
    """Four nodes with 8 pretended GPUs each, and an sshd on port 2233."""
    with running(SLURM_WITH_SSHD="1") as cluster:
        yield cluster
