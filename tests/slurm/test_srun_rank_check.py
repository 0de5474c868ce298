"""The ranks of a launch say who they are, by the real Slurm, PMIx and Open MPI."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster
from starts import on_nodes

from perfgate.core.errors import RunError
from perfgate.core.programs.locations import Locations
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.rank_check import check_ranks
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm import script
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.machine.preflight import Check
from perfgate.scenarios.scenario import Hardware, Launch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("slurm")]

MPI4PY = Path(__file__).parents[1] / "mpi" / "programs"  # a stand-in over the real library
SITE = SlurmSite(gres="gpu:{gpus}")


@pytest.fixture
def two_nodes(
    start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
) -> PlacementRequest:
    """Two nodes of two pretended GPUs each."""
    for name, value in slurm.env.items():
        if name.startswith("OMPI_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(MPI4PY))
    return on_nodes(start_request, Hardware("H200", 4, 2), Launch("srun"))


def check(request: PlacementRequest) -> Check | None:
    with SlurmLauncher(SITE).placed(request) as placement:
        folder = request.folder / "ranks"
        return check_ranks(placement, Locations(), None, folder)


def with_mpi(flavour: str) -> Callable[..., list[str]]:
    """Options of srun with another process manager than PMIx."""
    real = script.step_options

    def options(*words: Any, **given: Any) -> list[str]:
        return real(*words, **{**given, "mpi": flavour})

    return options


def test_all_ranks_answer_and_reach_each_other_over_pmix(two_nodes: PlacementRequest) -> None:
    found = check(two_nodes)
    assert found is not None
    assert found.outcome == "ok"
    # Which two Slurm says: one that still clears up after an earlier job is not among them.
    told = r"4 of 4 ranks: n\d 2, n\d 2; reached each other by mpi4py"
    assert re.match(told, found.found), found.found


# As an Open MPI that does not know Slurm's PMIx; and one that this Slurm does not have.
@pytest.mark.parametrize("flavour", ["none", "pmix_v99"])
def test_ranks_without_a_process_manager_are_a_mismatch(
    two_nodes: PlacementRequest, monkeypatch: pytest.MonkeyPatch, flavour: str
) -> None:
    monkeypatch.setattr(script, "step_options", with_mpi(flavour))
    with pytest.raises(RunError) as caught:
        check(two_nodes)
    assert caught.value.failure == "pmi_mismatch"
    assert "srun --mpi=list" in caught.value.hint


def test_nothing_is_left(slurm: Cluster) -> None:
    assert not slurm.run(("squeue", "-h", "-o", "%A %T %j")).stdout
