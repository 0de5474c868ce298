"""A machine with Docker, played by `docker` and `docker_daemon.py` in launchers/programs."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from building import SCENARIO

from perfgate.launchers.local.job import alive
from perfgate.launchers.site import DockerSite
from perfgate.scenarios.scenario import Hardware

PROGRAMS = Path(__file__).parent / "launchers" / "programs"
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.0.0"
SITE = DockerSite(image=IMAGE, user=None, cache=None, pass_on=())
CPU = replace(SCENARIO, hardware=Hardware("none", 0, 1))


class DockerHost:
    """The stand-in daemon, its images and its containers.

    Args:
        folder: of its state.
        real: whether Docker's own program talks to it, where that is installed.
    """

    def __init__(self, folder: Path, *, real: bool = False) -> None:
        self.folder = folder
        self.real = real
        self.daemon: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What perfgate must find to use it."""
        if self.real:
            return {"DOCKER_HOST": f"unix://{self.folder}/engine"}
        path = os.pathsep.join([str(self.folder / "path"), os.environ["PATH"]])
        return {"PATH": path, "PERFGATE_STANDIN_DOCKER": str(self.folder)}

    def start(self) -> None:
        docker = self.folder / "path" / "docker"
        docker.parent.mkdir()
        # Isolated, without site: it starts in no time, as Docker's own does.
        docker.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {PROGRAMS / "docker"} "$@"\n')
        docker.chmod(0o755)
        self.daemon = subprocess.Popen(
            [sys.executable, str(PROGRAMS / "docker_daemon.py"), str(self.folder)],
            env={**os.environ, **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.daemon.stdout is not None
        assert self.daemon.stdout.readline() == "serves\n"

    def stop(self) -> None:
        """End the daemon; its containers end with it."""
        if self.daemon is not None:
            self.daemon.communicate()
        (self.folder / "engine").unlink(missing_ok=True)

    def image(self, name: str = IMAGE, place: str = "images", **programs: str) -> Path:
        """Have an image with programs (shell scripts without their first line)."""
        folder = self.folder / place / re.sub("[/:]", "_", name)
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        for program, text in programs.items():
            file = folder / "bin" / program.replace("_", "-")
            file.write_text(f"#!/bin/sh\n{text}\n")
            file.chmod(0o755)
        return folder

    def in_registry(self, name: str = IMAGE, seconds: float = 0.0) -> None:
        """Have an image that can be pulled, in so many seconds."""
        (self.image(name, "registry") / "seconds").write_text(str(seconds))

    def trouble(self, kind: str, text: str = "") -> None:
        """Make the trouble that `docker_daemon.py` tells of."""
        (self.folder / kind).write_text(text)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """What containers were to be created as: bodies of the API, with `name` and `env`."""
        file = self.folder / "runs.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def containers(self) -> list[psutil.Process]:
        """The containers that run: their first processes."""
        if self.daemon is None:
            return []
        try:
            return [*filter(alive, psutil.Process(self.daemon.pid).children())]
        except psutil.NoSuchProcess:
            return []


@contextmanager
def docker_host(*, real: bool = False) -> Iterator[DockerHost]:
    """A host whose daemon runs, and which has nothing; gone in the end.

    Args:
        real: whether Docker's own program talks to the stand-in daemon.
    """
    folder = Path(tempfile.mkdtemp(prefix="pfd-"))  # a socket's path must be short
    host = DockerHost(folder, real=real)
    try:
        host.start()
        yield host
    finally:
        host.stop()
        shutil.rmtree(folder)
