"""SlurmPlacement: the nodes of a Slurm job as the place of a fresh start.

SlurmQuery: the site's container, asked by a step of the allocation, or a job of its own.
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from perfgate.core.command import Command
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.program_query import Answer, NoStatus
from perfgate.launchers.base import POLL_S, Exit, Job, PlacementRequest
from perfgate.launchers.local.launcher import started
from perfgate.launchers.nodes.placement import (
    NEVER_OF_A_NODE,
    NodesPlacement,
    NodesSession,
    address_of,
)
from perfgate.launchers.nodes.preflight import with_plugin
from perfgate.launchers.nodes.remote_job import LOOK_S, RemoteJob
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.calls import (
    JobFacts,
    bad_nodes,
    call,
    cause_of,
    is_unreached,
    job_facts,
    node_address,
    node_not_reached,
    status_of_task,
)
from perfgate.launchers.slurm.script import (
    BEAT,
    JobSteps,
    as_ranks,
    asking_argv,
    calls_srun,
    gres_of,
)
from perfgate.scenarios.scenario import Scenario

IMAGE_S = 900.0  # for an image to arrive on a node
# The container says that it is there before the program does anything: what srun says is known from
# what the program says.
_THERE = "perfgate: in the container"
_SAYS_SO = ("sh", "-c", f'echo "{_THERE}" >&2; exec "$@"', "sh")
SETTLE_S = 3.0  # slurmctld may learn of a step's end a little after srun here
CHANGE_S = 30.0

_NODE_TROUBLE = {"node_failed", "boot_failed"}


class SlurmPlacement(NodesPlacement):
    """The nodes of a running job; the server and its clients are on the first of them.

    Args:
        session: what it shares with other starts.
        job: number of the job.
        nodes: its nodes that are used.
        site: the cluster's settings.
        request: the start.
        own: whether the job is perfgate's own.
    """

    def __init__(
        self,
        session: NodesSession,
        job: str,
        nodes: tuple[str, ...],
        site: SlurmSite,
        request: PlacementRequest,
        *,
        own: bool,
    ) -> None:
        super().__init__(
            session,
            nodes,
            reached_address(nodes[0]),
            site,
            request,
            place=uuid4().hex,
            seen=BEAT,  # in an allocation that is not ours there is no guard to make it
            contained=site.container is not None,
        )
        self._site = site
        self._job = job
        self._steps = JobSteps(job, site, os.environ, Locations.of_environment().folders)
        self._gres = gres_of(site, request.scenario.hardware)
        self._marks: list[str] = []
        image = {"image": site.container.image} if site.container is not None else {}
        slurm: Json = {"job": job, "nodes": list(nodes), "own_job": own, **image}
        self.facts = {"slurm": slurm}

    def launched(self, command: Command, scenario: Scenario, locations: Locations) -> Command:
        """As in `Placement`: whatever program the document launches it by, as ranks of an srun."""
        return as_ranks(command, scenario, locations, self._site, self.nodes)

    def start(self, command: Command, folder: Path, name: str) -> Job:
        if calls_srun(command.argv):
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
        told = super().doctor()
        return with_plugin(told) if told is not None and self._contained else told

    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """As in `NodesPlacement`, by a step of the node's own."""
        return self._step(command, folder, name, nodes=(name,), gres=self._gres)

    def require(self) -> None:
        """As in `Placement`: when its node fails, srun may end with status 0 (seen in 22.05)."""
        facts = job_facts(self._job)
        if not facts.runs:
            raise self._cause(facts)

    def explained(self, error: RunError) -> RunError:
        """The error, or what became of the job."""
        lost = node_not_reached(error.evidence)
        if error.failure in NEVER_OF_A_NODE and lost is None and job_facts(self._job).runs:
            return error
        facts = self._settled()
        if not facts.runs:
            return self._cause(facts, error)
        if lost is not None:
            self._note_bad((lost,))
            message = f"programs cannot be started on {lost}: {error.message}"
            return RunError("node_failed", message, evidence=error.evidence)
        if any(map(is_unreached, error.evidence)):
            message = f"no controller answered srun: {error.message}"
            return RunError("slurm_unreachable", message, evidence=error.evidence)
        return error

    def _cause(self, facts: JobFacts, error: RunError | None = None) -> RunError:
        cause = cause_of(facts, error)
        if cause.failure in _NODE_TROUBLE:
            self._note_bad(self.nodes)
        return cause

    def _note_bad(self, nodes: tuple[str, ...]) -> None:
        """Those of the nodes that are out of service, else all, are not asked for again."""
        with suppress(RunError):
            self._session.bad.update(bad_nodes(nodes) or nodes)

    def clear(self) -> None:
        """End what the steps left on the nodes, where Slurm did not."""
        if self._marks:
            self._query(self.nodes).look("end", *self._marks)

    def _settled(self) -> JobFacts:
        """The job when its state says how it is."""
        began = time.monotonic()
        while True:
            facts, spent = job_facts(self._job), time.monotonic() - began
            if facts.is_changing:
                if spent > CHANGE_S:
                    return facts
            elif not facts.runs or spent > SETTLE_S:
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
        srun = self._session.local.start(self._known(command), folder, name)
        self._marks.append(srun.mark)
        return RemoteJob(srun, self._query(nodes), srun.mark, status_of_task)

    def _ask(self, name: str, argv: Sequence[str], seconds: float) -> str:
        before = self._steps.srun((name,), "look", self._folder)
        # Who may not take long is not to wait for a controller either.
        return call((*before, *argv), seconds, patient=seconds == LOOK_S)


def reached_address(node: str) -> str:
    """The node's address as it is reached from here, which is where its server listens."""
    name = node_address(node)
    address = address_of(name)
    if address is None:
        raise InputError(
            "a node's name does not resolve here",
            found=name,
            expected="the name or address that Slurm has as its NodeAddr",
            hint="perfgate must run where the nodes can be reached",
        )
    return address


@dataclass(frozen=True)
class SlurmQuery:
    """The container of the engine's programs, on whatever node. See `ContainerQuery`.

    Attributes:
        site: image and mounts, and how jobs are asked for.
        mounts: folders that are mounted under their own paths.
    """

    site: SlurmSite
    mounts: tuple[Path, ...] = ()

    def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
        """As in `ContainerQuery`."""
        before = asking_argv(self.site, self.mounts, os.environ, seconds + IMAGE_S)
        with started((*before, *_SAYS_SO, *argv), "asked") as job:
            ended = self._until_late(job, seconds)
            late = ended is None
            if ended is None:
                job.stop()
            said, stdout = (log.read_text(errors="replace") for log in (job.stderr, job.stdout))
        _, there, stderr = said.partition(_THERE + "\n")
        if not there:
            raise _refused(said, late=late)
        if late:
            why = f"no answer from {argv[0]} within {seconds:g} s"
            return Answer(None, why=why, cause=NoStatus.TOO_LONG)
        # srun adds how its tasks ended.
        lines = (line for line in stderr.splitlines(keepends=True) if not line.startswith("srun: "))
        return Answer(ended.status if ended else None, stdout, "".join(lines))

    def _until_late(self, job: Job, seconds: float) -> Exit | None:
        """Nodes and image have a limit, and the program one of its own; None: it is over."""
        end = time.monotonic() + self.site.pending_limit_s + IMAGE_S
        is_there = False
        while (ended := job.until(POLL_S)) is None and time.monotonic() < end:
            if not is_there and _THERE in job.stderr.read_text(errors="replace"):
                is_there = True
                end = time.monotonic() + seconds
        return ended


def _refused(said: str, *, late: bool) -> RunError:
    """Why there is no container."""
    if is_unreached(said):
        failure = "slurm_unreachable"
    else:
        failure = "pending_too_long" if late else "config_error"
    return RunError(
        failure,
        "the container of site.yaml (slurm.container) is not available: "
        + ("no node had it in time" if late else "srun failed"),
        evidence=tuple(said.splitlines()[-5:]),
        hint="try `srun --container-image=IMAGE true` with that image",
    )
