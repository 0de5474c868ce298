"""What Slurm says of a job, and what class of failure that is. Pure: text in, values out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfgate.core.errors import RunError

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
    def in_words(self) -> str:
        """``job 12 is NODE_FAIL (NodeDown, exit code 0:0, nodes n1)``."""
        exit_code = self.exit_code and f"exit code {self.exit_code}"
        nodes = self.nodes and f"nodes {self.nodes}"
        told = ", ".join(filter(None, (self.reason, exit_code, nodes)))
        return f"job {self.job} is {self.state}" + (f" ({told})" if told else "")


def of_scontrol(job: str, line: str) -> JobFacts:
    """Read one line of ``scontrol show job JOB -o``."""

    state, reason, exit_code, nodes, restarts = (
        field_of(line, name) for name in ("JobState", "Reason", "ExitCode", "NodeList", "Restarts")
    )
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
    return RunError(failure, f"{facts.in_words}: {what}{met}", evidence=evidence, hint=hint)


def node_not_reached(lines: Sequence[str]) -> str | None:
    """The node on which srun could not start anything, by what it said.

    A node that has just been lost is found so before its job is called NODE_FAIL.
    """
    for line in lines:
        found = _NOT_STARTED.search(line)
        if found:
            return found[1]
    return None
