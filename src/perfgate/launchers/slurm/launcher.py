"""slurm: run each fresh start on nodes that Slurm gives, from a login node or in an allocation.

On a login node each fresh start is a job of its own that only holds the nodes; a cleanup guard
submits and cancels it. In an allocation (SLURM_JOB_ID) there is no further job. Either way every
program is a step, started through an srun under this machine's wardens: so signals, logs and exit
statuses are those of the local launcher, and nothing outlives perfgate.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from perfgate.core.errors import InputError, RunError
from perfgate.core.files.durable_files import write_text
from perfgate.core.measurement import Json
from perfgate.core.programs import raw_log
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import SBATCH, SRUN
from perfgate.launchers.base import Job, Placement, PlacementRequest, launcher
from perfgate.launchers.local.launcher import start_guard
from perfgate.launchers.nodes.placement import (
    LOOK_S,
    NEVER_OF_A_NODE,
    NodesLauncher,
    NodesPlacement,
    RemoteJob,
    address_of,
    locked,
)
from perfgate.launchers.nodes.preflight import with_plugin
from perfgate.launchers.site import SlurmContainer, SlurmSite
from perfgate.launchers.slurm import calls, script
from perfgate.machine.leases.file_locks import delete_unused, holding
from perfgate.plan.container import Runtime
from perfgate.plan.toolchain import Toolchain

GUARD_S = 130.0  # sbatch and scancel, a minute each at most
SUBMITTED_S = 90.0
GONE_S = 120.0  # a node that must kill its processes and run an epilog takes its time
TELL_EVERY_S = 30.0
SETTLE_S = 3.0  # slurmctld may learn of a step's end a little after srun here
CHANGE_S = 30.0
_FIRST_LOOK_S, _LAST_LOOK_S = 0.1, 1.0
_NODE_TROUBLE = {"node_failed", "boot_failed"}


@launcher("slurm")
class SlurmLauncher(NodesLauncher[SlurmSite]):
    """Start programs on a cluster's nodes."""

    name = "slurm"
    starts_by = (SRUN, SBATCH)

    @property
    def runtime(self) -> Runtime:  # type: ignore[override]
        """As in `Launcher`."""
        return "none" if self.site.container is None else "pyxis"

    def locations(self, tools: Toolchain) -> Locations:
        """As in `Launcher`: where the site has a container, the engine's programs are in it."""
        here = tools.locations
        if self.site.container is None:
            return here
        return replace(here, inside=calls.SlurmQuery(self.site, here.folders))

    def with_image(self, image: str) -> "SlurmLauncher":
        """As in `Launcher`: the site's mounts stay, and so does what is known of bad nodes."""
        container = self.site.container or SlurmContainer(image)
        other = SlurmLauncher(replace(self.site, container=replace(container, image=image)))
        other.bad, other.told = self.bad, self.told
        return other

    @contextmanager
    def placed(self, request: PlacementRequest) -> Iterator[Placement]:
        request.folder.mkdir(parents=True, exist_ok=True)
        job = os.environ.get("SLURM_JOB_ID")
        with self._shared(job, request) if job else self._held(request) as (number, nodes):
            placement = SlurmPlacement(self, number, nodes, request, own=not job)
            try:
                yield placement
            finally:
                if job:  # what is left in a job of ours ends with it
                    with suppress(RunError):
                        placement.clear()

    @contextmanager
    def _shared(self, job: str, request: PlacementRequest) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Nodes of an allocation that other starts may use, too: those that none of them has."""
        facts = calls.job_facts(job)
        if not facts.runs:
            raise calls.cause_of(facts)
        scenario = request.scenario
        why = f"{scenario.id} needs {scenario.hardware.nodes} of {facts.nodes} in job {job}"
        good = self.good_nodes(_enough(facts, request), request, why)
        addresses = {node: reached_address(node) for node in good}
        with free_nodes(job, addresses, request, self.site.pending_limit_s) as free:
            yield job, free

    @contextmanager
    def _held(self, request: PlacementRequest) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The nodes of a running job of our own; cancelled, and gone, after the block."""
        self._refuse_bad_nodes()
        site, scenario, folder = self.site, request.scenario, request.folder.absolute()
        same = () if self.bad & set(request.nodes) else request.nodes
        rendered = script.render_job(scenario, site, folder, request.seconds, self.bad, same)
        write_text(folder / script.SCRIPT, rendered.script_text)
        beat = {"beat": str(folder / script.BEAT), "every_s": script.beat_every_s(site)}
        task = {"guards": "job", "sbatch": rendered.argv, **beat}
        with start_guard(task, folder, "allocation", GUARD_S) as guard:
            job = _submitted(guard)
            try:
                facts = _wait_for_nodes(job, request, site)
                yield job, _enough(facts, request)[: scenario.hardware.nodes]
            finally:
                guard.stop()
                _wait_until_gone(job)

    def _refuse_bad_nodes(self) -> None:
        """Raise where the site asks for just the nodes that failed: Slurm calls that a bad name."""
        nodelist = self.site.nodelist
        asked = set(calls.node_names(nodelist)) if self.bad and nodelist else set()
        if bad := sorted(self.bad & asked):
            why = f"there is no other way: nodelist in site.yaml asks for {nodelist}"
            message = f"{', '.join(bad)} failed in this session, and {why}"
            hint = "name other nodes, or leave nodelist out so that Slurm can choose"
            raise RunError("node_failed", message, hint=hint)


class SlurmPlacement(NodesPlacement[SlurmSite]):
    """The nodes of a running job; the server and its clients are on the first of them.

    Args:
        launcher: whose place it is.
        job: number of the job.
        nodes: its nodes that are used.
        request: the start.
        own: whether the job is perfgate's own.
    """

    def __init__(
        self,
        launcher: SlurmLauncher,
        job: str,
        nodes: tuple[str, ...],
        request: PlacementRequest,
        *,
        own: bool,
    ) -> None:
        site = launcher.site
        super().__init__(
            launcher,
            nodes,
            reached_address(nodes[0]),
            request,
            place=uuid4().hex,
            seen=script.BEAT,  # in an allocation that is not ours there is no guard to make it
            contained=site.container is not None,
        )
        self._job = job
        self._steps = script.JobSteps(job, site, os.environ, Locations.of_environment().folders)
        self._gres = script.gres_of(site, request.scenario.hardware)
        self._marks: list[str] = []
        image = {"image": site.container.image} if site.container is not None else {}
        slurm: Json = {"job": job, "nodes": list(nodes), "own_job": own, **image}
        self.facts = {"slurm": slurm}

    def launched(self, command: Command, locations: Locations) -> Command:
        """As in `Placement`: whatever program the document launches it by, as ranks of an srun."""
        return script.as_ranks(command, self.request.scenario, locations, self._site, self.nodes)

    def start(self, command: Command, folder: Path, name: str) -> Job:
        if script.calls_srun(command.argv):
            cwd = (command.cwd or folder).resolve()
            argv = self._steps.call(command.argv, name, cwd, tuple(command.env))
            return self._started(replace(command, argv=argv), folder, name, self.nodes)
        return self._step(command, folder, name, contained=True, gres=self._gres)

    def start_engine_client(self, command: Command, folder: Path, name: str) -> Job:
        if self._contained:
            return self._step(command, folder, name, contained=True)
        return self.start_client(command, folder, name)

    def _beside(self, command: Command, folder: Path, name: str) -> Job:
        return self._step(command, folder, name)

    def doctor(self) -> Mapping[str, Json] | None:
        """As in `Placement`; with a container, also whether srun here can have any."""
        answer = super().doctor()
        return with_plugin(answer) if answer is not None and self._contained else answer

    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """As in `NodesPlacement`, by a step of the node's own."""
        return self._step(command, folder, name, nodes=(name,), gres=self._gres)

    def require(self) -> None:
        """As in `Placement`: when its node fails, srun may end with status 0 (seen in 22.05)."""
        facts = calls.job_facts(self._job)
        if not facts.runs:
            raise self._cause(facts)

    def explained(self, error: RunError) -> RunError:
        """The error, or what became of the job."""
        lost = calls.node_not_reached(error.evidence)
        if error.failure in NEVER_OF_A_NODE and lost is None and calls.job_facts(self._job).runs:
            return error
        facts = self._settled()
        if not facts.runs:
            return self._cause(facts, error)
        if lost is not None:
            self._note_bad((lost,))
            failure, why = "node_failed", f"programs cannot be started on {lost}"
        elif any(map(calls.is_unreached, error.evidence)):
            failure, why = "slurm_unreachable", "no controller answered srun"
        else:
            return error
        return RunError(failure, f"{why}: {error.message}", evidence=error.evidence)

    def _cause(self, facts: calls.JobFacts, error: RunError | None = None) -> RunError:
        cause = calls.cause_of(facts, error)
        if cause.failure in _NODE_TROUBLE:
            self._note_bad(self.nodes)
        return cause

    def _note_bad(self, nodes: tuple[str, ...]) -> None:
        """Those of the nodes that are out of service, else all, are not asked for again."""
        with suppress(RunError):
            self._launcher.bad.update(calls.bad_nodes(nodes) or nodes)

    def clear(self) -> None:
        """End what the steps left on the nodes, where Slurm did not."""
        if self._marks:
            self.look(self.nodes, "end", *self._marks)

    def _settled(self) -> calls.JobFacts:
        """The job when its state says how it is."""
        began = time.monotonic()
        while True:
            facts, spent = calls.job_facts(self._job), time.monotonic() - began
            limit_s = CHANGE_S if facts.is_changing else SETTLE_S
            if spent > limit_s or not (facts.is_changing or facts.runs):
                return facts
            time.sleep(0.2)

    def _step(
        self,
        command: Command,
        folder: Path,
        name: str,
        *,
        nodes: tuple[str, ...] = (),
        contained: bool = False,
        gres: str | None = None,
    ) -> RemoteJob:
        nodes = nodes or self.nodes[:1]
        before = self._steps.srun(
            nodes,
            name,
            (command.cwd or folder).resolve(),
            gres=gres,
            contained=tuple(command.env) if contained else None,
        )
        return self._started(replace(command, argv=(*before, *command.argv)), folder, name, nodes)

    def _started(
        self, command: Command, folder: Path, name: str, nodes: tuple[str, ...]
    ) -> RemoteJob:
        srun = self._launcher.local.start(self._known(command), folder, name)
        self._marks.append(srun.mark)
        return RemoteJob(srun, self, nodes, srun.mark, calls.status_of_task)

    def _ask(self, name: str, argv: Sequence[str], seconds: float) -> str:
        before = self._steps.srun((name,), "look", self._folder)
        # Who may not take long is not to wait for a controller either.
        return calls.call((*before, *argv), seconds, patient=seconds == LOOK_S)


def reached_address(node: str) -> str:
    """The node's address as it is reached from here, which is where its server listens."""
    name = calls.node_address(node)
    address = address_of(name)
    if address is None:
        raise InputError(
            "a node's name does not resolve here",
            found=name,
            expected="the name or address that Slurm has as its NodeAddr",
            hint="perfgate must run where the nodes can be reached",
        )
    return address


def _enough(facts: calls.JobFacts, request: PlacementRequest) -> tuple[str, ...]:
    """The nodes of the job.

    Raises:
        InputError: there are not as many as the scenario needs.
    """
    needed = request.scenario.hardware.nodes
    nodes = calls.node_names(facts.nodes)
    if len(nodes) < needed:
        raise InputError(
            "the allocation is too small",
            found=f"{len(nodes)} nodes in job {facts.job}: {facts.nodes}",
            expected=f"{needed}, as {request.scenario.id} needs",
        )
    return nodes


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
            is_lost = any(map(calls.is_unreached, said))
            failure = "slurm_unreachable" if is_lost else "config_error"
            why = f"sbatch refused the job with status {ended.status}"
            raise RunError(failure, why, evidence=said)
        time.sleep(0.02)
    raise RunError("slurm_unreachable", f"sbatch gave no answer in {SUBMITTED_S:.0f} s")


def _wait_for_nodes(job: str, request: PlacementRequest, site: SlurmSite) -> calls.JobFacts:
    """The job when it runs.

    Raises:
        RunError: it waited too long, or ended.
    """
    began = time.monotonic()
    reported, pause = began, _FIRST_LOOK_S
    while True:
        facts, now = calls.job_facts(job), time.monotonic()
        if facts.runs:
            return facts
        if facts.restarts or not (facts.waits or facts.is_changing):
            raise calls.cause_of(facts)
        why = facts.reason or facts.state
        if now - began >= site.pending_limit_s:
            late = f"job {job} got no nodes in {now - began:.0f} s; Slurm's reason: {why}"
            raise RunError("pending_too_long", late)
        if now - reported >= TELL_EVERY_S:
            reported = now
            request.tell(f"job {job} has waited {now - began:.0f} s for nodes: {why}")
        time.sleep(pause)
        pause = min(2 * pause, _LAST_LOOK_S)


def _wait_until_gone(job: str) -> None:
    """Wait until the job has ended and its nodes are free for the next start."""
    deadline = time.monotonic() + GONE_S
    with suppress(RunError):  # the job is cancelled; that nobody tells is no reason to fail
        while time.monotonic() < deadline:
            facts = calls.job_facts(job)
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
    # By address, too: job numbers of two clusters can be the same.
    nodes = {f"slurm-{job}-{at}.lock": name for name, at in addresses.items()}
    what = f"{request.scenario.hardware.nodes} nodes of job {job}"
    run = str(request.folder)
    locks = locked(nodes, request, run, what, limit_s, failure="pending_too_long")
    try:
        with holding(locks):
            yield tuple(nodes[lock.path.name] for lock in locks)
    finally:
        for lock in locks:
            delete_unused(lock.path)  # a job's number does not come again
