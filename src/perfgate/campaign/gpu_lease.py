"""GPU lease: the GPUs, or the CPU, that one fresh start has for itself, and the watch over it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from perfgate.campaign.disturbance_guard import Watched, watch_over
from perfgate.campaign.session import Session
from perfgate.launchers.start_commands import has_commands
from perfgate.machine.conditions.watch import Watch
from perfgate.machine.hardware import is_model
from perfgate.machine.leases import Lease
from perfgate.scenarios.scenario import Scenario


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
