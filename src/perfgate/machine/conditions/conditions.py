"""Conditions: what a machine was like while something was measured on it, as plain values; which
of them are beyond a measurement's limits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perfgate.core.measurement import Json
from perfgate.core.plain import from_plain, to_plain
from perfgate.machine.nvml import culprits
from perfgate.scenarios.scenario import DisturbanceLimits

_DIGITS = 4  # a share to 0.01 %; more is noise
# CPU times come in ticks of 10 ms for each core, and those of all and those of ours are not read in
# the same moment: one tick more or less is 2 % of 0.5 s, and 50 % of 0.02 s.
SHORTEST_CPU_S = 0.5
FEWEST_SLOWED = 2  # NVML may report a slowdown in the moment of any change of clocks


@dataclass(frozen=True)
class CpuConditions:
    """The cores that this process may use; shares from 0 to 1 of all of them over the whole time.

    Attributes:
        cores: how many they are.
        others_share: user and system time of processes that are not ours; None: cannot be told
            apart from ours (the notes say why).
        steal_share: time that the hypervisor gave to other machines.
        mhz_low: the slowest sample of the clock, in MHz, taken over the cores that worked …
        mhz_median: … and the median of these samples; None: no clock was readable, or no core
            worked.
        mhz_top: the highest clock that the CPU names; None: it names none (virtual machines).
    """

    cores: int
    others_share: float | None
    steal_share: float
    mhz_low: float | None = None
    mhz_median: float | None = None
    mhz_top: float | None = None


@dataclass(frozen=True)
class GpuConditions:
    """One GPU. What NVML did not answer is None.

    Attributes:
        index: its number as NVML, and nvidia-smi, counts.
        name: its model.
        uuid: its unique name.
        sm_mhz_low: lowest SM clock in MHz, of the samples in which it was not idle …
        sm_mhz_median: … and their median.
        power_w_mean: mean power in W.
        temperature_c_top: highest temperature in °C.
        slowdown: reason (`nvml.CLOCK_REASONS`) → share of the samples in which it set the clocks.
        slowed_share: share of the samples in which at least one of the reasons held that count as
            a slowdown; None: the reasons were not readable.
        strangers: processes on it that are not ours: ``pid 4711 (python)``.
    """

    index: int
    name: str
    uuid: str
    sm_mhz_low: float | None = None
    sm_mhz_median: float | None = None
    power_w_mean: float | None = None
    temperature_c_top: float | None = None
    slowdown: Mapping[str, float] = field(default_factory=dict)
    slowed_share: float | None = None
    strangers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conditions:
    """What was seen from the first sample to the last.

    Attributes:
        seconds: between these two.
        samples: how many there were.
        cpu: the CPU; None: not watched.
        gpus: the GPUs that were watched.
        notes: what was not watched, and why.
    """

    seconds: float
    samples: int
    cpu: CpuConditions | None
    gpus: tuple[GpuConditions, ...] = ()
    notes: tuple[str, ...] = ()

    def plain(self) -> dict[str, Json]:
        """As JSON values, fields by their names, numbers to four places."""
        return {name: _rounded(value) for name, value in to_plain(self).items()}


def conditions_of(plain: object) -> Conditions:
    """The conditions whose `plain` form this is.

    Raises:
        InputError: it is none.
    """
    return from_plain(Conditions, plain)


def not_watched(why: str) -> Conditions:
    """The conditions of a machine that nobody looked at."""
    return Conditions(0.0, 0, None, notes=(f"not watched: {why}",))


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


def _rounded(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _rounded(held) for name, held in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, _DIGITS) if isinstance(value, float) else value
