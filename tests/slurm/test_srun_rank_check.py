"""The ranks of a launch say who they are, by the real Slurm, PMIx and Open MPI."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster

from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.rank_check import check_ranks
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm import script
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.machine.preflight import Check
from perfgate.scenarios.scenario import Hardware, Launch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("slurm")]

MPI4PY = Path(__file__).parents[1] / "mpi" / "programs"  # a stand-in over the real library
# Which two Slurm says: a node that still clears up after an earlier test's job is not among them.
ON_TWO_NODES = r"4 of 4 ranks: n\d 2, n\d 2"
SITE = SlurmSite(gres="gpu:{gpus}")


@pytest.fixture
def two_nodes(
    start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
) -> PlacementRequest:
    """Two nodes of two pretended GPUs each."""
    for name, value in slurm.env.items():
        if name.startswith("OMPI_"):
            monkeypatch.setenv(name, value)
    scenario = replace(
        start_request.scenario, hardware=Hardware("H200", 4, 2), launch=Launch("srun")
    )
    return replace(start_request, scenario=scenario)


def check(request: PlacementRequest) -> Check | None:
    with SlurmLauncher(SITE).placed(request) as placement:
        folder = request.folder / "ranks"
        return check_ranks(placement, request.scenario, Locations(), None, folder)


def with_mpi(flavour: str) -> Callable[..., list[str]]:
    """Options of srun with another process manager than PMIx."""
    real = script.step_options

    def options(*words: Any, **given: Any) -> list[str]:
        return real(*words, **{**given, "mpi": flavour})

    return options


def test_all_ranks_answer_and_reach_each_other_over_pmix(
    two_nodes: PlacementRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(MPI4PY))
    found = check(two_nodes)
    assert found is not None
    assert found.outcome == "ok"
    assert re.match(f"{ON_TWO_NODES}; reached each other by mpi4py", found.found), found.found


def test_without_mpi4py_slurms_variables_tell(two_nodes: PlacementRequest) -> None:
    found = check(two_nodes)
    assert found is not None
    assert found.outcome == "warning"
    assert re.fullmatch(ON_TWO_NODES, found.found.partition(";")[0]), found.found


def test_ranks_without_a_process_manager_are_a_mismatch(
    two_nodes: PlacementRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a container's Open MPI whose PMIx does not know Slurm's."""
    monkeypatch.setenv("PYTHONPATH", str(MPI4PY))
    monkeypatch.setattr(script, "step_options", with_mpi("none"))
    with pytest.raises(RunError) as caught:
        check(two_nodes)
    assert caught.value.failure == "pmi_mismatch"
    assert "srun --mpi=list" in caught.value.hint


def test_a_process_manager_that_slurm_does_not_have(
    two_nodes: PlacementRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "step_options", with_mpi("pmix_v99"))
    with pytest.raises(RunError) as caught:
        check(two_nodes)
    assert caught.value.failure == "pmi_mismatch"
    assert "0 of 4 ranks answered" in caught.value.message


def test_nothing_is_left(slurm: Cluster) -> None:
    assert not slurm.run(("squeue", "-h", "-o", "%A %T %j")).stdout
