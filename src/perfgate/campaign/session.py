"""Session: what all campaigns of one process share.

`open_session` is the one place that puts it together for a machine.
"""

import datetime
import os
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from perfgate.baselines.baseline import BuildSource
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.waivers import Waiver
from perfgate.campaign.budget import Budget
from perfgate.campaign.builds.words import AbSources, Injection
from perfgate.campaign.resume import KeptResults
from perfgate.core.files.paths import machine_store
from perfgate.core.verdict import ControlPolicy, Rule
from perfgate.judging.assembly.references import ReferencePolicy
from perfgate.launchers.base import Launcher, launcher
from perfgate.launchers.site import Site
from perfgate.machine.hardware import Machine
from perfgate.machine.leases import GpuPool
from perfgate.plan.toolchain import BuildOverride
from perfgate.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Session:
    """What all campaigns of a session share.

    Attributes:
        run: the run folder.
        machine: the machine's facts.
        launcher: how programs are started.
        rule: error rates of the gate.
        reference: where scenarios that measure their own reference take it from.
        injections: settings changed on purpose in the build under test.
        cache: where what can be used again is kept.
        synthetic: whether mock programs make the numbers.
        waivers: the losses that people let through for a while.
        today: the day that waivers are held against.
        repo: a clone of the engine's repository, which tells the nearest ancestor.
        pool: the GPUs that may be leased; None: nothing is leased.
        budget: the time that the session may take; None: as long as it needs.
        kept: what was measured before this session resumed the run.
        site: what the site says; in a rehearsal, without commands before and after a start.
        override: what a person says of the build under test.
        control: the build that controls are started of; None: the one that the baseline recorded.
        control_policy: whether controls are made, and needed; None: as each scenario says.
        ab: the two builds that it compares; None: it compares with baselines.
    """

    run: RunFolder
    machine: Machine
    launcher: Launcher
    rule: Rule = field(default_factory=Rule)
    reference: ReferencePolicy = "auto"
    injections: tuple[Injection, ...] = ()
    cache: Path = field(default_factory=lambda: machine_store() / "cache")
    synthetic: bool = False
    waivers: tuple[Waiver, ...] = ()
    today: date = date.min
    repo: EngineRepo | None = None
    pool: GpuPool | None = None
    budget: Budget | None = None
    kept: KeptResults = field(default_factory=KeptResults)
    site: Site = field(default_factory=Site)
    override: BuildOverride = field(default_factory=BuildOverride)
    control: BuildSource | None = None
    control_policy: ControlPolicy | None = None
    ab: AbSources | None = None


def open_session(run: RunFolder, machine: Machine, launcher_name: str, site: Site) -> Session:
    """A session that leases GPUs of this machine, everything else as it is by default.

    Args:
        run: the run folder.
        machine: the machine's facts.
        launcher_name: how programs are started, by its name in the registry.
        site: what the site says of it.

    Raises:
        InputError: no such launcher, or the variables that name GPUs cannot be understood.
    """
    pool = GpuPool.of_machine(share_cpu=site.share_cpu)
    return Session(run, machine, launcher[launcher_name](), pool=pool, site=site)


def run_path(given: Path | None, root: Path) -> Path:
    """Where a new run folder goes: where a person says, else under ``runs/`` of `root`."""
    if given is not None:
        return given.absolute()
    stamp = datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    return root / "runs" / f"{stamp}-{os.getpid()}"
