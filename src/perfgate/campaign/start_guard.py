"""Start guard: the GPUs, or the CPU, that one fresh start has for itself, and the watch over it.

Measurements know what disturbed them; a disturbed one is not judged.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from types import MappingProxyType

from perfgate.campaign.fresh_start import FreshStart
from perfgate.campaign.session import Session
from perfgate.core.measurement import Json, Measurement
from perfgate.launchers.start_commands import has_commands
from perfgate.machine.conditions.conditions import disturbances
from perfgate.machine.conditions.watch import NodesWatch, Watch, watched
from perfgate.machine.hardware import is_model
from perfgate.machine.leases import Lease
from perfgate.machine.nvml import VISIBLE
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario

Watched = AbstractContextManager[Watch | None]

# The watch of a whole start is there for its first look: who was on the GPUs before it.
_RARELY_S = 10.0
_OFTEN_S = 1.0


def watch_over(
    scenario: Scenario,
    since: Watch | None = None,
    *,
    wanted: bool = True,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Watched:
    """A block in which this node is watched, with as many of its GPUs as the scenario uses here.

    Args:
        scenario: what runs in the block.
        since: the watch of the whole start, when this one is of a measurement on it.
        wanted: False: nothing is watched, as where stand-ins make the numbers.
        env: the environment of what runs there, which names its GPUs.
    """
    launch = scenario.launch
    if not wanted or (launch is not None and launch.by_slurm):
        return nullcontext()  # the engine is on nodes that Slurm chose, not here
    hardware = scenario.hardware
    gpus = 0 if hardware.gpu == "none" else hardware.gpus // hardware.nodes
    interval_s = _RARELY_S if since is None else _OFTEN_S
    visible = env.get(VISIBLE)
    return watched(gpus, interval_s=interval_s, since=since, visible=visible)


def measure_guarded(start: FreshStart, probe: Probe, since: Watch | None) -> Measurement:
    """Measure a probe on a fresh start, watched if it is load.

    Args:
        start: the start.
        probe: what is measured; answers do not depend on how busy the machine is.
        since: the watch of the whole start, an empty one where it is on other nodes; None: nothing
            is watched.

    Raises:
        RunError, InputError: as `FreshStart.measure`.
    """
    with _watch_of(start, probe, since) as watch:
        measured = start.measure(probe)
    return guarded(measured, watch, probe.scenario)


def _watch_of(
    start: FreshStart, probe: Probe, since: Watch | None
) -> AbstractContextManager[Watch | NodesWatch | None]:
    """The watch of one measurement, where the engine runs."""
    if since is None or not probe.is_load:
        return nullcontext()
    if start.setup.launcher.here:
        return watch_over(start.scenario, since, env=start.setup.lease.env)
    return start.placement.watched(start.setup.folder / "watch" / probe.label)


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
            f"{node}: {told}"
            for node, seen in watch.conditions.items()
            for told in disturbances(seen, limits)
        )
    return replace(
        measured, facts={**measured.facts, "environment": environment}, disturbed=disturbed
    )


@contextmanager
def leased(scenario: Scenario, session: Session, tell: Callable[[str], None]) -> Iterator[Lease]:
    """Have what the scenario needs of this machine while the block runs; `tell` says who has it.

    Nothing is leased where the engine runs on nodes that Slurm chose, or where stand-ins play it,
    unless on GPUs that are made up, too. The site's commands may change all GPUs of the machine, so
    that a start with commands has the whole of it.

    Raises:
        RunError: class ``gpus_busy``.
        InputError: the folder of the locks cannot be used.
    """
    pool, hardware = session.pool, scenario.hardware
    count = 0 if hardware.gpu == "none" else hardware.gpus // hardware.nodes
    # Stand-ins disturb nobody; on simulated GPUs they show how a real session would wait.
    played = session.synthetic and (count == 0 or pool is None or not pool.synthetic)
    if pool is None or played or _elsewhere(scenario, session):
        yield Lease()
        return
    all_here = not pool.devices.chosen and count == len(pool.gpus)
    with pool.lease(
        count,
        whole=count > 0 and (all_here or hardware.nodes > 1 or has_commands(session.site)),
        run=session.run.id,
        wait_s=_wait_s(session),
        tell=tell,
        fits=None if pool.synthetic else lambda name: is_model(name, hardware.gpu),
    ) as lease:
        yield lease


def _wait_s(session: Session) -> float:
    """How long to wait; never beyond the time that the session has."""
    if session.budget is None:
        return session.site.wait_for_gpus_s
    return min(session.site.wait_for_gpus_s, max(0.0, session.budget.left_s()))


def watch_start(scenario: Scenario, session: Session, lease: Lease) -> Watched:
    """The watch of a whole start: on this machine, of the leased GPUs, and of nothing played.

    On other nodes each load has a watch of its own, and this one is empty.
    """
    real = not (session.synthetic or lease.synthetic)
    if real and not session.launcher.here:
        return nullcontext(Watch())
    wanted = real and not _elsewhere(scenario, session)
    return watch_over(scenario, wanted=wanted, env=lease.env)


def _elsewhere(scenario: Scenario, session: Session) -> bool:
    """Whether the engine runs on nodes that Slurm chose."""
    launch = scenario.launch
    return not session.launcher.here or (launch is not None and launch.by_slurm)
