"""Start guard: the place of a fresh start, looked at before it is made; the GPUs, or the CPU, that
it has for itself; and the watch over it.

Measurements know what disturbed them; a disturbed one is not judged.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from perfgate.campaign.fresh_start import FreshStart, StartSetup
from perfgate.campaign.schedule import StartRole
from perfgate.campaign.session import Session
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.plain import from_plain, to_plain
from perfgate.judging.assembly.references import References
from perfgate.launchers.base import Placement
from perfgate.launchers.rank_check import NAME as RANKS
from perfgate.launchers.rank_check import check_ranks
from perfgate.launchers.start_commands import has_commands
from perfgate.machine.conditions.conditions import disturbances
from perfgate.machine.conditions.watch import NodesWatch, Watch, watched
from perfgate.machine.hardware import Machine, is_model
from perfgate.machine.leases import Lease
from perfgate.machine.nvml import VISIBLE
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget, look, refuse_unfit
from perfgate.runs.record import PreflightRecord
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario

Watched = AbstractContextManager[Watch | None]

# The watch of a whole start is there for its first look: who was on the GPUs before it.
_RARELY_S = 10.0
_OFTEN_S = 1.0


def _gpus_here(scenario: Scenario) -> int:
    """The GPUs of this node that the scenario uses."""
    hardware = scenario.hardware
    return 0 if hardware.gpu == "none" else hardware.gpus // hardware.nodes


def _watch_here(scenario: Scenario, lease: Lease, since: Watch | None = None) -> Watched:
    """A block in which this node is watched, with as many of its GPUs as the scenario uses here.

    Args:
        scenario: what runs in the block.
        lease: names the GPUs of what runs there.
        since: the watch of the whole start, when this one is of a measurement on it.
    """
    interval_s = _RARELY_S if since is None else _OFTEN_S
    visible = lease.env.get(VISIBLE)
    return watched(_gpus_here(scenario), interval_s=interval_s, since=since, visible=visible)


def measure_guarded(start: FreshStart, probe: Probe) -> Measurement:
    """Measure a probe on a fresh start, watched where the engine runs if it is load.

    Answers do not depend on how busy the machine is.

    Raises:
        RunError, InputError: as `FreshStart.measure`.
    """
    setup = start.setup
    watch_nodes = start.placement.watched
    watch_load: AbstractContextManager[Watch | NodesWatch | None]
    if setup.watch is None or not probe.is_load:
        watch_load = nullcontext()
    elif watch_nodes is None:
        watch_load = _watch_here(start.scenario, setup.lease, setup.watch)
    else:
        watch_load = watch_nodes(setup.folder / "watch" / probe.label)
    with watch_load as watch:
        measured = start.measure(probe)
    return guarded(measured, watch, probe.scenario)


def guarded(
    measured: Measurement, watch: Watch | NodesWatch | None, scenario: Scenario
) -> Measurement:
    """The measurement with the conditions it was made in, and what of them is over the limits."""
    if watch is None:
        return measured
    limits = scenario.gate.disturbance
    if isinstance(watch, Watch):
        environment = watch.conditions.plain()
        disturbed = disturbances(watch.conditions, limits)
    else:
        nodes: dict[str, Json] = {node: one.plain() for node, one in watch.conditions.items()}
        environment = {"nodes": nodes}
        disturbed = tuple(
            f"{node}: {disturbance}"
            for node, seen in watch.conditions.items()
            for disturbance in disturbances(seen, limits)
        )
    return replace(
        measured,
        facts={**measured.facts, "environment": environment},
        # Of blocks, those that somebody disturbed were thrown away one by one.
        disturbed=measured.disturbed if scenario.gate.blocks else disturbed,
    )


def leased(
    scenario: Scenario, session: Session, tell: Callable[[str], None]
) -> AbstractContextManager[Lease]:
    """A block that has what the scenario needs of this machine; `tell` says who has it else.

    Nothing is leased where the engine runs on nodes that Slurm chose, or where mocks play it,
    unless on GPUs that are made up, too. The site's commands may change all GPUs of the machine, so
    that a start with commands has the whole of it.

    Raises:
        RunError: class ``gpus_busy``.
        InputError: the folder of the locks cannot be used.
    """
    pool, hardware, count = session.pool, scenario.hardware, _gpus_here(scenario)
    # Mock programs disturb nobody; on simulated GPUs they show how a real session would wait.
    played = session.synthetic and (count == 0 or pool is None or not pool.synthetic)
    if pool is None or played or _elsewhere(scenario, session):
        return nullcontext(Lease())
    all_here = not pool.devices.chosen and count == len(pool.gpus)
    wait_s = session.site.wait_for_gpus_s
    if session.budget is not None:  # never beyond the time that the session has
        wait_s = min(wait_s, session.budget.left_s())
    return pool.lease(
        count,
        whole=count > 0 and (all_here or hardware.nodes > 1 or has_commands(session.site)),
        run=session.run.id,
        wait_s=wait_s,
        tell=tell,
        fits=None if pool.synthetic else lambda name: is_model(name, hardware.gpu),
    )


def watch_start(scenario: Scenario, session: Session, lease: Lease) -> Watched:
    """The watch of a whole start: on this machine, of the leased GPUs, and of nothing played.

    On other nodes each load has a watch of its own, and this one is empty.
    """
    if session.synthetic or lease.synthetic:
        return nullcontext()
    if not session.launcher.here:
        return nullcontext(Watch())
    return nullcontext() if _elsewhere(scenario, session) else _watch_here(scenario, lease)


def _elsewhere(scenario: Scenario, session: Session) -> bool:
    """Whether the engine runs on nodes that Slurm chose."""
    launch = scenario.launch
    return not session.launcher.here or (launch is not None and launch.by_slurm)


@dataclass
class PlaceCheck:
    """Looks at the places of one campaign's starts, and keeps them of one kind.

    Attributes:
        references: told of the machine that measures, where it is another than perfgate's own.
        session: what the campaigns share.
        nodes: those of the latest start, which the next one must have: a control tells of the
            machine that it was on. Empty: there are none but this machine.
    """

    references: References
    session: Session
    nodes: tuple[str, ...] = ()
    _looked: set[StartRole] = field(default_factory=set)

    def look(self, setup: StartSetup, placement: Placement) -> None:
        """Look at the place of a start: here once a build, on other nodes each time.

        Of mock programs, or on GPUs that are simulated, the ranks alone are tried, once a build.

        Raises:
            RunError: it is not fit, or not of the kind that this campaign was measured on so far.
        """
        self.nodes = placement.nodes
        # The machine's own reference, and what is started for a claim, is the build under test.
        role = setup.account.role
        kind: StartRole = "new" if role in ("reference", "claim") else role
        is_new = kind not in self._looked
        if self.session.synthetic or setup.lease.synthetic:
            self._looked.add(kind)
            if is_new:
                _try_ranks(setup, placement)
            return
        if not is_new and setup.build.launcher.here:
            return
        machine = look_at(setup, placement, self.session)
        if self._looked:
            require_alike(machine, self.references.machine)
        else:
            self.references.machine = machine
        self._looked.add(kind)


def look_at(setup: StartSetup, placement: Placement, session: Session) -> Machine:
    """Look at the place of a start, here or on other nodes, and write down what was found.

    Ranks are tried last, and only where nothing else is wrong: they start programs.

    Returns:
        the facts of the machine; of several nodes the first one's.

    Raises:
        RunError: class ``unfit_machine``: it is not fit; its nodes could not be asked; or as
            `check_ranks`.
    """
    tools, machine = setup.build.tools, session.machine
    scenario = tools.scenario
    answer = placement.doctor()
    if answer is None:
        where = PreflightTarget(
            run_folder=session.run.path,
            leased=setup.lease.gpus or None,
            runtime=setup.build.launcher.runtime,
            starts=True,
        )
        report = look(scenario, tools, machine, where)
    else:
        machine = from_plain(Machine, answer["machine"])
        report = from_plain(PreflightReport, answer)
    failed: RunError | None = None
    if not report.of("failed"):
        try:
            ranks = _try_ranks(setup, placement)
        except RunError as error:
            failed = error
            ranks = Check(RANKS, "failed", f"{error.failure}: {error.message}", hint=error.hint)
        if ranks is not None:
            report = replace(report, checks=(*report.checks, ranks))
    session.run.record(
        PreflightRecord(
            scenario=scenario.id,
            hardware=scenario.hardware.label,
            machine=to_plain(machine),
            fit=not report.of("failed"),
            checks=to_plain(report.checks),
            observed=to_plain(report.observed),
        )
    )
    if failed is not None:
        raise failed
    refuse_unfit(report, scenario.id, machine.host)
    return machine


def _try_ranks(setup: StartSetup, placement: Placement) -> Check | None:
    """See that every rank of the engine's launch answers; None: it has no ranks.

    Raises:
        RunError: as `check_ranks`.
    """
    tools = setup.build.tools
    if tools.scenario.launch is None:
        return None
    interpreter, folder = tools.engine.interpreter, setup.folder / RANKS
    return check_ranks(placement, tools.locations, interpreter, folder)


def require_alike(machine: Machine, first: Machine) -> None:
    """Check that a start is on the kind of machine that the campaign's first one was on.

    Raises:
        RunError: class ``unfit_machine``: their numbers could not be compared.
    """
    ours, theirs = machine.fingerprint(), first.fingerprint()
    differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if differing:
        raise RunError(
            "unfit_machine",
            f"{machine.host} is not of the kind of {first.host}, where this was measured before: "
            + "; ".join(f"{one} {ours.get(one)}, not {theirs.get(one)}" for one in differing),
            hint="ask for nodes of one kind: constraint or nodelist in site.yaml",
        )
