"""The watch of a Slurm job's nodes: its conditions are told by node, and it leaves nothing there.

The nodes' processes are this machine's, so that a neighbour here is one on every node.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from clusters import Cluster, eventually
from roads import ONE_PROBE, PATIENCE_S, Road
from starts import allocation, nodes_of, nothing_is_left, on_nodes, python

from perfgate.launchers.base import Placement, PlacementRequest
from perfgate.launchers.nodes import watch as node_watch
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.scenarios.scenario import Hardware

pytestmark = pytest.mark.slow

BUSY = python("import os\nprint('works', os.getpid(), flush=True)\nwhile True: pass")


@pytest.fixture
def two_nodes(start_request: PlacementRequest) -> PlacementRequest:
    """A start that needs two nodes of four GPUs each."""
    return on_nodes(start_request, Hardware("B200", 8, 2))


def watches(place: Path) -> list[psutil.Process]:
    """The watches that run on the nodes for a start or session in that folder."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            is_watch = node_watch.__name__ in words and process.name() != "srun"
            below = process.cwd().startswith(str(place))
            if is_watch and below and process.environ().get("SLURM_PROCID"):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@contextmanager
def works(placement: Placement, folder: Path) -> Iterator[psutil.Process]:
    """A server on the first node that has the node's GPUs and uses a core."""
    with placement.start(BUSY, folder, "server") as job:
        eventually(lambda: "works" in job.stdout.read_text())
        yield psutil.Process(int(job.stdout.read_text().split()[1]))


def test_a_road_tells_what_its_nodes_were_like(road: Road) -> None:
    status, output = road.run(*ONE_PROBE, fault="takes-time")
    assert status == 0, output
    assert road.verdicts() == {"c1": "PASS"}, output
    assert road.measured()
    for line in road.measured():
        nodes: dict[str, Any] = line["facts"]["environment"]["nodes"]
        assert list(nodes) == line["facts"]["slurm"]["nodes"]
        for seen in nodes.values():
            assert seen["samples"] >= 2
            assert seen["cpu"]["others_share"] is not None
            assert seen["notes"] == []
        assert line["disturbed"] == []


def test_what_disturbs_a_node_is_told_by_its_name_and_not_used(
    road: Road, neighbour: psutil.Process
) -> None:
    file = road.folder / "scenarios" / "standin.yaml"
    file.write_text(
        file.read_text()
        .replace("others_cpu: 1", "others_cpu: 0")
        .replace("reference: self", "reference: stored")
        .replace("noise: measured", "noise: prior")
    )
    _, output = road.run(*ONE_PROBE, fault="takes-time")
    assert road.verdicts() == {"c1": "INCONCLUSIVE"}, output
    assert road.measured()
    for line in road.measured():
        (node,) = line["facts"]["slurm"]["nodes"]
        assert line["disturbed"][0].startswith(f"{node}: other processes used ")
    assert re.search(r"not used: fresh start 1: n\d: other processes used", output), output


@pytest.fixture
def neighbour() -> Iterator[psutil.Process]:
    """Somebody else's program, which uses a core."""
    with subprocess.Popen((sys.executable, "-I", "-S", *BUSY.argv[1:])) as other:
        yield psutil.Process(other.pid)
        other.kill()


def test_each_node_of_a_start_is_watched_beside_the_server_that_has_its_gpus(
    two_nodes: PlacementRequest, slurm: Cluster
) -> None:
    with SlurmLauncher().placed(two_nodes) as placement, works(placement, two_nodes.folder) as busy:
        began = psutil.cpu_times()
        with placement.watched(two_nodes.folder / "watch") as watch:
            first_s = busy.cpu_times().user
            while busy.cpu_times().user < first_s + 1.0:
                time.sleep(0.05)
            used_s = busy.cpu_times().user - first_s
        ended = psutil.cpu_times()
        assert list(watch.conditions) == nodes_of(placement)
        for seen in watch.conditions.values():
            assert seen.cpu is not None
            assert seen.cpu.others_share is not None
            # The GPUs are pretended: looked for, and not there.
            assert "GPUs not watched" in seen.notes[0]
            # At most what all cores did, less what the server did.
            all_s = sum(getattr(ended, one) - getattr(began, one) for one in ("user", "system"))
            others_s = seen.cpu.others_share * seen.cpu.cores * seen.seconds
            assert others_s < all_s - used_s + 0.25
    nothing_is_left(slurm, two_nodes.folder)


@pytest.mark.parametrize("within", ["a job of its own", "an allocation"])
def test_a_measurement_that_fails_leaves_no_watch(
    two_nodes: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch, within: str
) -> None:
    def fail() -> None:
        assert len(watches(two_nodes.folder)) == 2
        raise KeyError

    with ExitStack() as stack:
        if within == "an allocation":
            monkeypatch.setenv("SLURM_JOB_ID", stack.enter_context(allocation(slurm, "-N2")))
        placement = stack.enter_context(SlurmLauncher().placed(two_nodes))
        with pytest.raises(KeyError), placement.watched(two_nodes.folder / "watch"):
            fail()
        assert not watches(two_nodes.folder)


def test_a_session_that_is_killed_leaves_no_watch(road: Road) -> None:
    """In an allocation, which goes on: no job's end takes the watch with it."""
    with allocation(road.cluster, "-N1") as job:
        before = ("env", f"SLURM_JOB_ID={job}")
        with road.session(*ONE_PROBE, before=before, fault="client-hangs") as session:
            eventually(lambda: road.client_runs() and watches(road.folder))
            os.kill(session.pid, signal.SIGKILL)
            session.communicate(timeout=PATIENCE_S)
        eventually(lambda: not watches(road.folder))
        eventually(lambda: not road.processes())
        assert road.cluster.job_state(job) == "RUNNING"
