"""Disturbance: which conditions of a measurement are beyond its limits, in words. Pure."""

from collections.abc import Iterator

from perfgate.machine.conditions.clock_reasons import culprits
from perfgate.machine.conditions.conditions import Conditions, CpuConditions, GpuConditions
from perfgate.scenarios.scenario import DisturbanceLimits

# CPU times come in ticks of 10 ms for each core, and those of all and those of ours are not read in
# the same moment: one tick more or less is 2 % of 0.5 s, and 50 % of 0.02 s.
SHORTEST_CPU_S = 0.5
FEWEST_SLOWED = 2  # NVML may report a slowdown in the moment of any change of clocks


def disturbances(conditions: Conditions, limits: DisturbanceLimits) -> tuple[str, ...]:
    """What disturbed a measurement, one sentence each with its numbers; nothing: empty.

    Args:
        conditions: what was seen while it ran.
        limits: the scenario's; a value equal to its limit is within it.
    """
    found: list[str] = []
    if conditions.cpu is not None and conditions.seconds >= SHORTEST_CPU_S:
        found += _of_cpu(conditions.cpu, limits)
    for gpu in conditions.gpus:
        found += _of_gpu(gpu, conditions.samples, limits)
    return tuple(found)


def _of_cpu(cpu: CpuConditions, limits: DisturbanceLimits) -> Iterator[str]:
    cores = "1 core" if cpu.cores == 1 else f"{cpu.cores} cores"
    if cpu.others_share is not None and cpu.others_share > limits.others_cpu:
        yield (
            f"other processes used {_percent(cpu.others_share, limits.others_cpu)} of {cores} "
            f"(limit {_percent(limits.others_cpu)})"
        )
    if cpu.steal_share > limits.steal:
        yield (
            f"the hypervisor took {_percent(cpu.steal_share, limits.steal)} of {cores} "
            f"for other machines (limit {_percent(limits.steal)})"
        )
    if cpu.mhz_median is not None and cpu.mhz_top:
        share = cpu.mhz_median / cpu.mhz_top
        if share < limits.cpu_clock:
            yield (
                f"CPU clock fell to {_percent(share, limits.cpu_clock)} of "
                f"{cpu.mhz_top / 1000:.3g} GHz (limit {_percent(limits.cpu_clock)})"
            )


def _of_gpu(gpu: GpuConditions, samples: int, limits: DisturbanceLimits) -> Iterator[str]:
    share = gpu.slowed_share or 0.0
    if share > limits.slowdown and round(share * samples) >= FEWEST_SLOWED:
        by = " and ".join(culprits(gpu.slowdown))
        yield (
            f"GPU {gpu.index} was slowed down by {by} in {_percent(share, limits.slowdown)} of "
            f"the samples (limit {_percent(limits.slowdown)})"
        )
    for stranger in gpu.strangers:
        yield f"GPU {gpu.index} is also used by {stranger}"


def _percent(share: float, apart_from: float | None = None) -> str:
    """A share in per cent, with as many places as tell it from another that it is compared with."""
    places = next(
        (
            places
            for places in range(4)
            if apart_from is None or f"{share:.{places}%}" != f"{apart_from:.{places}%}"
        ),
        4,
    )
    return f"{100 * share:.{places}f} %"
