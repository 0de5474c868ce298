"""Reachability: Slurm's controller, the hosts of a multi-node run, the container runtime.

Each call is short, has a time limit, and changes nothing.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from perfgate.core.program_query import Answer, NoStatus, ask_here
from perfgate.machine.preflight.check import Check

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
    return _answered(
        "slurm",
        ping.status == 0 and is_up,
        _one_line(ping),
        "a controller that answers",
        "try `sinfo` in the same shell: is SLURM_CONF right, does the controller run?",
    )


def judge_hosts(hosts: Sequence[str], wanted: int, replies: Mapping[str, Answer] | None) -> Check:
    """The hosts of `mpirun`; nobody was asked where `replies` is None."""
    name, expected = "hosts", f"{wanted} hosts that this user can log in to without a prompt"
    if len(hosts) < wanted:
        named = ", ".join(hosts) or "none"
        return Check(name, "failed", f"{named} in PERFGATE_HOSTS", expected, _NAME_THEM)
    if replies is None:
        asked = f"{', '.join(hosts)}: checked only with --reach, which contacts other machines"
        return Check(name, "unknown", asked, expected)
    silent = "; ".join(
        f"{host}: {' '.join(reply.text.split()) or f'status {reply.status}'}"
        for host, reply in replies.items()
        if reply.status != 0
    )
    hint = "set up keys as in the DeepSeek-V3 example, section 'mpirun'; try ssh by hand"
    return _answered(name, not silent, silent or ", ".join(replies), expected, hint)


def judge_docker(version: Answer) -> Check:
    """`docker version`: the daemon's own version, which only a daemon that answers tells."""
    found = _one_line(version)
    return _answered(
        "container",
        version.status == 0,
        f"Docker {found}" if version.status == 0 else found,
        "a Docker daemon that this user may use",
        "start the daemon, or add this user to the group docker",
    )


def judge_pyxis(options: Answer) -> Check:
    """`srun --help` shows the options of the pyxis plugin where Slurm has it."""
    name, expected = "container", "srun with the pyxis plugin"
    if options.status is None:
        return Check(name, "failed", options.text, expected)
    is_there = "--container-image" in options.text
    found = f"srun {'knows' if is_there else 'does not know'} --container-image"
    hint = "install pyxis and enroot, or use no container"
    return _answered(name, is_there, found, expected, hint)


def _answered(name: str, is_good: bool, found: str, expected: str, hint: str) -> Check:
    return Check(name, "ok" if is_good else "failed", found, expected, hint)


def _one_line(answer: Answer) -> str:
    return " ".join(answer.text.split()) or "no output"
