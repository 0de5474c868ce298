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
from perfgate.launchers.local.launcher import LocalLauncher, start_guard
from perfgate.launchers.mpirun.hosts import HostLock, chosen_hosts
from perfgate.launchers.mpirun.placement import MpirunPlacement
from perfgate.launchers.mpirun.ssh import HostQuery
from perfgate.launchers.nodes.listening import ServerAddress
from perfgate.launchers.nodes.node_query import look_argv
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
        self._local = LocalLauncher()
        self._bad: set[str] = set()  # hosts that were lost in this session
        self._listening: ServerAddress | None = None

    @contextmanager
    def placed(self, request: PlacementRequest) -> Iterator[Placement]:
        site = self._site = self._site or load_site().mpirun
        _refuse_allocation()
        launch = request.scenario.launch
        port = site.ssh_port or (launch.ssh_port if launch else None)
        version = open_mpi_version(MPIRUN.find())
        reach = HostQuery(site, port)
        listening = self._listening = self._listening or ServerAddress("mpirun.listen", site.listen)
        request.folder.mkdir(parents=True, exist_ok=True)
        mark = uuid4().hex
        named = site.hosts or Locations.of_environment().hosts
        names = self._good(named, request.scenario.hardware.nodes)
        if request.nodes and set(request.nodes) <= set(names):
            names = request.nodes
        with chosen_hosts(names, request, site, reach, mark) as locks:
            placement = MpirunPlacement(
                self._local,
                locks,
                reach,
                site,
                request,
                mark=mark,
                version=version,
                listening=listening,
                failed=self._bad.update,
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

    def _good(self, names: tuple[str, ...], needed: int) -> tuple[str, ...]:
        """The hosts that were not lost in this session.

        Raises:
            RunError: class ``node_failed``: without these there are too few.
        """
        good = tuple(name for name in names if name not in self._bad)
        if len(good) < needed <= len(names):
            bad = ", ".join(name for name in names if name in self._bad)
            raise RunError(
                "node_failed",
                f"{bad} failed in this session, and there are no others: {' '.join(names)}",
                hint="name more hosts in site.yaml (mpirun: hosts)",
            )
        return good


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
