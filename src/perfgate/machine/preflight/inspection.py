"""Inspection: ask all probes what a scenario needs to know, and apply the rules to it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfgate.core.errors import PerfgateError, RunError
from perfgate.core.measurement import Json
from perfgate.core.paths import machine_store
from perfgate.core.program_query import Answer
from perfgate.core.programs import DOCKER
from perfgate.machine.hardware import Machine, counted
from perfgate.machine.leases.devices import Device
from perfgate.machine.nvml import Unreadable
from perfgate.machine.preflight import reachability as reaching
from perfgate.machine.preflight.check import Check, Finding, Need, Outcome, checked, need_of
from perfgate.machine.preflight.gpus import GpuLook, look_at_gpus
from perfgate.machine.preflight.host import judge_host, look_at_host
from perfgate.machine.preflight.software import judge_software
from perfgate.plan.container import Runtime
from perfgate.plan.slurm_container import IMAGE
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.scenario import Hardware, Scenario

FAILURE = "unfit_machine"
_MOST_TOLD = 3  # failures in an error's message; the rest is counted


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


@dataclass(frozen=True)
class PreflightTarget:
    """Where and how the scenario would be started.

    Attributes:
        run_folder: where the run's files go; None: `runs` in the working folder.
        leased: the GPUs that it would use; None: the first that CUDA_VISIBLE_DEVICES shows.
        by_slurm: the launcher finds other machines whatever the scenario says.
        runtime: what runs its containers here; without one, Slurm's pyxis does where Slurm is
            given an image.
        reach: whether other machines may be touched.
        on_node: this is one of the machines that the launcher found.
        contained: the engine's programs are in a container, and are not looked for.
        starts: the engine is started next: what only accuracy tests need is not asked for.
    """

    run_folder: Path | None = None
    leased: Sequence[Device] | None = None
    by_slurm: bool = False
    runtime: Runtime = "none"
    reach: bool = False
    on_node: bool = False
    contained: bool = False
    starts: bool = False


def look(
    scenario: Scenario, tools: Toolchain, machine: Machine, where: PreflightTarget | None = None
) -> PreflightReport:
    """Everything that can be known of the machine before the scenario is started on it.

    Raises:
        InputError: CUDA_VISIBLE_DEVICES or PERFGATE_HOME name what is not there.
    """
    where = where or PreflightTarget()
    launches = not (where.on_node or where.by_slurm)
    software = judge_software(
        tools,
        contained=where.contained,
        launches=launches,
        evaluates=not (where.on_node or where.starts),
    )
    facts = _model_facts(tools)
    need = need_of(scenario, facts, by_slurm=where.by_slurm, on_node=where.on_node)
    from_hub = (facts or {}).get("source") == "hub"
    host = look_at_host(
        where.run_folder or Path("runs").absolute(),
        machine_store(),
        scenario.model.name if from_hub else None,
    )
    gpus = look_at_gpus(need, where.leased) if need.gpus else None
    found = (
        *_gpu_checks(gpus, need, scenario, machine),
        *judge_host(host, need),
        *software,
        *_reach_checks(scenario, tools, need, where),
    )
    return PreflightReport(found, {**_unjudged(gpus, machine), **host.unjudged})


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


def judge_presence(
    look: GpuLook | Unreadable, need: Need, hardware: Hardware, machine: Machine
) -> Check:
    """Name and number of the GPUs, by NVML; nvidia-smi's word alone is not enough to be sure."""
    if not isinstance(look, Unreadable):
        if len(look.gpus) >= need.gpus:
            labels = ", ".join(gpu.label for gpu in look.gpus)
            found = Finding("ok", f"{len(look.gpus)}×{look.gpus[0].name}: {labels}")
        else:
            found = Finding("failed", counted(look.names) or "none")
    elif look.kind == "hangs":
        found = Finding("failed", look.why, hint="look for Xid lines in dmesg; reboot")
    elif lacking := machine.lacks(hardware):
        found = Finding("failed", f"{lacking}; NVML: {look.why}")
    else:
        found = Finding("unknown", f"NVML: {look.why}; nvidia-smi shows them")
    return checked("gpus", found, gpus=need.gpus, gpu=need.gpu)


def judge_driver(driver: str | Unreadable, need: Need) -> tuple[Check, ...]:
    """The oldest driver that the scenario's document allows, where it names one."""
    if need.driver is None:
        return ()
    outcome: Outcome = "unknown"
    if isinstance(driver, Unreadable):
        found = driver.why
    elif not (branch := driver.partition(".")[0]).isdigit():
        found = f"{driver} is no version"
    else:
        found = driver
        outcome = "warning" if int(branch) < need.driver else "ok"
    return (checked("driver", Finding(outcome, found), driver=need.driver),)


def _gpu_checks(
    gpus: GpuLook | Unreadable | None, need: Need, scenario: Scenario, machine: Machine
) -> tuple[Check, ...]:
    if scenario.hardware.gpu == "none":
        return ()
    if gpus is None:
        return (
            Check("gpus", "unknown", "Slurm finds the nodes: their GPUs are not seen from here"),
        )
    presence = judge_presence(gpus, need, scenario.hardware, machine)
    if isinstance(gpus, Unreadable):
        return presence, *judge_driver(Unreadable(f"NVML: {gpus.why}"), need)
    return presence, *judge_driver(gpus.driver, need), *gpus.checks


def _reach_checks(
    scenario: Scenario, tools: Toolchain, need: Need, where: PreflightTarget
) -> tuple[Check, ...]:
    found = []
    if need.by_slurm:
        found.append(reaching.judge_slurm(reaching.ask(("scontrol", "ping"))))
    if scenario.launch is not None and scenario.launch.by == "mpirun" and not where.on_node:
        hosts = tools.locations.hosts[: need.nodes]
        port = scenario.launch.ssh_port
        replies = reaching.ask_hosts(hosts, port) if where.reach else None
        found.append(reaching.judge_hosts(hosts, need.nodes, replies))
    runtime = where.runtime
    if runtime == "none" and need.by_slurm and os.environ.get(IMAGE):
        runtime = "pyxis"
    if runtime == "docker":
        found.append(reaching.judge_docker(_asked_of_docker()))
    elif runtime == "pyxis":
        found.append(reaching.judge_pyxis(reaching.ask(("srun", "--help"))))
    return tuple(found)


def _asked_of_docker() -> Answer:
    """What the daemon says of its version; why it cannot be asked, where it cannot."""
    try:
        docker = DOCKER.find()
    except PerfgateError as error:
        return Answer(None, why=" ".join(str(error).split()))
    return reaching.ask((*docker, "version", "--format", "{{.Server.Version}}"))


def _unjudged(gpus: GpuLook | Unreadable | None, machine: Machine) -> dict[str, str]:
    facts = {"cpu": f"{machine.cores} cores of {machine.cpu}"}
    if isinstance(gpus, GpuLook):
        for name, fact in (("driver", gpus.driver), ("cuda of the driver", gpus.cuda)):
            facts[name] = f"unknown: {fact.why}" if isinstance(fact, Unreadable) else fact
    return facts


def _model_facts(tools: Toolchain) -> Mapping[str, Json] | None:
    """What is known of the weights; why it is not, the check of the model tells."""
    try:
        return tools.model_facts
    except PerfgateError:
        return None
