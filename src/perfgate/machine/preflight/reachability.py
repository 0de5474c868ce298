"""Reachability: Slurm's controller, the hosts of a multi-node run, the container runtime.

Each call is short, has a time limit, and changes nothing.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from perfgate.core.program_query import Answer, NoStatus, ask_here
from perfgate.machine.preflight.check import Check, Finding, checked

CALL_S = 5.0
_NAME_THEM = "set PERFGATE_HOSTS to the nodes, this one first"
SSH_S = 15.0  # ConnectTimeout is for the connection alone; logging in takes time of its own


def ask(argv: Sequence[str], seconds: float = CALL_S) -> Answer:
    """What a program answers within `seconds`, in English; without an answer, why in few words."""
    if shutil.which(argv[0]) is None:
        return Answer(None, why=f"no {argv[0]} on PATH")
    answer = ask_here(argv, seconds, {**os.environ, "LC_ALL": "C"})
    if answer.cause is NoStatus.TOO_LONG:
        return replace(answer, why=f"no answer in {seconds:g} s")
    return replace(answer, why=answer.refusal) if answer.status is None else answer


def ssh_call(host: str, port: int | None) -> tuple[str, ...]:
    """A login that asks for nothing and runs `true`; host keys are checked as the person set it."""
    through = ("-p", str(port)) if port is not None else ()
    return (
        "ssh",
        *("-o", "BatchMode=yes", "-o", "ConnectTimeout=5"),
        *through,
        "--",
        host,
        "true",
    )


def ask_hosts(hosts: Sequence[str], port: int | None) -> dict[str, Answer]:
    """Every host, all at the same time."""
    if not hosts:
        return {}
    with ThreadPoolExecutor(max_workers=min(32, len(hosts))) as pool:
        answers = pool.map(lambda host: ask(ssh_call(host, port), SSH_S), hosts)
        return dict(zip(hosts, answers, strict=True))


def judge_slurm(ping: Answer) -> Check:
    """`scontrol ping`: "Slurmctld(primary) at host is UP", one line for each controller."""
    is_up = any(line.rstrip().endswith("UP") for line in ping.text.splitlines())
    return _answered("slurm", ping.status == 0 and is_up, _one_line(ping))


def judge_hosts(hosts: Sequence[str], wanted: int, replies: Mapping[str, Answer] | None) -> Check:
    """The hosts of `mpirun`; nobody was asked where `replies` is None."""
    if len(hosts) < wanted:
        text = f"{', '.join(hosts) or 'none'} in PERFGATE_HOSTS"
        return checked("hosts", Finding("failed", text, hint=_NAME_THEM), wanted=wanted)
    if replies is None:
        text = f"{', '.join(hosts)}: checked only with --reach, which contacts other machines"
        return checked("hosts", Finding("unknown", text), wanted=wanted)
    silent = "; ".join(
        f"{host}: {' '.join(reply.text.split()) or f'status {reply.status}'}"
        for host, reply in replies.items()
        if reply.status != 0
    )
    return _answered("hosts", not silent, silent or ", ".join(replies), wanted=wanted)


def judge_docker(version: Answer) -> Check:
    """`docker version`: the daemon's own version, which only a daemon that answers tells."""
    is_good, found = version.status == 0, _one_line(version)
    return _answered("docker", is_good, f"Docker {found}" if is_good else found)


def judge_pyxis(options: Answer) -> Check:
    """`srun --help` shows the options of the pyxis plugin where Slurm has it."""
    if options.status is None:
        return Check("container", "failed", options.text, "srun with the pyxis plugin")
    is_there = "--container-image" in options.text
    found = f"srun {'knows' if is_there else 'does not know'} --container-image"
    return _answered("pyxis", is_there, found)


def _answered(question: str, is_good: bool, found: str, **facts: object) -> Check:
    return checked(question, Finding("ok" if is_good else "failed", found), **facts)


def _one_line(answer: Answer) -> str:
    return " ".join(answer.text.split()) or "no output"
