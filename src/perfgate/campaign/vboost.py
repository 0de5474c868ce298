"""vboost: ``--vboost LEVEL``, the slider of a start's GPUs at one level for as long as it lasts.

Which starts that is for, and what cannot be had. It is set and put back in `machine.vboost`.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from perfgate.campaign.session import Session
from perfgate.core.errors import InputError
from perfgate.launchers.base import launcher
from perfgate.machine.hardware import Machine
from perfgate.machine.leases import Lease
from perfgate.machine.leases.devices import FAKE
from perfgate.machine.vboost.setting import boosted
from perfgate.scenarios.scenario import Scenario

_OPTION = "--vboost"
_BY_HAND = (
    "set the slider on those nodes by other means, such as a prolog of the job that an epilog "
    "undoes, and run without --vboost"
)


def level_asked(option: Callable[[str], Any]) -> int | None:
    """The level that a session's options ask for; None: the slider is left alone.

    Args:
        option: the value of an option of the command line.

    Raises:
        InputError: together with the other options it cannot be had.
    """
    level: int | None = option(_OPTION)
    if level is None:
        return None
    if option("--rehearse") or option("--rehearse-fault"):
        raise _refused(level, "stand-ins play the engine: its GPUs are not used", "no --rehearse")
    name = option("--launcher")
    if not launcher[name].here:
        raise _refused(
            level,
            f"the launcher {name} starts engines on other nodes, where perfgate could not put the "
            "slider back",
            "a launcher of this machine",
            _BY_HAND,
        )
    if os.environ.get(FAKE):
        raise _refused(level, f"the GPUs are simulated: {FAKE} is set", "GPUs that have a slider")
    return level


def level_for(scenario: Scenario, session: Session) -> int | None:
    """The level that its starts are measured at; None: the slider is left alone."""
    return None if scenario.hardware.gpu == "none" else session.vboost


def require_here(
    scenarios: Iterable[Scenario], option: Callable[[str], Any], machine: Machine
) -> None:
    """Check that of what this machine can run, all that would be boosted runs on it alone.

    Args:
        scenarios: those that are selected.
        option: the value of an option of the command line.
        machine: this machine.

    Raises:
        InputError: a scenario is started on other nodes, too; or as `level_asked`.
    """
    level = level_asked(option)
    if level is None:
        return
    far = {
        one.id
        for one in scenarios
        if _is_far(one) and machine.lacks(one.hardware, one.launch) is None
    }
    if far:
        raise _far(level, *sorted(far))


@contextmanager
def boosted_for(
    scenario: Scenario, session: Session, lease: Lease, tell: Callable[[str], None]
) -> Iterator[None]:
    """Have the slider of the leased GPUs at the level that was asked for while the block runs.

    Raises:
        InputError: there is no GPU whose slider could be set, or no such level.
        MissingProgram, RunError: as `machine.vboost.setting.boosted`.
    """
    level = level_for(scenario, session)
    if level is None:
        yield
        return
    if _is_far(scenario):
        raise _far(level, scenario.id)
    with boosted(level, _numbers(level, lease)) as before:
        told = ", ".join(f"{was} on GPU {gpu}" for gpu, was in before.items())
        tell(f"vboost is {level}; it was {told}")
        yield


def _numbers(level: int, lease: Lease) -> list[str]:
    """The leased GPUs as nvidia-smi counts them, which is as NVML does."""
    if lease.synthetic:
        raise _refused(level, "the GPUs are simulated", "GPUs that have a slider")
    if not lease.gpus:
        raise _refused(
            level, "no GPU is leased, so it is unknown which slider to set", "leased GPUs"
        )
    parts = [gpu.label for gpu in lease.gpus if not gpu.label.isdigit()]
    if parts:
        raise _refused(
            level,
            f"{', '.join(parts)}: a part of a GPU (MIG) has no slider of its own",
            "whole GPUs",
        )
    return [gpu.label for gpu in lease.gpus]


def _is_far(scenario: Scenario) -> bool:
    """Whether GPUs of other nodes are used."""
    launch, hardware = scenario.launch, scenario.hardware
    by_slurm = launch is not None and launch.by_slurm
    return hardware.gpu != "none" and (by_slurm or hardware.nodes > 1)


def _far(level: int, *scenarios: str) -> InputError:
    return _refused(
        level,
        f"{', '.join(scenarios)}: started on other nodes, where perfgate could not put the slider "
        "back",
        "scenarios of one node, not launched by srun or sbatch",
        _BY_HAND,
    )


def _refused(level: int, why: str, expected: str, hint: str | None = None) -> InputError:
    return InputError(why, field=_OPTION, found=level, expected=expected, hint=hint)


__all__ = ["boosted_for", "level_asked", "level_for", "require_here"]
