"""DockerQuery: ask programs that are in the engine's image."""

import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.program_query import Answer, NoStatus
from perfgate.launchers.docker.argv import ContainerIdentity, ContainerSettings, run_words
from perfgate.launchers.docker.calls import docker, not_started, remove, trouble
from perfgate.launchers.docker.image import fetched
from perfgate.launchers.docker.ownership import labels, new_name
from perfgate.launchers.local.launcher import LocalLauncher

ENDED_S = 2.0
STARTED_S = 60.0  # beyond the program's own time: Docker makes a container first


@dataclass(frozen=True)
class DockerQuery:
    """The image of a scenario, each question in a container of its own. See `ContainerQuery`."""

    box: ContainerSettings

    def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
        """As in `ContainerQuery`; the image is pulled first where it is not here."""
        _have(self.box)
        name = new_name()
        words = run_words(
            self.box,
            Command(argv),
            ContainerIdentity(name, labels(name)),
            os.environ,
            greeted=False,
        )
        with tempfile.TemporaryDirectory() as folder:
            call = Command(docker(*words))
            with LocalLauncher().start(call, Path(folder).resolve(), "asked") as job:
                ended = None
                try:
                    ended = job.until(seconds + STARTED_S)
                finally:
                    if ended is None:
                        job.stop(ENDED_S)
                        remove([name])
                if ended is None:
                    why = f"no answer from {argv[0]} within {seconds:g} s"
                    return Answer(None, why=why, cause=NoStatus.TOO_LONG)
            answer = Answer(
                ended.status,
                job.stdout.read_text(errors="replace"),
                job.stderr.read_text(errors="replace"),
            )
        if ended.status == 125 and not_started(ended.status, answer.stderr):
            raise trouble(f"no container of {self.box.image} could be started", answer)
        return answer


@lru_cache(maxsize=16)
def _have(box: ContainerSettings) -> None:
    fetched(box.image, box.site, _to_nobody)


def _to_nobody(text: str) -> None:
    """Before a start nobody is told of anything."""
