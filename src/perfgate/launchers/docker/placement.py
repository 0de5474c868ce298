"""DockerPlacement: this machine with the engine's programs in containers, one for each program."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.measurement import Json
from perfgate.launchers.base import Job, Placement
from perfgate.launchers.docker.argv import (
    HOST_NETWORK,
    LOOPBACK,
    ContainerIdentity,
    ContainerSettings,
    handed_to_docker,
    run_words,
)
from perfgate.launchers.docker.calls import call, docker, meaning
from perfgate.launchers.docker.job import DockerJob
from perfgate.launchers.docker.ownership import labels, new_name
from perfgate.launchers.local.launcher import LocalLauncher, free_port

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a network of the container's own
_SERVER = "server"
_KILLED = -9
_CLOCK_S = 3600.0  # the time of day may have been set back; a container's name is its own anyway


class DockerPlacement(Placement):
    """This machine; the server is reached over the loopback device alone.

    Args:
        local: starts `docker run`, and the programs that stay outside.
        box: what all containers have in common.
        start: marks the containers of this fresh start.
        facts: what the record says of the image.
    """

    host = LOOPBACK

    def __init__(
        self, local: LocalLauncher, box: ContainerSettings, start: str, facts: Mapping[str, Json]
    ) -> None:
        self._local = local
        self._box = box
        self._start = start
        self._port: int | None = None
        self._server: DockerJob | None = None
        self._jobs: list[DockerJob] = []
        self._began = time.time()
        self.facts = facts

    @property
    def binds(self) -> str:
        return LOOPBACK if self._network == HOST_NETWORK else _EVERYWHERE

    def start(self, command: Command, folder: Path, name: str) -> Job:
        publishes = name == _SERVER and self._network != HOST_NETWORK
        port = self._port if publishes else None
        job = self._run(command, folder, name, self._network, port)
        if name == _SERVER:
            self._server = job
        return job

    def start_client(
        self, command: Command, folder: Path, name: str, *, of_engine: bool = False
    ) -> Job:
        if not of_engine:
            return self._local.start(command, folder, name)
        network = self._network
        if network != HOST_NETWORK and self._server is not None:
            network = f"container:{self._server.container}"  # the server's own loopback device
        return self._run(command, folder, name, network, None)

    def free_port(self) -> int:
        if self._network == "none" or self._network.startswith("container:"):
            raise InputError(
                "a server in this network cannot be reached",
                field="docker.network",
                found=self._network,
                expected="host, bridge or a network of your own",
            )
        self._port = free_port(LOOPBACK)
        return self._port

    def close(self) -> None:
        """End what was not stopped."""
        for job in self._jobs:
            job.stop(0.0)

    def explained(self, error: RunError) -> RunError:
        """The error, or Docker's own words where a container could not be started or was full."""
        for job in self._jobs:
            if said := job.could_not_start:
                failure, hint = meaning(said)
                return RunError(
                    failure,
                    f"Docker could not start {job.name}",
                    evidence=(said.strip(),),
                    hint=hint,
                )
        for job in self._jobs:
            ended = job.poll()
            if ended is not None and ended.status == _KILLED and self._was_full(job):
                return RunError(
                    "oom",
                    f"{job.name} was killed: its container ran out of memory",
                    evidence=error.evidence,
                    hint="raise or leave out --memory among docker.options in site.yaml",
                )
        return error

    @property
    def _network(self) -> str:
        return self._box.site.network

    def _was_full(self, job: DockerJob) -> bool:
        """Whether Docker saw the container at its limit of memory; it remembers for a while."""
        since = self._began - _CLOCK_S
        span = ("--since", f"{since:.0f}", "--until", f"{time.time() + 1:.0f}")
        which = ("--filter", f"container={job.container}", "--filter", "event=oom")
        with suppress(RunError, MissingProgram):
            return bool(call(("events", *span, *which, "--format", "{{.Action}}")).strip())
        return False

    def _run(
        self, command: Command, folder: Path, name: str, network: str, port: int | None
    ) -> DockerJob:
        cwd = (command.cwd or folder).resolve()
        contained = replace(command, cwd=cwd)
        identity = ContainerIdentity(new_name(name), labels(self._start), network, port)
        words = run_words(self._box, contained, identity, os.environ)
        outside = replace(contained, argv=docker(*words), env=handed_to_docker(command))
        job = DockerJob(self._local.start(outside, folder, name), identity.name, port)
        self._jobs.append(job)
        return job
