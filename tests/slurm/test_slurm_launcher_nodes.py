"""Starts that share an allocation: each node for one of them at a time."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from clusters import Cluster, eventually
from starts import allocation, nodes_of, on_nodes

from perfgate.core.errors import RunError
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.launcher import SlurmLauncher, free_nodes
from perfgate.machine.leases import kept_open
from perfgate.scenarios.scenario import Hardware

NODES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.3"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of locks of this test's own."""
    locks = tmp_path / "locks"
    locks.mkdir()
    monkeypatch.setenv("PERFGATE_LEASES", str(locks))
    return locks


@contextmanager
def taken(count: int, limit_s: float = 30.0, **changes: Any) -> Iterator[tuple[str, ...]]:
    """So many nodes of an allocation for one start."""
    needs = replace(SCENARIO, hardware=Hardware("none", 0, count))
    request = replace(PlacementRequest(needs, Path("a"), 60.0, lambda _: None), **changes)
    with free_nodes("7", NODES, request, limit_s) as nodes:
        yield nodes


def taken_for_a_moment(*needs: Any, **changes: Any) -> tuple[str, ...]:
    with taken(*needs, **changes) as nodes:
        return nodes


def test_each_start_has_nodes_of_its_own_and_who_waits_is_told_who_has_them() -> None:
    told: list[str] = []
    with ThreadPoolExecutor(1) as other:
        with taken(1, folder=Path("the first run")) as ours:
            assert ours == ("n1",)
            assert other.submit(taken_for_a_moment, 2).result(60) == ("n2", "n3")
            with pytest.raises(RunError) as caught:
                other.submit(taken_for_a_moment, 3, limit_s=0.2).result(60)
            waiting = other.submit(taken_for_a_moment, 3, tell=told.append)
            eventually(lambda: told)
        assert waiting.result(60) == ("n1", "n2", "n3")
    assert "waiting for 3 nodes of job 7: n1 held by run the first run (pid " in told[0]
    assert caught.value.failure == "pending_too_long"
    assert "n1 held by run the first run (pid " in str(caught.value)


def test_no_file_of_a_job_that_is_over_stays(folder: Path) -> None:
    with taken(3):
        assert len(list(folder.glob("slurm-7-*"))) == 3
    assert list(folder.glob("slurm-*")) == []


def test_what_still_runs_keeps_its_node(folder: Path) -> None:
    with taken(1) as ours, kept_open() as descriptors:
        kept = [os.dup(one) for one in descriptors]
    try:
        with taken(1) as next_one:
            assert next_one != ours
    finally:
        for one in kept:
            os.close(one)
    with taken(1) as again:
        assert again == ours


def place(request: PlacementRequest, name: str, by: SlurmLauncher, **changes: Any) -> list[str]:
    """The nodes of a start in a folder of that name."""
    request = replace(request, folder=request.folder.parent / name, **changes)
    with by.placed(request) as placement:
        return nodes_of(placement)


@pytest.mark.slow
def test_two_starts_in_one_allocation_have_different_nodes_and_a_third_waits(
    start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    waits = SlurmLauncher(SlurmSite(pending_limit_s=1.0))
    with allocation(slurm, "-N2") as job, ThreadPoolExecutor(1) as other:  # as another worker
        monkeypatch.setenv("SLURM_JOB_ID", job)
        with SlurmLauncher().placed(start_request) as first:
            second = other.submit(place, start_request, "second", SlurmLauncher())
            assert second.result(60) != nodes_of(first)
            two = on_nodes(start_request, Hardware("none", 0, 2))
            third = other.submit(place, two, "third", waits, tell=told.append)
            with pytest.raises(RunError) as caught:
                third.result(60)
    assert caught.value.failure == "pending_too_long"
    assert str(start_request.folder) in told[0]


@pytest.mark.slow
@pytest.mark.parametrize("in_allocation", [False, True], ids=["login", "allocation"])
def test_a_control_is_on_the_node_of_the_start_that_it_tells_of(
    start_request: PlacementRequest,
    slurm: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    in_allocation: bool,
) -> None:
    launcher = SlurmLauncher()
    control = launcher.with_image("own#old:1")
    with ExitStack() as stack:
        if in_allocation:
            job = stack.enter_context(allocation(slurm, "-N3", "-wn1,n2,n3"))
            monkeypatch.setenv("SLURM_JOB_ID", job)
        for number, by in enumerate((launcher, control, launcher)):
            assert place(start_request, str(number), by, nodes=("n3",)) == ["n3"]
        launcher.bad.add("n3")
        assert place(start_request, "other", control, nodes=("n3",)) != ["n3"]
