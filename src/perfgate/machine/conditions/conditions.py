"""Conditions: what a machine was like while something was measured on it, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perfgate.core.measurement import Json

_DIGITS = 4  # a share to 0.01 %; more is noise


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
        slowdown: reason (`clock_reasons`) → share of the samples in which it set the clocks.
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
        return _rounded(msgspec.to_builtins(self))  # type: ignore[no-any-return]


def conditions_of(plain: object) -> Conditions:
    """The conditions whose `plain` form this is.

    Raises:
        ValueError: it is none.
    """
    try:
        return msgspec.convert(plain, Conditions)
    except msgspec.ValidationError as error:
        raise ValueError(f"not what a watch tells: {error}") from error


def not_watched(why: str) -> Conditions:
    """The conditions of a machine that nobody looked at."""
    return Conditions(0.0, 0, None, notes=(f"not watched: {why}",))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return round(value, _DIGITS) if isinstance(value, float) else value
