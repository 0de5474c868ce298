"""Disturbance guard: measurements know what disturbed them; a disturbed one is not judged."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import MappingProxyType

from perfgate.campaign.fresh_start import FreshStart
from perfgate.core.measurement import Json, Measurement
from perfgate.machine.conditions.disturbance import disturbances
from perfgate.machine.conditions.watch import NodesWatch, Watch, watched
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
