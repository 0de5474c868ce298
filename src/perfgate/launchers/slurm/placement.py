"""SlurmPlacement: the nodes of a Slurm job as the place of a fresh start."""

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from perfgate.core.command import Command
from perfgate.core.durable_files import write_text
from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.launchers.base import Job, Placement
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.nodes import hang_dump as node_evidence
from perfgate.launchers.nodes.preflight import (
    SCENARIO,
    ask_doctors,
    doctor_command,
    scenario_text,
    with_plugin,
)
from perfgate.launchers.nodes.remote_job import RemoteJob
from perfgate.launchers.nodes.watch import PLACE
from perfgate.launchers.nodes.watchers import watching
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.calls import call, is_unreached, job_facts, node_address
from perfgate.launchers.slurm.facts import JobFacts, cause_of, node_not_reached
from perfgate.launchers.slurm.ranks import as_ranks
from perfgate.launchers.slurm.script import (
    BEAT,
    calls_srun,
    folders_of,
    gres_of,
    srun_argv,
    within_job,
)
from perfgate.machine.conditions.watch import NodesWatch
from perfgate.scenarios.scenario import Scenario

LOOK = Path(__file__).parents[1] / "nodes" / "look.py"
LOOK_S = 60.0
SETTLE_S = 3.0  # slurmctld may learn of a step's end a little after srun here
CHANGE_S = 30.0

# What a lost node or a cancelled job cannot look like.
_OF_ITS_OWN = {"config_error", "cli_drift", "model_file", "port_in_use", "disk_full"}
_NODE_TROUBLE = {"node_failed", "boot_failed"}


class SlurmPlacement(Placement):
    """The nodes of a running job; the server and its clients are on the first of them.

    Args:
        local: starts srun here.
        job: number of the job.
        nodes: its nodes that are used.
        site: the cluster's settings.
        scenario: what is started.
        folder: the start's files.
        own: whether the job is perfgate's own.
        failed: told the nodes of a job in which one of them failed.
    """

    def __init__(
        self,
        local: LocalLauncher,
        job: str,
        nodes: tuple[str, ...],
        site: SlurmSite,
        scenario: Scenario,
        folder: Path,
        *,
        own: bool,
        failed: Callable[[Sequence[str]], None],
    ) -> None:
        self._local = local
        self._site = site
        self._job = job
        self._node = nodes[0]
        self._scenario = scenario
        self._gres = gres_of(site, scenario.hardware)
        self._folder = folder
        self._place = uuid4().hex
        self._marks: list[str] = []
        self._nodes = nodes
        self._failed = failed
        self.host = address_of(self._node)
        slurm: Json = {"job": job, "nodes": list(nodes), "own_job": own}
        self.facts = {"slurm": slurm}

    def launched(self, command: Command, scenario: Scenario, locations: Locations) -> Command:
        """As in `Placement`: whatever program the document launches it by, as ranks of an srun."""
        return as_ranks(command, scenario, locations, self._site, self._nodes)

    def start(self, command: Command, folder: Path, name: str) -> Job:
        if calls_srun(command.argv):
            cwd = (command.cwd or folder).resolve()
            variables = tuple(command.env)
            argv = within_job(
                command.argv,
                self._job,
                name,
                cwd,
                self._site,
                os.environ,
                contained=variables,
                mounts=folders_of(Locations.of_environment()),
            )
            return self._started(replace(command, argv=argv), folder, name, self._nodes)
        return self._step(command, folder, name, contained=True, gres=self._gres)

    def start_client(
        self, command: Command, folder: Path, name: str, *, of_engine: bool = False
    ) -> Job:
        contained = of_engine and self._site.container is not None
        if self._site.clients == "login" and not contained:
            return self._local.start(self._known(command), folder, name)
        return self._step(command, folder, name, contained=contained)

    def doctor(self) -> Mapping[str, Json]:
        """As in `Placement`; all nodes are asked at the same time."""
        folder = self._folder / "doctor"
        folder.mkdir(exist_ok=True)
        contained = self._site.container is not None
        write_text(folder / SCENARIO, scenario_text(self._scenario))
        command = doctor_command(self._scenario, folder, contained=contained)
        try:
            told = ask_doctors(
                {
                    node: self._step(command, folder, node, nodes=(node,), gres=self._gres)
                    for node in self._nodes
                }
            )
        except RunError as error:
            cause = self.explained(error)
            if cause is error:
                raise
            raise cause from error
        return with_plugin(told) if contained else told

    def watched(self, folder: Path) -> AbstractContextManager[NodesWatch]:
        """As in `Placement`: by a step of each node's own, outside of any container."""

        def start(command: Command, folder: Path, node: str) -> Job:
            return self._step(command, folder, node, nodes=(node,), gres=self._gres)

        return watching(self._nodes, self._place, self._scenario.hardware, folder, start)

    def free_port(self) -> int:
        """As in `Placement`; tells as well whether the node sees the start's folder."""
        seen = self._folder / BEAT
        if not seen.exists():  # in an allocation that is not ours there is no guard
            seen.write_text("")
        try:
            return int(self.look("port", self.host, str(seen)))
        except (RunError, ValueError) as error:
            raise self.explained(
                RunError(
                    "config_error",
                    f"{self._node} cannot be used: {error}",
                    evidence=tuple(str(error).splitlines()[-5:]),
                    hint="the run folder, this checkout and its Python must be at the same path on "
                    "every node (docs/slurm.md)",
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
        if error.failure in _OF_ITS_OWN and lost is None and job_facts(self._job).runs:
            return error
        facts = self._settled()
        if not facts.runs:
            return self._cause(facts, error)
        if lost is not None:
            self._failed((lost,))
            message = f"nothing can be started on {lost}: {error.message}"
            return RunError("node_failed", message, evidence=error.evidence)
        if any(map(is_unreached, error.evidence)):
            message = f"no controller answered srun: {error.message}"
            return RunError("slurm_unreachable", message, evidence=error.evidence)
        return error

    def _cause(self, facts: JobFacts, error: RunError | None = None) -> RunError:
        cause = cause_of(facts, error)
        if cause.failure in _NODE_TROUBLE:
            self._failed(self._nodes)
        return cause

    def clear(self) -> None:
        """End what the steps left on the nodes, where Slurm did not."""
        if self._marks:
            self.look("end", *self._marks, nodes=self._nodes)

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
        nodes = nodes or (self._node,)
        before = srun_argv(
            self._job,
            nodes,
            name,
            (command.cwd or folder).resolve(),
            self._site,
            os.environ,
            gres=gres,
            contained=tuple(command.env) if contained else None,
            mounts=folders_of(Locations.of_environment()) if contained else (),
        )
        return self._started(replace(command, argv=(*before, *command.argv)), folder, name, nodes)

    def _started(
        self, command: Command, folder: Path, name: str, nodes: tuple[str, ...]
    ) -> RemoteJob:
        srun = self._local.start(self._known(command), folder, name)
        self._marks.append(srun.mark)
        return RemoteJob(srun, _StepNodes(self, nodes))

    def _known(self, command: Command) -> Command:
        """The command whose processes a watch of the nodes knows as ours."""
        return replace(command, env={**command.env, PLACE: self._place})

    def look(self, *words: str, nodes: tuple[str, ...] = (), seconds: float = LOOK_S) -> str:
        """What `node_look.py` answers on the nodes, by default the first; a line for each.

        Raises:
            RunError: class ``slurm_unreachable``: a node could not be asked.
        """
        # Who may not take long is not to wait for a controller either.
        patient = seconds >= LOOK_S
        return self._asked(
            "look", (str(LOOK), *words), nodes, seconds, isolated=True, patient=patient
        )

    def evidence(self, mark: str, nodes: tuple[str, ...], file: Path, seconds: float) -> None:
        """Append to `file` what a launch does on the nodes, or why that is not known."""
        words = ("-m", node_evidence.__name__, mark, str(file))
        trouble = ""
        try:
            self._asked("evidence", words, nodes, seconds)
        except RunError as error:
            trouble = f"no more from the nodes: {error}\n"
        with file.open("a", encoding="utf-8") as whole:
            for node in nodes:
                part = node_evidence.part_of(file, node)
                if part.exists():
                    whole.write(part.read_text(encoding="utf-8", errors="replace"))
                    part.unlink()
            whole.write(trouble)

    def _asked(
        self,
        name: str,
        words: tuple[str, ...],
        nodes: tuple[str, ...],
        seconds: float,
        *,
        isolated: bool = False,
        patient: bool = False,
    ) -> str:
        before = srun_argv(
            self._job, nodes or (self._node,), name, self._folder, self._site, os.environ
        )
        python = (sys.executable, "-I", "-S") if isolated else (sys.executable,)
        return call((*before, *python, *words), seconds, patient=patient).strip()


class _StepNodes:
    """The nodes of one step."""

    def __init__(self, placement: SlurmPlacement, nodes: tuple[str, ...]) -> None:
        self._placement = placement
        self._nodes = nodes

    def look(self, *words: str, seconds: float = LOOK_S) -> str:
        return self._placement.look(*words, nodes=self._nodes, seconds=seconds)

    def evidence(self, mark: str, file: Path, seconds: float) -> None:
        self._placement.evidence(mark, self._nodes, file, seconds)


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
