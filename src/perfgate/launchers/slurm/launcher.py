"""slurm: run each fresh start on nodes that Slurm gives, from a login node or in an allocation.

On a login node each fresh start is a job of its own that only holds the nodes; a cleanup guard
submits and cancels it. In an allocation (SLURM_JOB_ID) there is no further job. Either way every
program is a step, started through an srun under this machine's wardens: so signals, logs and exit
statuses are those of the local launcher, and nothing outlives perfgate.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from perfgate.core import raw_log
from perfgate.core.durable_files import write_text
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.programs import SBATCH, SRUN
from perfgate.launchers.base import Job, Launcher, Placement, PlacementRequest, launcher
from perfgate.launchers.local.launcher import start_guard
from perfgate.launchers.nodes.placement import NodesSession
from perfgate.launchers.site import SlurmContainer, SlurmSite, load_site
from perfgate.launchers.slurm.calls import (
    JobFacts,
    cause_of,
    is_unreached,
    job_facts,
    node_names,
)
from perfgate.launchers.slurm.placement import SlurmPlacement, SlurmQuery, reached_address
from perfgate.launchers.slurm.script import (
    BEAT,
    SCRIPT,
    RenderedJob,
    beat_every_s,
    render_job,
)
from perfgate.machine.leases.file_locks import (
    delete_unused,
    holding,
    lock_folder,
    take,
    wait_until_free,
)
from perfgate.plan.container import Runtime
from perfgate.scenarios.scenario import Scenario

GUARD_S = 130.0  # sbatch and scancel, a minute each at most
SUBMITTED_S = 90.0
GONE_S = 120.0  # a node that must kill its processes and run an epilog takes its time
TELL_EVERY_S = 30.0
_FIRST_LOOK_S, _LAST_LOOK_S = 0.1, 1.0


@launcher("slurm")
class SlurmLauncher(Launcher):
    """Start programs on a cluster's nodes.

    Args:
        site: the cluster's settings; None: those of the site's file, read when first needed.
    """

    name = "slurm"
    here = False
    starts_by = (SRUN, SBATCH)

    def __init__(self, site: SlurmSite | None = None) -> None:
        self._given = site
        self._session = NodesSession("slurm.listen")

    @cached_property
    def site(self) -> SlurmSite:
        """The cluster's settings."""
        return self._given or load_site().slurm

    @property
    def runtime(self) -> Runtime:  # type: ignore[override]
        """As in `Launcher`."""
        return "none" if self.site.container is None else "pyxis"

    def locations(self, here: Locations, scenario: Scenario, version: str | None) -> Locations:  # noqa: ARG002
        """As in `Launcher`: where the site has a container, the engine's programs are in it."""
        if self.site.container is None:
            return here
        return replace(here, inside=SlurmQuery(self.site, here.folders))

    def with_image(self, image: str) -> "SlurmLauncher":
        """As in `Launcher`: the site's mounts stay, and so does what is known of bad nodes."""
        container = self.site.container or SlurmContainer(image)
        other = SlurmLauncher(replace(self.site, container=replace(container, image=image)))
        other._session = self._session
        return other

    @contextmanager
    def placed(self, request: PlacementRequest) -> Iterator[Placement]:
        request.folder.mkdir(parents=True, exist_ok=True)
        job = os.environ.get("SLURM_JOB_ID")
        if not job:
            with self._held(request) as facts:
                yield self._placement(facts, _enough(facts, request), request, own=True)
            return  # what is left in a job of ours ends with it
        facts = job_facts(job)
        if not facts.runs:
            raise cause_of(facts)
        with self._shared(facts, request) as nodes:
            placement = self._placement(facts, nodes, request, own=False)
            try:
                yield placement
            finally:
                with suppress(RunError):
                    placement.clear()

    def _placement(
        self, facts: JobFacts, nodes: tuple[str, ...], request: PlacementRequest, *, own: bool
    ) -> SlurmPlacement:
        return SlurmPlacement(
            self._session,
            facts.job,
            nodes[: request.scenario.hardware.nodes],
            self.site,
            request,
            own=own,
        )

    @contextmanager
    def _shared(self, facts: JobFacts, request: PlacementRequest) -> Iterator[tuple[str, ...]]:
        """Nodes of an allocation that other starts may use, too: those that none of them has."""
        nodes = _enough(facts, request)
        needed = request.scenario.hardware.nodes
        avoid = self._session.bad & set(nodes)
        if len(nodes) - len(avoid) < needed:
            raise RunError(
                "node_failed",
                f"{', '.join(sorted(avoid))} of job {facts.job} failed in this session, and "
                f"{request.scenario.id} needs {needed} of {facts.nodes}",
            )
        same = set(self._same_nodes(request))
        if same and same <= set(nodes):
            avoid |= set(nodes) - same
        addresses = {node: reached_address(node) for node in nodes if node not in avoid}
        with free_nodes(facts.job, addresses, request, self.site.pending_limit_s) as free:
            yield free

    @contextmanager
    def _held(self, request: PlacementRequest) -> Iterator[JobFacts]:
        """A running job of our own; cancelled, and gone, after the block."""
        self._refuse_bad_nodes()
        site = self.site
        folder = request.folder.absolute()
        same = self._same_nodes(request)
        rendered = render_job(
            request.scenario, site, folder, request.seconds, self._session.bad, same
        )
        with _guard(rendered, folder, site) as guard:
            job = _submitted(guard)
            try:
                yield _wait_for_nodes(job, request, site)
            finally:
                guard.stop()
                _wait_until_gone(job)

    def _refuse_bad_nodes(self) -> None:
        """Raise where the site asks for just the nodes that failed: Slurm calls that a bad name."""
        nodelist = self.site.nodelist
        asked = set(node_names(nodelist)) if self._session.bad and nodelist else set()
        if bad := sorted(self._session.bad & asked):
            raise RunError(
                "node_failed",
                f"{', '.join(bad)} failed in this session, and there is no other way: nodelist in "
                f"site.yaml asks for {nodelist}",
                hint="name other nodes, or leave nodelist out so that Slurm can choose",
            )

    def _same_nodes(self, request: PlacementRequest) -> tuple[str, ...]:
        """The nodes that the start must have; none where one of them failed in this session."""
        return () if self._session.bad & set(request.nodes) else request.nodes


def _enough(facts: JobFacts, request: PlacementRequest) -> tuple[str, ...]:
    """The nodes of the job.

    Raises:
        InputError: there are not as many as the scenario needs.
    """
    needed = request.scenario.hardware.nodes
    nodes = node_names(facts.nodes)
    if len(nodes) < needed:
        raise InputError(
            "the allocation is too small",
            found=f"{len(nodes)} nodes in job {facts.job}: {facts.nodes}",
            expected=f"{needed}, as {request.scenario.id} needs",
        )
    return nodes


def _guard(rendered: RenderedJob, folder: Path, site: SlurmSite) -> Job:
    """What submits the job, gives it signs of life, and cancels it."""
    write_text(folder / SCRIPT, rendered.script_text)
    beat = {"beat": str(folder / BEAT), "every_s": beat_every_s(site)}
    task = {"guards": "job", "sbatch": rendered.argv, **beat}
    return start_guard(task, folder, "allocation", GUARD_S)


def _submitted(guard: Job) -> str:
    """The number of the job that the guard submitted.

    Raises:
        RunError: sbatch refused, or gave no answer.
    """
    deadline = time.monotonic() + SUBMITTED_S
    while time.monotonic() < deadline:
        ended = guard.poll()
        line = raw_log.end_of(guard.stdout, raw_log.LONGEST_LINE)
        if line.endswith("\n"):
            return str(json.loads(line.splitlines()[0])["job"])
        if ended is not None:
            said = guard.tail(5)
            reached = not any(map(is_unreached, said))
            raise RunError(
                "config_error" if reached else "slurm_unreachable",
                f"sbatch refused the job with status {ended.status}",
                evidence=said,
            )
        time.sleep(0.02)
    raise RunError("slurm_unreachable", f"sbatch gave no answer in {SUBMITTED_S:.0f} s")


def _wait_for_nodes(job: str, request: PlacementRequest, site: SlurmSite) -> JobFacts:
    """The job when it runs.

    Raises:
        RunError: it waited too long, or ended.
    """
    began = time.monotonic()
    told, pause = began, _FIRST_LOOK_S
    while True:
        facts, now = job_facts(job), time.monotonic()
        if facts.runs:
            return facts
        if facts.restarts or not (facts.waits or facts.is_changing):
            raise cause_of(facts)
        why = facts.reason or facts.state
        if now - began >= site.pending_limit_s:
            raise RunError(
                "pending_too_long",
                f"job {job} got no nodes in {now - began:.0f} s; Slurm's reason: {why}",
            )
        if now - told >= TELL_EVERY_S:
            told = now
            request.tell(f"job {job} has waited {now - began:.0f} s for nodes: {why}")
        time.sleep(pause)
        pause = min(2 * pause, _LAST_LOOK_S)


def _wait_until_gone(job: str) -> None:
    """Wait until the job has ended and its nodes are free for the next start."""
    deadline = time.monotonic() + GONE_S
    with suppress(RunError):  # the job is cancelled; that nobody tells is no reason to fail
        while time.monotonic() < deadline:
            facts = job_facts(job)
            if not (facts.runs or facts.waits or facts.is_changing):
                return
            time.sleep(_FIRST_LOOK_S)


@contextmanager
def free_nodes(
    job: str, addresses: Mapping[str, str], request: PlacementRequest, limit_s: float
) -> Iterator[tuple[str, ...]]:
    """Nodes of an allocation for one start alone, in their order; all at once, or none.

    A lock for each node in the folder of this machine's locks, held for as long as anything of the
    start runs. So it holds between the workers of a session and between sessions that run on the
    same machine, as the processes of a batch script do; the wardens keep it when perfgate itself is
    killed.

    Args:
        job: number of the allocation.
        addresses: of the nodes that will do, by name.
        request: the start.
        limit_s: how long to wait for them.

    Raises:
        RunError: class ``pending_too_long``: others had them all the time.
        InputError: the folder of the locks cannot be used.
    """
    folder, count = lock_folder(os.environ), request.scenario.hardware.nodes
    # By address, too: job numbers of two clusters can be the same.
    nodes = {folder / f"slurm-{job}-{at}.lock": name for name, at in addresses.items()}
    locks = wait_until_free(
        partial(take, nodes, count, str(request.folder)),
        f"{count} nodes of job {job}",
        limit_s,
        request.tell,
        failure="pending_too_long",
    )
    try:
        with holding(locks):
            yield tuple(nodes[lock.path] for lock in locks)
    finally:
        for lock in locks:
            delete_unused(lock.path)  # a job's number does not come again
