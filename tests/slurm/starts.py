"""What tests start on a cluster's nodes, and what must not be left of it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from clusters import Cluster, eventually

from perfgate.core.errors import RunError
from perfgate.core.programs.command import Command
from perfgate.launchers.base import Job, Placement, PlacementRequest
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.scenarios.scenario import Hardware, Launch

SHARED = Path("/dev/shm")


def python(code: str) -> Command:
    """A call of this Python."""
    return Command((sys.executable, "-c", code))


def on_nodes(
    request: PlacementRequest, hardware: Hardware, launch: Launch | None = None
) -> PlacementRequest:
    """The start with other needs."""
    return replace(request, scenario=replace(request.scenario, hardware=hardware, launch=launch))


@contextmanager
def started(
    request: PlacementRequest, command: Command, site: SlurmSite | None = None
) -> Iterator[tuple[Placement, Job]]:
    """A program on the nodes of a start of its own."""
    with (
        SlurmLauncher(site).placed(request) as placement,
        placement.start(command, request.folder, "job") as job,
    ):
        yield placement, job


def no_port(request: PlacementRequest) -> RunError:
    """Why a start's node has no port for its server."""
    with pytest.raises(RunError) as caught, SlurmLauncher().placed(request) as placement:
        placement.free_port()
    return caught.value


def job_of(placement: Placement) -> str:
    """Number of its job."""
    return str(placement.facts["slurm"]["job"])  # type: ignore[index,call-overload]


def nodes_of(placement: Placement) -> list[str]:
    """Names of its nodes."""
    return list(placement.facts["slurm"]["nodes"])  # type: ignore[index,call-overload,arg-type]


@contextmanager
def allocation(cluster: Cluster, *options: str) -> Iterator[str]:
    """The number of a running job that only holds nodes, cancelled at the end."""
    job = cluster.submit("sleep 600", "--exclusive", "--mem=0", *options)
    try:
        cluster.wait_for(job, "RUNNING")
        yield job
    finally:
        cluster.run(("scancel", job))
        cluster.wait_for(job)


def nothing_is_left(cluster: Cluster, folder: Path) -> None:
    """No job, no process that was started for `folder`, no shared memory on this machine or a node.

    The nodes' processes are this machine's; their shared memory is their own.
    """
    eventually(lambda: not cluster.run(("squeue", "-h", "-o", "%A %T %j")).stdout)
    eventually(lambda: not list(_of(folder)))
    nodes = str(len(cluster.nodes))
    found = cluster.run(("srun", "-N", nodes, "--ntasks-per-node=1", "ls", "-A", str(SHARED)))
    assert (found.returncode, found.stdout) == (0, ""), found


def _of(folder: Path) -> Iterator[str]:
    """Processes of a launch that work in the folder."""
    for process in psutil.process_iter():
        try:
            variables, place = process.environ(), process.cwd()
            ours = "PERFGATE_LAUNCH" in variables and place.startswith(str(folder))
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                yield f"{process.pid} {' '.join(process.cmdline())}"
        except psutil.Error:
            continue
