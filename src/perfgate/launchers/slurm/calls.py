"""Ask Slurm's programs: state of a job, names of nodes. Each call is short and has a limit."""

import re
import time
from collections.abc import Sequence

from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.program_query import NoStatus, ask_here
from perfgate.launchers.slurm.facts import JobFacts, field_of, of_sacct, of_scontrol

CALL_S = 30.0
UNREACHABLE_S = 120.0  # a controller that is restarted is back by then
_BAD_NODE = re.compile(r"DOWN|FAIL|DRAIN|NOT_RESPONDING|INVAL|REBOOT|POWER")


class _NoAnswer(Exception):
    """A call failed."""


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
    deadline = time.monotonic() + (UNREACHABLE_S if patient else 0.0)
    while True:
        try:
            return _call(argv, seconds)
        except _NoAnswer as error:
            if not is_unreached(str(error)) or time.monotonic() > deadline:
                raise RunError("slurm_unreachable", f"{argv[0]} failed: {error}") from error
        time.sleep(1.0)


def is_unreached(said: str) -> bool:
    """Whether that is what Slurm's programs say when no controller answers."""
    return "Unable to contact slurm controller" in said


def job_facts(job: str) -> JobFacts:
    """What Slurm knows of a job; a controller that does not answer is asked again for a while.

    Raises:
        RunError: class ``slurm_unreachable``.
    """
    deadline = time.monotonic() + UNREACHABLE_S
    while True:
        try:
            return of_scontrol(job, _call(("scontrol", "show", "job", job, "-o")))
        except _NoAnswer as error:
            if "Invalid job id" in str(error):
                return _of_accounting(job)
            if time.monotonic() > deadline:
                raise RunError(
                    "slurm_unreachable", f"no news of job {job} for {UNREACHABLE_S:.0f} s: {error}"
                ) from error
        time.sleep(1.0)


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


def _call(argv: Sequence[str], seconds: float = CALL_S) -> str:
    answer = ask_here(argv, seconds)
    if answer.cause is NoStatus.MISSING:
        raise MissingProgram(f"needs Slurm: no {argv[0]} on PATH")
    if answer.cause is NoStatus.TOO_LONG:
        raise _NoAnswer(f"no answer in {seconds:.0f} s")
    if not answer.is_good:
        said = answer.why or (answer.stderr or answer.stdout).strip()
        raise _NoAnswer(said or f"exit status {answer.status}")
    return answer.stdout


def _of_accounting(job: str) -> JobFacts:
    """A job that the controller has forgotten: by the accounting, or the log of finished jobs."""
    request = ("-X", "-n", "-P", "-j", job, "-o", "State,ExitCode,NodeList")
    for argv in (("sacct", *request), ("sacct", "-c", *request[1:])):
        try:
            facts = of_sacct(job, _call(argv))
        except (_NoAnswer, MissingProgram):
            continue
        if facts is not None:
            return facts
    return JobFacts(job, "FORGOTTEN", "scontrol and sacct know no such job")
