"""What Slurm's programs say: of a job, a node, the end of a step; SlurmQuery asks the container.

Each call is short and has a limit.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.files.untrusted_files import open_regular
from perfgate.core.programs.program_query import Answer, NoStatus, ask_here
from perfgate.launchers.base import POLL_S, Exit, Job
from perfgate.launchers.local.job import signal_of
from perfgate.launchers.local.launcher import started
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.script import asking_argv

CALL_S = 30.0
UNREACHABLE_S = 120.0  # a controller that is restarted is back by then
IMAGE_S = 900.0  # for an image to arrive on a node
# The container says that it is there before the program does anything: what srun says is known from
# what the program says.
_THERE = "perfgate: in the container"
_SAYS_SO = ("sh", "-c", f'echo "{_THERE}" >&2; exec "$@"', "sh")
_NO_SUCH_JOB = "Invalid job id"
_BAD_NODE = re.compile(r"DOWN|FAIL|DRAIN|NOT_RESPONDING|INVAL|REBOOT|POWER")
WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
CHANGING = {"COMPLETING", "STAGE_OUT", "SIGNALING"}

# State of a job that no longer runs → class of failure, and what happened in words.
_ENDS = {
    "BOOT_FAIL": ("boot_failed", "a node of it did not come up"),
    "CANCELLED": ("job_cancelled", "it was cancelled, and not by perfgate"),
    "DEADLINE": ("job_time_limit", "it reached its deadline"),
    "NODE_FAIL": ("node_failed", "a node of it failed"),
    "OUT_OF_MEMORY": ("oom", "it exceeded its memory"),
    "PREEMPTED": ("preempted", "another job took its nodes"),
    "REVOKED": ("job_cancelled", "it was moved to another cluster"),
    "TIMEOUT": ("job_time_limit", "it reached its time limit"),
}

_ENDED = re.compile(
    r"srun: error: \S+: tasks? \S+: (?:Exited with exit code (\d+)|(.+?)(?: \(core dumped\))?)$"
)
_NOT_STARTED = re.compile(r"srun: error: Task launch for \S+ failed on node (\S+?): ")


@dataclass(frozen=True)
class JobFacts:
    """A job as Slurm describes it.

    Attributes:
        job: its number.
        state: PENDING, RUNNING, NODE_FAIL, …; without what sacct adds (``CANCELLED by 1000``).
        reason: why it waits, or why it ended; empty if nothing is said.
        exit_code: ``code:signal``; empty if not known.
        nodes: list of nodes as Slurm writes it, ``n[1-2]``; empty while it waits.
        restarts: how often it was put back into the queue and started again.
    """

    job: str
    state: str
    reason: str = ""
    exit_code: str = ""
    nodes: str = ""
    restarts: int = 0

    @property
    def waits(self) -> bool:
        return self.state in WAITING

    @property
    def runs(self) -> bool:
        return self.state in ("RUNNING", "SUSPENDED", "STOPPED", "RESIZING")

    @property
    def is_changing(self) -> bool:
        """Whether it is on its way to an end that is not told yet."""
        return self.state in CHANGING

    @property
    def description(self) -> str:
        """``job 12 is NODE_FAIL (NodeDown, exit code 0:0, nodes n1)``."""
        exit_code = self.exit_code and f"exit code {self.exit_code}"
        nodes = self.nodes and f"nodes {self.nodes}"
        details = ", ".join(filter(None, (self.reason, exit_code, nodes)))
        return f"job {self.job} is {self.state}" + (f" ({details})" if details else "")


def of_scontrol(job: str, line: str) -> JobFacts:
    """Read one line of ``scontrol show job JOB -o``."""
    names = ("JobState", "Reason", "ExitCode", "NodeList", "Restarts")
    state, reason, exit_code, nodes, restarts = (field_of(line, name) for name in names)
    times = int(restarts) if restarts.isdigit() else 0
    return JobFacts(job, state, reason, exit_code, nodes, times)


def field_of(line: str, name: str) -> str:
    """A field of what scontrol says in one line; empty where it has none."""
    # A field's name follows a blank; ReqNodeList and ExcNodeList end in another one's name.
    found = re.search(rf"(?<!\S){name}=(\S*)", line)
    value = found[1] if found else ""
    return "" if value in ("None", "(null)") else value


def of_sacct(job: str, text: str) -> JobFacts | None:
    """Read ``sacct -X -n -P -j JOB -o State,ExitCode,NodeList``; None if it knows no such job."""
    for line in text.splitlines():
        words = line.split("|")
        if len(words) == 3 and words[0]:
            return JobFacts(job, words[0].split()[0], "", words[1], words[2])
    return None


def cause_of(facts: JobFacts, error: RunError | None = None) -> RunError:
    """What became of a job that does not run, as the cause of `error`.

    Args:
        facts: the job as it is.
        error: what a program in it met; its message and evidence are kept.
    """
    if facts.restarts or facts.waits:
        failure, what = "requeued", "it was put back into the queue"
    else:
        otherwise = ("job_ended", "it ended unexpectedly")
        failure, what = _ENDS.get(facts.state, otherwise)
    if facts.state == "FAILED" and "aunch" in facts.reason:  # JobLaunchFailure, launch failed …
        failure, what = "boot_failed", "a node could not start it"
    met = f"; {error.message}" if error else ""
    hint = "ask for more memory per node (site.yaml: memory)" if failure == "oom" else None
    evidence = error.evidence if error else ()
    return RunError(failure, f"{facts.description}: {what}{met}", evidence=evidence, hint=hint)


def node_not_reached(lines: Sequence[str]) -> str | None:
    """The node on which srun could not start anything, by what it said.

    A node that has just been lost is found so before its job is called NODE_FAIL.
    """
    return next((found[1] for found in map(_NOT_STARTED.search, lines) if found), None)


def status_of_task(ended: Exit, stderr: Path) -> int | None:
    """The exit status of what srun ran; -N when signal N ended it.

    When srun ends the other tasks because of one, its own status is that of the others.

    Args:
        ended: srun's own end.
        stderr: what it said.
    """
    number = signal_of(ended.status)
    if number is None:
        return ended.status
    if ended.reason == "exited" and number == signal.SIGTERM:
        with TextIOWrapper(open_regular(stderr), errors="replace") as said:
            return _first_end(said) or -number
    return -number


def _first_end(lines: Iterable[str]) -> int | None:
    """Status of the task that ended first, by what srun said; None: it said nothing."""
    for found in filter(None, map(_ENDED.match, lines)):
        if found[1]:
            return int(found[1])
        named = (one for one in signal.valid_signals() if signal.strsignal(one) == found[2])
        return next((-int(one) for one in named), None)
    return None


def call(argv: Sequence[str], seconds: float = CALL_S, *, patient: bool = True) -> str:
    """Standard output of a program of Slurm.

    Args:
        argv: the call.
        seconds: the longest that it may take.
        patient: whether to ask again, for a while, when no controller answers.

    Raises:
        RunError: class ``slurm_unreachable``: it failed.
        MissingProgram: it is not here.
    """
    is_good, said = _ask(argv, seconds, lambda said: patient and is_unreached(said))
    if not is_good:
        raise RunError("slurm_unreachable", f"{argv[0]} failed: {said}")
    return said


def is_unreached(said: str) -> bool:
    """Whether that is what Slurm's programs say when no controller answers."""
    return "Unable to contact slurm controller" in said


def job_facts(job: str) -> JobFacts:
    """What Slurm knows of a job; a controller that does not answer is asked again for a while.

    Raises:
        RunError: class ``slurm_unreachable``.
    """
    request = ("scontrol", "show", "job", job, "-o")
    is_good, said = _ask(request, CALL_S, lambda said: _NO_SUCH_JOB not in said)
    if is_good:
        return of_scontrol(job, said)
    if _NO_SUCH_JOB in said:
        return _of_accounting(job)
    why = f"no news of job {job} for {UNREACHABLE_S:.0f} s: {said}"
    raise RunError("slurm_unreachable", why)


def node_names(nodes: str) -> tuple[str, ...]:
    """``n[1-2]`` → n1, n2."""
    return tuple(call(("scontrol", "show", "hostnames", nodes)).split())


def node_address(node: str) -> str:
    """The name or address that Slurm itself reaches the node under."""
    return _of_node(node, "NodeAddr") or node


def bad_nodes(nodes: Sequence[str]) -> tuple[str, ...]:
    """Those of the nodes that are out of service now."""
    return tuple(node for node in nodes if _BAD_NODE.search(_of_node(node, "State")))


def _of_node(node: str, name: str) -> str:
    return field_of(call(("scontrol", "show", "node", node, "-o")), name)


def _ask(
    argv: Sequence[str], seconds: float, is_passing: Callable[[str], bool]
) -> tuple[bool, str]:
    """Whether a call succeeded, and what it printed; made again for a while where that passes."""
    deadline = time.monotonic() + UNREACHABLE_S
    while True:
        answer = ask_here(argv, seconds)
        if answer.cause is NoStatus.MISSING:
            raise MissingProgram(f"needs Slurm: no {argv[0]} on PATH")
        if answer.is_good:
            return True, answer.stdout
        is_late = answer.cause is NoStatus.TOO_LONG
        said = answer.why or (answer.stderr or answer.stdout).strip()
        said = f"no answer in {seconds:.0f} s" if is_late else said
        if not is_passing(said) or time.monotonic() > deadline:
            return False, said or f"exit status {answer.status}"
        time.sleep(1.0)


def _of_accounting(job: str) -> JobFacts:
    """A job that the controller has forgotten: by the accounting, or the log of finished jobs."""
    request = ("-X", "-n", "-P", "-j", job, "-o", "State,ExitCode,NodeList")
    for argv in (("sacct", *request), ("sacct", "-c", *request[1:])):
        with suppress(MissingProgram):
            is_good, said = _ask(argv, CALL_S, lambda _: False)
            if is_good and (facts := of_sacct(job, said)) is not None:
                return facts
    return JobFacts(job, "FORGOTTEN", "scontrol and sacct know no such job")


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
            failure = "pending_too_long" if late else "config_error"
            why = "no node had it in time" if late else "srun failed"
            raise RunError(
                "slurm_unreachable" if is_unreached(said) else failure,
                f"the container of site.yaml (slurm.container) is not available: {why}",
                evidence=tuple(said.splitlines()[-5:]),
                hint="try `srun --container-image=IMAGE true` with that image",
            )
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
