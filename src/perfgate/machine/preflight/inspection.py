"""Inspection: ask all that a scenario needs to know of this machine, and of others that it reaches.

Each call of a program is short, has a time limit, and changes nothing.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfgate.core.errors import PerfgateError, RunError
from perfgate.core.files.paths import machine_store
from perfgate.core.measurement import Json
from perfgate.core.programs.program_query import Answer, NoStatus, ask_here
from perfgate.core.programs.programs import DOCKER, on_path
from perfgate.machine.hardware import Machine
from perfgate.machine.preflight.check import (
    HERE,
    Check,
    Finding,
    PreflightTarget,
    checked,
    need_of,
)
from perfgate.machine.preflight.gpus import judge_gpus
from perfgate.machine.preflight.host import judge_host
from perfgate.machine.preflight.software import judge_software
from perfgate.plan.srun import IMAGE
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.scenario import Scenario

FAILURE = "unfit_machine"
CALL_S = 5.0
SSH_S = 15.0  # ConnectTimeout is for the connection alone; logging in takes time of its own
_MOST_TOLD = 3  # failures in an error's message; the rest is counted
_NO_PROMPT = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=5")


@dataclass(frozen=True)
class PreflightReport:
    """What a preflight found.

    Attributes:
        checks: all questions that apply to the scenario, in a fixed order.
        observed: facts that change numbers and are not judged, by name.
    """

    checks: tuple[Check, ...]
    observed: Mapping[str, str] = field(default_factory=dict)

    def of(self, outcome: str) -> tuple[Check, ...]:
        """The checks with this outcome."""
        return tuple(check for check in self.checks if check.outcome == outcome)


def look(
    scenario: Scenario, tools: Toolchain, machine: Machine, where: PreflightTarget = HERE
) -> PreflightReport:
    """Everything that can be known of the machine before the scenario is started on it.

    Raises:
        InputError: CUDA_VISIBLE_DEVICES or PERFGATE_HOME name what is not there.
    """
    software = judge_software(tools, where)
    facts = _model_facts(tools)
    need = need_of(scenario, where, facts)
    gpus: tuple[Check, ...] = ()
    of_driver: Mapping[str, str] = {}
    if need.gpus:
        gpus, of_driver = judge_gpus(need, machine.lacks(scenario.hardware), where.leased)
    elif need.gpu != "none":
        elsewhere = "Slurm finds the nodes: their GPUs are not seen from here"
        gpus = (Check("gpus", "unknown", elsewhere),)
    from_hub = (facts or {}).get("source") == "hub"
    host, of_host = judge_host(
        need,
        where.run_folder or Path("runs").absolute(),
        machine_store(),
        scenario.model.name if from_hub else None,
    )
    beyond = _judge_beyond(scenario, tools, where, by_slurm=need.by_slurm)
    return PreflightReport(
        (*gpus, *host, *software, *beyond),
        {"cpu": f"{machine.cores} cores of {machine.cpu}", **of_driver, **of_host},
    )


def refuse_unfit(report: PreflightReport, scenario: str, host: str) -> None:
    """Raise when something is known to be wrong, before anything is started.

    Args:
        report: what was found.
        scenario: id of the scenario.
        host: the machine that was looked at.

    Raises:
        RunError: class ``unfit_machine``: a check failed.
    """
    failed = report.of("failed")
    if not failed:
        return
    more = len(failed) - _MOST_TOLD
    first = failed[:_MOST_TOLD]
    raise RunError(
        FAILURE,
        f"{host} is not fit for {scenario}: "
        + "; ".join(f"{check.name}: {check.found}" for check in first)
        + (f"; and {more} more" if more > 0 else ""),
        hint="; ".join(dict.fromkeys(check.hint for check in first if check.hint))
        or f"perfgate doctor --scenario {scenario}",
    )


def _model_facts(tools: Toolchain) -> Mapping[str, Json] | None:
    """What is known of the weights; why it is not, the check of the model tells."""
    try:
        return tools.model_facts
    except PerfgateError:
        return None


def _judge_beyond(
    scenario: Scenario, tools: Toolchain, where: PreflightTarget, *, by_slurm: bool
) -> Iterator[Check]:
    """Slurm's controller, the hosts of a multi-node run, the container runtime."""
    if by_slurm:
        yield _judge_slurm()
    launch, nodes = scenario.launch, scenario.hardware.nodes
    if launch is not None and launch.by == "mpirun" and not where.on_node:
        port = launch.ssh_port
        yield _judge_hosts(tools.locations.hosts[:nodes], nodes, port, reach=where.reach)
    if where.runtime == "docker":
        yield _judge_docker()
    elif where.runtime == "pyxis" or (by_slurm and os.environ.get(IMAGE)):
        yield judge_pyxis()


def _judge_slurm() -> Check:
    """`scontrol ping`: "Slurmctld(primary) at host is UP", one line for each controller."""
    ping = _ask(("scontrol", "ping"))
    is_up = any(line.rstrip().endswith("UP") for line in ping.text.splitlines())
    return _answered("slurm", ping.is_good and is_up, _one_line(ping))


def _judge_hosts(hosts: Sequence[str], wanted: int, port: int | None, *, reach: bool) -> Check:
    """The hosts of `mpirun`; they are asked all at the same time.

    A login asks for nothing and runs `true`; host keys are checked as the person set it.
    """
    if len(hosts) < wanted:
        text = f"{', '.join(hosts) or 'none'} in PERFGATE_HOSTS"
        hint = "set PERFGATE_HOSTS to the nodes, this one first"
        return checked("hosts", Finding("failed", text, hint=hint), wanted=wanted)
    if not reach:
        text = f"{', '.join(hosts)}: checked only with --reach, which contacts other machines"
        return checked("hosts", Finding("unknown", text), wanted=wanted)
    login = ("ssh", *_NO_PROMPT, *(() if port is None else ("-p", str(port))), "--")
    with ThreadPoolExecutor(max_workers=min(32, wanted)) as pool:
        answers = list(pool.map(lambda host: _ask((*login, host, "true"), SSH_S), hosts))
    silent = "; ".join(
        f"{host}: {' '.join(answer.text.split()) or f'status {answer.status}'}"
        for host, answer in zip(hosts, answers, strict=True)
        if not answer.is_good
    )
    return _answered("hosts", not silent, silent or ", ".join(hosts), wanted=wanted)


def _judge_docker() -> Check:
    """`docker version`: the daemon's own version, which only a daemon that answers tells."""
    try:
        docker = DOCKER.find()
    except PerfgateError as error:
        return _answered("docker", False, " ".join(str(error).split()))
    version = _ask((*docker, "version", "--format", "{{.Server.Version}}"))
    found = _one_line(version)
    return _answered("docker", version.is_good, f"Docker {found}" if version.is_good else found)


def judge_pyxis() -> Check:
    """`srun --help` shows the options of the pyxis plugin where Slurm has it."""
    options = _ask(("srun", "--help"))
    if options.status is None:
        return Check("container", "failed", options.text, "srun with the pyxis plugin")
    is_there = "--container-image" in options.text
    found = f"srun {'knows' if is_there else 'does not know'} --container-image"
    return _answered("pyxis", is_there, found)


def _ask(argv: Sequence[str], seconds: float = CALL_S) -> Answer:
    """What a program answers within `seconds`, in English; without an answer, why in few words."""
    if on_path(argv[0]) is None:
        return Answer(None, why=f"no {argv[0]} on PATH")
    answer = ask_here(argv, seconds, {**os.environ, "LC_ALL": "C"})
    if answer.cause is NoStatus.TOO_LONG:
        return replace(answer, why=f"no answer in {seconds:g} s")
    return replace(answer, why=answer.refusal) if answer.status is None else answer


def _answered(question: str, is_good: bool, found: str, **facts: object) -> Check:
    return checked(question, Finding("ok" if is_good else "failed", found), **facts)


def _one_line(answer: Answer) -> str:
    return " ".join(answer.text.split()) or "no output"
