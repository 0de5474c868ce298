"""Preflight check: the look at the place of a campaign's first start, before it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfgate.campaign.builds.started import StartedBuild
from perfgate.campaign.schedule import StartRole
from perfgate.campaign.session import Session
from perfgate.core.errors import RunError
from perfgate.core.plain import from_plain, to_plain
from perfgate.judging.assembly.references import References
from perfgate.launchers.base import Placement
from perfgate.launchers.rank_check import NAME as RANKS
from perfgate.launchers.rank_check import check_ranks
from perfgate.machine.hardware import Machine
from perfgate.machine.leases import Lease
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget, look, refuse_unfit
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.record import PreflightRecord
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class PreflightResult:
    """A place that was looked at.

    Attributes:
        machine: its facts; of several nodes the first one's.
        report: what was found.
    """

    machine: Machine
    report: PreflightReport

    def record(self, scenario: Scenario) -> PreflightRecord:
        """The record of the place that a scenario's starts have."""
        return PreflightRecord(
            scenario=scenario.id,
            hardware=scenario.hardware.label,
            machine=to_plain(self.machine),
            fit=not self.report.of("failed"),
            checks=to_plain(self.report.checks),
            observed=to_plain(self.report.observed),
        )


class PlaceCheck:
    """Looks at the places of one campaign's starts, and keeps them of one kind.

    Args:
        references: told of the machine that measures, where it is another than perfgate's own.

    Attributes:
        nodes: those of the latest start, which the next one must have: a control tells of the
            machine that it was on. Empty: there are none but this machine.
    """

    def __init__(self, references: References) -> None:
        self._references = references
        self._machine: Machine | None = None
        self._looked: set[StartRole] = set()
        self.nodes: tuple[str, ...] = ()

    def look(self, build: StartedBuild, lease: Lease, folder: Path, placement: Placement) -> None:
        """Look at the place of a start: here once a build, on other nodes each time.

        Of stand-ins, or on GPUs that are simulated, the ranks alone are tried, once a build.

        Raises:
            RunError: it is not fit, or not of the kind that this campaign was measured on so far.
        """
        # The machine's own reference, and what is started for a claim, is the build under test.
        self.nodes = placement.nodes
        kind: StartRole = "new" if build.role in ("reference", "claim") else build.role
        is_new = kind not in self._looked
        session = build.session
        if session.synthetic or lease.synthetic:
            self._looked.add(kind)
            if is_new:
                try_ranks(placement, build.tools, folder)
            return
        if not is_new and session.launcher.here:
            return
        machine = look_at(placement, build.tools, session, lease, folder).machine
        if self._machine is None:
            self._references.measured_on(machine)
        else:
            require_alike(machine, self._machine)
        self._machine = machine
        self._looked.add(kind)


def look_at(
    placement: Placement, tools: Toolchain, session: Session, lease: Lease, folder: Path
) -> PreflightResult:
    """Look at a place, here or on other nodes, and write down what was found.

    Ranks are tried last, and only where nothing else is wrong: they start programs.

    Args:
        placement: the place.
        tools: what will be started there.
        session: where it is written down.
        lease: the GPUs that it would use.
        folder: where the files of what is started here go.

    Raises:
        RunError: class ``unfit_machine``: it is not fit; its nodes could not be asked; or as
            `check_ranks`.
    """
    scenario = tools.scenario
    told = placement.doctor()
    if told is None:
        where = PreflightTarget(
            run_folder=session.run.path,
            leased=lease.gpus or None,
            runtime=session.launcher.runtime,
            starts=True,
        )
        looked = PreflightResult(session.machine, look(scenario, tools, session.machine, where))
    else:
        looked = _of_nodes(told)
    failed: RunError | None = None
    if not looked.report.of("failed"):
        try:
            ranks = try_ranks(placement, tools, folder)
        except RunError as error:
            failed = error
            ranks = Check(RANKS, "failed", f"{error.failure}: {error.message}", hint=error.hint)
        if ranks is not None:
            report = replace(looked.report, checks=(*looked.report.checks, ranks))
            looked = replace(looked, report=report)
    session.run.record(looked.record(scenario))
    if failed is not None:
        raise failed
    refuse_unfit(looked.report, scenario.id, looked.machine.host)
    return looked


def try_ranks(placement: Placement, tools: Toolchain, folder: Path) -> Check | None:
    """See that every rank of the engine's launch answers; None: it has no ranks.

    Raises:
        RunError: as `check_ranks`.
    """
    if tools.scenario.launch is None:
        return None
    interpreter = tools.engine.interpreter
    return check_ranks(placement, tools.scenario, tools.locations, interpreter, folder / RANKS)


def require_alike(machine: Machine, first: Machine) -> None:
    """Check that a start is on the kind of machine that the campaign's first one was on.

    Raises:
        RunError: class ``unfit_machine``: their numbers could not be compared.
    """
    ours, theirs = machine.fingerprint(), first.fingerprint()
    if ours == theirs:
        return
    differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    raise RunError(
        "unfit_machine",
        f"{machine.host} is not of the kind of {first.host}, where this was measured before: "
        + "; ".join(f"{one} {ours.get(one)}, not {theirs.get(one)}" for one in differing),
        hint="ask for nodes of one kind: constraint or nodelist in site.yaml",
    )


def _of_nodes(told: Mapping[str, Any]) -> PreflightResult:
    """What the preflight of the nodes found, as values."""
    return PreflightResult(from_plain(Machine, told["machine"]), from_plain(PreflightReport, told))
