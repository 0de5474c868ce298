"""SlurmPlacement: the nodes of a Slurm job as the place of a fresh start."""

import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from perfgate.command import Command
from perfgate.errors import InputError, RunError
from perfgate.launchers.base import Job, Placement
from perfgate.launchers.local import LocalLauncher
from perfgate.launchers.slurm_calls import call, job_facts, node_address
from perfgate.launchers.slurm_facts import JobFacts, cause_of
from perfgate.launchers.slurm_script import BEAT, calls_srun, srun_argv, within_job
from perfgate.launchers.slurm_step import Step
from perfgate.measurement import Json
from perfgate.site import SlurmSite

LOOK = Path(__file__).with_name("slurm_look.py")
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
        folder: Path,
        *,
        own: bool,
        failed: Callable[[Sequence[str]], None],
    ) -> None:
        self._local = local
        self._site = site
        self._job = job
        self._node = nodes[0]
        self._folder = folder
        self._marks: list[str] = []
        self._nodes = nodes
        self._failed = failed
        self.host = _address(self._node)
        slurm: Json = {"job": job, "nodes": list(nodes), "own_job": own}
        self.facts = {"slurm": slurm}

    def start(self, command: Command, folder: Path, name: str) -> Job:
        if calls_srun(command.argv):
            argv = within_job(command.argv, self._job, os.environ)
            return self._started(replace(command, argv=argv), folder, name)
        return self._step(command, folder, name, contained=True)

    def start_client(self, command: Command, folder: Path, name: str) -> Job:
        if self._site.clients == "login":
            return self._local.start(command, folder, name)
        return self._step(command, folder, name)

    def free_port(self) -> int:
        """As in `Placement`; tells as well whether the node sees the start's folder."""
        seen = self._folder / BEAT
        if not seen.exists():  # in an allocation that is not ours there is no keeper
            seen.write_text("")
        try:
            return int(self._look("port", self.host, str(seen)))
        except (RunError, ValueError) as error:
            raise self.explained(
                RunError(
                    "config_error",
                    f"{self._node} cannot be used: {error}",
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
        if error.failure in _OF_ITS_OWN and job_facts(self._job).runs:
            return error
        facts = self._settled()
        return error if facts.runs else self._cause(facts, error)

    def _cause(self, facts: JobFacts, error: RunError | None = None) -> RunError:
        cause = cause_of(facts, error)
        if cause.failure in _NODE_TROUBLE:
            self._failed(self._nodes)
        return cause

    def clear(self) -> None:
        """End what the steps left on the nodes, where Slurm did not."""
        for node in self._nodes if self._marks else ():
            self._look("end", *self._marks, node=node)

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

    def _step(self, command: Command, folder: Path, name: str, *, contained: bool = False) -> Step:
        cwd = (command.cwd or folder).resolve()
        before = srun_argv(
            self._job, self._node, name, cwd, self._site, os.environ, contained=contained
        )
        return self._started(replace(command, argv=(*before, *command.argv)), folder, name)

    def _started(self, command: Command, folder: Path, name: str) -> Step:
        srun = self._local.start(command, folder, name)
        self._marks.append(srun.mark)
        return Step(srun, self._look)

    def _look(self, *words: str, node: str | None = None) -> str:
        before = srun_argv(
            self._job, node or self._node, "look", self._folder, self._site, os.environ
        )
        return call((*before, sys.executable, "-I", "-S", str(LOOK), *words), LOOK_S).strip()


def _address(node: str) -> str:
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
