"""Starts that share an allocation: each node for one of them at a time."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import Cluster, eventually
from starts import allocation, nodes_of

from perfgate.core.errors import RunError
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.launchers.slurm.nodes import NodeRequest, free_nodes
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


def asked(
    count: int, limit_s: float = 30.0, tell: Callable[[str], None] = lambda _: None, run: str = "a"
) -> NodeRequest:
    return NodeRequest("7", NODES, (), count, run, limit_s, tell)


class Other:
    """Another start, in a thread of its own."""

    def __init__(self, what: NodeRequest) -> None:
        self.taken: tuple[str, ...] = ()
        self.end = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(what,))
        self._thread.start()

    def _run(self, what: NodeRequest) -> None:
        with free_nodes(what) as self.taken:
            assert self.end.wait(60)

    def stop(self) -> None:
        self.end.set()
        self._thread.join(60)


@pytest.fixture
def others() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def started(others: ExitStack, what: NodeRequest) -> Other:
    one = Other(what)
    others.callback(one.stop)
    return one


def test_each_start_has_nodes_of_its_own(others: ExitStack) -> None:
    first = started(others, asked(1))
    eventually(lambda: first.taken)
    with free_nodes(asked(2)) as ours:
        assert (first.taken, ours) == (("n1",), ("n2", "n3"))


def test_who_waits_is_told_who_has_them_and_goes_on_when_they_are_free(others: ExitStack) -> None:
    told: list[str] = []
    first = started(others, asked(2, run="the first run"))
    eventually(lambda: first.taken)
    second = started(others, asked(2, tell=told.append))
    eventually(lambda: told)
    assert "waiting for 2 nodes of job 7: n1, n2 held by run the first run (pid " in told[0]
    first.stop()
    eventually(lambda: second.taken)


def test_the_wait_has_a_limit(others: ExitStack) -> None:
    first = started(others, asked(3))
    eventually(lambda: first.taken)
    with pytest.raises(RunError) as caught, free_nodes(asked(1, limit_s=0.2)):
        pass
    assert caught.value.failure == "pending_too_long"
    assert "n1, n2, n3 held by run a (pid " in str(caught.value)


def test_nodes_that_failed_are_not_taken() -> None:
    with free_nodes(replace(asked(2), avoid={"n1"})) as ours:
        assert ours == ("n2", "n3")


def test_no_file_of_a_job_that_is_over_stays(folder: Path) -> None:
    with free_nodes(asked(3)):
        assert len(list(folder.glob("slurm-7-*"))) == 3
    assert list(folder.glob("slurm-*")) == []


def test_what_still_runs_keeps_its_node(folder: Path) -> None:
    with free_nodes(asked(1)) as ours, kept_open() as descriptors:
        kept = [os.dup(one) for one in descriptors]
    try:
        with free_nodes(asked(1)) as next_one:
            assert next_one != ours
    finally:
        for one in kept:
            os.close(one)
    with free_nodes(asked(1)) as again:
        assert again == ours


def test_the_nodes_of_a_dead_owner_are_free(folder: Path) -> None:
    code = (
        "import time\n"
        "from perfgate.launchers.slurm.nodes import NodeRequest, free_nodes\n"
        f"asked = NodeRequest('7', {NODES}, (), 3, 'dead', 30.0, print)\n"
        "with free_nodes(asked):\n"
        "    print('has them', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen((sys.executable, "-c", code), stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "has them\n"
        owner.kill()
    with free_nodes(asked(3)) as ours:
        assert ours == ("n1", "n2", "n3")


@pytest.mark.slow
class TestOnTheCluster:
    def test_two_starts_in_one_allocation_have_different_nodes(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with allocation(slurm, "-N2") as job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
            second = replace(start_request, folder=start_request.folder.parent / "second")
            # Each is a worker of its own, so a thread of its own; here one after the other.
            found: list[list[str]] = []

            def start(one: PlacementRequest) -> None:
                with SlurmLauncher().placed(one) as placement:
                    found.append(nodes_of(placement))
                    eventually(lambda: len(found) == 2)

            workers = [
                threading.Thread(target=start, args=(one,)) for one in (start_request, second)
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(60)
        assert len(found) == 2
        assert found[0] != found[1]

    def test_a_start_waits_for_another_in_its_allocation(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[str] = []
        two = replace(start_request.scenario, hardware=Hardware("none", 0, 2))
        with allocation(slurm, "-N2") as job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
            second = replace(
                start_request, scenario=two, folder=start_request.folder.parent / "second"
            )
            waits = SlurmLauncher(SlurmSite(pending_limit_s=1.0))
            placed = waits.placed(replace(second, tell=told.append))
            with SlurmLauncher().placed(start_request), pytest.raises(RunError) as caught:
                placed.__enter__()
        assert caught.value.failure == "pending_too_long"
        assert str(start_request.folder) in told[0]

    @pytest.mark.parametrize("in_allocation", [False, True], ids=["login", "allocation"])
    def test_a_control_is_on_the_node_of_the_start_that_it_tells_of(
        self,
        start_request: PlacementRequest,
        slurm: Cluster,
        monkeypatch: pytest.MonkeyPatch,
        in_allocation: bool,
    ) -> None:
        launcher = SlurmLauncher()
        control = launcher.with_image("own#old:1")

        def place(number: int, by: SlurmLauncher, nodes: tuple[str, ...]) -> list[str]:
            folder = start_request.folder.parent / str(number)
            with by.placed(replace(start_request, folder=folder, nodes=nodes)) as placement:
                return nodes_of(placement)

        with ExitStack() as stack:
            if in_allocation:
                job = stack.enter_context(allocation(slurm, "-N3", "-wn1,n2,n3"))
                monkeypatch.setenv("SLURM_JOB_ID", job)
            order = (launcher, control, launcher)
            found = [place(number, by, ("n3",)) for number, by in enumerate(order)]
            assert found == [["n3"]] * 3
            launcher._bad.add("n3")
            assert place(9, control, ("n3",)) != ["n3"]
