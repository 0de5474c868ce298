"""mpirun: run each fresh start on hosts that Open MPI reaches by ssh.

The engine's programs are started by an mpirun that runs here, under this machine's wardens: one
rank per GPU where the scenario's document has several nodes, else one process on the first host.
Over ssh the hosts' processes are nobody's children here: mpirun ends them, and where it cannot,
perfgate does by the mark that they carry, or the cleanup guard when perfgate is gone.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.program_query import ask_here
from perfgate.core.programs import MPIRUN
from perfgate.launchers.base import Job, Launcher, Placement, PlacementRequest, launcher
from perfgate.launchers.hang_dump import look_argv
from perfgate.launchers.local.launcher import start_guard
from perfgate.launchers.mpirun.hosts import HostLock, HostQuery, chosen_hosts
from perfgate.launchers.mpirun.placement import MpirunPlacement
from perfgate.launchers.nodes.placement import NodesSession
from perfgate.launchers.site import MpirunSite, load_site

AFTER_S = 3.0  # mpirun takes a second to end its ranks
TRIES, EVERY_S = 3, 5.0
GUARD_S = 240.0  # as long as all tries take at most
VERSION_S = 30.0
_VERSION = re.compile(r"\(Open MPI\) (\S+)")


@launcher("mpirun")
class MpirunLauncher(Launcher):
    """Start programs on hosts by mpirun.

    Args:
        site: how they are reached; None: as the site's file says, read when first needed.
    """

    name = "mpirun"
    here = False
    starts_by = (MPIRUN,)

    def __init__(self, site: MpirunSite | None = None) -> None:
        self._site = site
        self._session = NodesSession("mpirun.listen")

    @contextmanager
    def placed(self, request: PlacementRequest) -> Iterator[Placement]:
        site = self._site = self._site or load_site().mpirun
        _refuse_allocation()
        launch = request.scenario.launch
        version = open_mpi_version(MPIRUN.find())
        reach = HostQuery(site, site.ssh_port or (launch.ssh_port if launch else None))
        request.folder.mkdir(parents=True, exist_ok=True)
        place = uuid4().hex
        names = self._good(site, request)
        with chosen_hosts(names, request, site, reach, place) as locks:
            placement = MpirunPlacement(
                self._session,
                locks,
                reach,
                site,
                request,
                place=place,
                version=version,
            )
            guard = self._guard(locks, reach, request.folder)
            try:
                yield placement
            finally:
                _give_back(placement, guard)

    def _guard(self, locks: Sequence[HostLock], reach: HostQuery, folder: Path) -> Job:
        calls = [reach.argv(lock.host, look_argv("end", *lock.marks)) for lock in locks]
        pace = {"after_s": AFTER_S, "tries": TRIES, "every_s": EVERY_S}
        return start_guard({"guards": "hosts", "calls": calls, **pace}, folder, "hosts", GUARD_S)

    def _good(self, site: MpirunSite, request: PlacementRequest) -> tuple[str, ...]:
        """The hosts that the start must have, else those that were not lost in this session.

        Raises:
            RunError: class ``node_failed``: without these there are too few.
        """
        names = site.hosts or Locations.of_environment().hosts
        needed = request.scenario.hardware.nodes
        good = tuple(name for name in names if name not in self._session.bad)
        if len(good) < needed <= len(names):
            bad = ", ".join(name for name in names if name in self._session.bad)
            raise RunError(
                "node_failed",
                f"{bad} failed in this session, and there are no others: {' '.join(names)}",
                hint="name more hosts in site.yaml (mpirun: hosts)",
            )
        return request.nodes if request.nodes and set(request.nodes) <= set(good) else good


def _refuse_allocation() -> None:
    """Refuse to run where mpirun would let Slurm choose the hosts and start its daemons.

    Raises:
        InputError: this is a Slurm allocation.
    """
    if job := os.environ.get("SLURM_JOB_ID"):
        raise InputError(
            "inside a Slurm allocation mpirun takes its hosts from Slurm, and no ssh",
            field="SLURM_JOB_ID",
            found=job,
            hint="run it with --launcher slurm, which starts the same ranks",
        )


def _give_back(placement: MpirunPlacement, guard: Job) -> None:
    """End what is left on the hosts; what interrupts that leaves it to the guard."""
    grace_s = GUARD_S
    try:
        placement.clear()
        grace_s = 0.0  # asked politely the guard would look at the hosts once more
    finally:
        guard.stop(grace_s)


@cache
def open_mpi_version(program: tuple[str, ...]) -> str:
    """The version of Open MPI whose mpirun `program` is.

    Raises:
        InputError: it is another MPI's.
    """
    said = ask_here((*program, "--version"), VERSION_S).text
    found = _VERSION.search(said)
    if found is None:
        raise InputError(
            "this is not the mpirun of Open MPI",
            field=MPIRUN.variable,
            found=f"{program[0]} says {said.strip()[:200] or 'nothing'}",
            expected="mpirun (Open MPI) 4 or 5",
            hint=f"install Open MPI, or say where its mpirun is with {MPIRUN.variable}",
        )
    return found[1]
