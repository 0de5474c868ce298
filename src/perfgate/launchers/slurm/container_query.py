"""SlurmQuery: the site's container, asked by a step of the allocation, or a job of its own."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.errors import RunError
from perfgate.core.program_query import Answer, NoStatus
from perfgate.launchers.base import POLL_S, Exit, Job
from perfgate.launchers.local.launcher import started
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.calls import is_unreached
from perfgate.launchers.slurm.script import asking_argv

IMAGE_S = 900.0  # for an image to arrive on a node
# The container says that it is there before the program does anything: what srun says is known from
# what the program says.
_THERE = "perfgate: in the container"
_SAYS_SO = ("sh", "-c", f'echo "{_THERE}" >&2; exec "$@"', "sh")


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
