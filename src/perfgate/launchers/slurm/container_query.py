"""SlurmQuery: the site's container, asked by a step of the allocation, or a job of its own."""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.errors import RunError
from perfgate.core.program_query import Answer, NoStatus
from perfgate.launchers.base import Exit, Job
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.calls import is_unreached
from perfgate.launchers.slurm.script import asking_argv

IMAGE_S = 900.0  # for an image to arrive on a node
# The container says that it is there before the program does anything: what srun says is known from
# what the program says.
_THERE = "perfgate: in the container"
_SAYS_SO = ("sh", "-c", f'echo "{_THERE}" >&2; exec "$@"', "sh")


class _TooLong(Exception):
    """The program, or Slurm, took longer than it may."""


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
        with (
            tempfile.TemporaryDirectory(prefix="perfgate-asked-") as folder,
            LocalLauncher().start(
                Command((*before, *_SAYS_SO, *argv)), Path(folder).resolve(), "asked"
            ) as job,
        ):
            late = False
            try:
                ended: Exit | None = job.wait(watch=self._watch(job, seconds))
            except _TooLong:
                ended, late = job.poll(), True
            said = job.stderr.read_text(errors="replace")
            stdout = job.stdout.read_text(errors="replace")
        _, there, stderr = said.partition(_THERE + "\n")
        if not there:
            raise _refused(said, late=late)
        if late:
            why = f"no answer from {argv[0]} within {seconds:g} s"
            return Answer(None, why=why, cause=NoStatus.TOO_LONG)
        return Answer(ended.status if ended else None, stdout, _without_srun(stderr))

    def _watch(self, job: Job, seconds: float) -> Callable[[], None]:
        """Raises `_TooLong`: nodes and image have a limit, and the program one of its own."""
        end = time.monotonic() + self.site.pending_limit_s + IMAGE_S
        is_there = False

        def watch() -> None:
            nonlocal end, is_there
            if not is_there and _THERE in job.stderr.read_text(errors="replace"):
                is_there = True
                end = time.monotonic() + seconds
            if time.monotonic() > end:
                raise _TooLong

        return watch


def _without_srun(said: str) -> str:
    """What the program said: srun adds how its tasks ended."""
    return "".join(line for line in said.splitlines(keepends=True) if not line.startswith("srun: "))


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
