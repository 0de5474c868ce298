"""SlurmPlacement: the nodes of a Slurm job as the place of a fresh start."""

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from perfgate.core.command import Command
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.untrusted_files import created_regular
from perfgate.launchers.base import Job, PlacementRequest
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.nodes.listening import ServerAddress
from perfgate.launchers.nodes.node_query import LOOK_S, dump_argv, gather_parts, look_argv
from perfgate.launchers.nodes.placement import NEVER_OF_A_NODE, NodesPlacement
from perfgate.launchers.nodes.preflight import SAME_PATH, with_plugin
from perfgate.launchers.nodes.remote_job import RemoteJob
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.calls import call, is_unreached, job_facts, node_address
from perfgate.launchers.slurm.facts import JobFacts, cause_of, node_not_reached
from perfgate.launchers.slurm.script import BEAT, JobSteps, as_ranks, calls_srun, gres_of
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class StepNodes:
    """Nodes of a job, as a `NodeQuery`.

    Attributes:
        steps: how a program becomes a step of the job.
        nodes: their names.
        folder: working folder of what is asked.
    """

    steps: JobSteps
    nodes: tuple[str, ...]
    folder: Path

    def look(self, *words: str, seconds: float = LOOK_S) -> str:
        """As in `NodeQuery`.

        Raises:
            RunError: class ``slurm_unreachable``: a node could not be asked.
        """
        before = self.steps.srun(self.nodes, "look", self.folder)
        # Who may not take long is not to wait for a controller either.
        return call((*before, *look_argv(*words)), seconds, patient=seconds >= LOOK_S).strip()

    def evidence(self, mark: str, file: Path, seconds: float) -> None:
        """As in `NodeQuery`."""
        before = self.steps.srun(self.nodes, "evidence", self.folder)
        failed = ""
        try:
            call((*before, *dump_argv(mark, file)), seconds, patient=False)
        except RunError as error:
            failed = f"no more from the nodes: {error}\n"
        gather_parts(file, self.nodes, failed)


SETTLE_S = 3.0  # slurmctld may learn of a step's end a little after srun here
CHANGE_S = 30.0

_NODE_TROUBLE = {"node_failed", "boot_failed"}


class SlurmPlacement(NodesPlacement):
    """The nodes of a running job; the server and its clients are on the first of them.

    Args:
        local: starts srun here.
        job: number of the job.
        nodes: its nodes that are used.
        site: the cluster's settings.
        request: the start.
        own: whether the job is perfgate's own.
        listening: where its server listens.
        failed: told the nodes of a job in which one of them failed.
    """

    def __init__(
        self,
        local: LocalLauncher,
        job: str,
        nodes: tuple[str, ...],
        site: SlurmSite,
        request: PlacementRequest,
        *,
        own: bool,
        listening: ServerAddress,
        failed: Callable[[Sequence[str]], None],
    ) -> None:
        contained = site.container is not None
        super().__init__(local, nodes, request, uuid4().hex, contained=contained)
        self._site = site
        self._job = job
        self._steps = JobSteps(job, site, os.environ, Locations.of_environment().folders)
        self._gres = gres_of(site, request.scenario.hardware)
        self._marks: list[str] = []
        self._failed = failed
        self.host = listening.on(nodes[0], address_of(nodes[0]), request.tell)
        image = {"image": site.container.image} if site.container is not None else {}
        slurm: Json = {"job": job, "nodes": list(nodes), "own_job": own, **image}
        self.facts = {"slurm": slurm}

    def launched(self, command: Command, scenario: Scenario, locations: Locations) -> Command:
        """As in `Placement`: whatever program the document launches it by, as ranks of an srun."""
        return as_ranks(command, scenario, locations, self._site, self._names)

    def start(self, command: Command, folder: Path, name: str) -> Job:
        if calls_srun(command.argv):
            cwd = (command.cwd or folder).resolve()
            argv = self._steps.call(command.argv, name, cwd, tuple(command.env))
            return self._started(replace(command, argv=argv), folder, name, self._names)
        return self._step(command, folder, name, contained=True, gres=self._gres)

    def start_client(
        self, command: Command, folder: Path, name: str, *, of_engine: bool = False
    ) -> Job:
        contained = of_engine and self._contained
        if self._site.clients == "login" and not contained:
            return self._local.start(self._known(command), folder, name)
        return self._step(command, folder, name, contained=contained)

    def doctor(self) -> Mapping[str, Json] | None:
        """As in `Placement`; with a container, also whether srun here can have any."""
        told = super().doctor()
        return with_plugin(told) if told is not None and self._contained else told

    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """As in `NodesPlacement`, by a step of the node's own."""
        return self._step(command, folder, name, nodes=(name,), gres=self._gres)

    def free_port(self) -> int:
        """As in `Placement`; tells as well whether the node sees the start's folder."""
        seen = self._folder / BEAT
        if not seen.exists():  # in an allocation that is not ours there is no guard
            os.close(created_regular(seen))
        try:
            return int(self._query(self._names[:1]).look("port", self.host, str(seen)))
        except (RunError, ValueError) as error:
            raise self.explained(
                RunError(
                    "config_error",
                    f"{self._names[0]} cannot be used: {error}",
                    evidence=tuple(str(error).splitlines()[-5:]),
                    hint=SAME_PATH,
                )
            ) from error

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
            self._failed((lost,))
            message = f"programs cannot be started on {lost}: {error.message}"
            return RunError("node_failed", message, evidence=error.evidence)
        if any(map(is_unreached, error.evidence)):
            message = f"no controller answered srun: {error.message}"
            return RunError("slurm_unreachable", message, evidence=error.evidence)
        return error

    def _cause(self, facts: JobFacts, error: RunError | None = None) -> RunError:
        cause = cause_of(facts, error)
        if cause.failure in _NODE_TROUBLE:
            self._failed(self._names)
        return cause

    def clear(self) -> None:
        """End what the steps left on the nodes, where Slurm did not."""
        if self._marks:
            self._query(self._names).look("end", *self._marks)

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
        nodes = nodes or self._names[:1]
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
        srun = self._local.start(self._known(command), folder, name)
        self._marks.append(srun.mark)
        return RemoteJob(srun, self._query(nodes))

    def _query(self, nodes: tuple[str, ...]) -> StepNodes:
        return StepNodes(self._steps, nodes, self._folder)


def address_of(node: str) -> str:
    """The node's IPv4 address as it is reached from here, which is where its server listens."""
    name = node_address(node)
    try:
        return socket.gethostbyname(name)
    except OSError as error:
        raise InputError(
            "a node's name does not resolve here",
            found=name,
            expected="the name or address that Slurm has as its NodeAddr",
            hint="perfgate must run where the nodes can be reached",
        ) from error
