"""Clock reasons: why a GPU's clocks are what they are, as NVML's bits; which of them slow it down.

Bits: nvml.h, group nvmlClocksEventReasons (nvmlClocksThrottleReasons before CUDA 12.2).
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ClockReason:
    """One bit of NVML's answer.

    Attributes:
        name: its name in records.
        culprit: what held the clocks down, in words; empty where that is the GPU's normal life.
            A B200 under load lives at its power cap; so that cap is recorded and does not count.
    """

    name: str
    culprit: str = ""

    @property
    def slows(self) -> bool:
        """Whether a GPU in this state is slower than the same GPU on another day."""
        return bool(self.culprit)


IDLE = 0x1

CLOCK_REASONS: Mapping[int, ClockReason] = {
    IDLE: ClockReason("gpu_idle"),
    0x2: ClockReason("applications_clocks_setting"),
    0x4: ClockReason("sw_power_cap"),
    0x8: ClockReason("hw_slowdown", "its hardware protection"),
    0x10: ClockReason("sync_boost"),
    0x20: ClockReason("sw_thermal_slowdown", "heat"),
    0x40: ClockReason("hw_thermal_slowdown", "heat"),
    0x80: ClockReason("hw_power_brake_slowdown", "the power brake"),
    0x100: ClockReason("display_clock_setting"),
    0x200: ClockReason("board_limit"),
    0x400: ClockReason("reliability"),
}


def reasons_in(bits: int) -> tuple[str, ...]:
    """The names in NVML's answer; a bit of a later driver by its number."""
    named = {bit: reason.name for bit, reason in CLOCK_REASONS.items()}
    found = []
    bit = 1
    while bit <= bits:
        if bits & bit:
            found.append(named.get(bit, f"unknown_0x{bit:x}"))
        bit <<= 1
    return tuple(found)


def slows(bits: int) -> bool:
    """Whether one of the reasons in NVML's answer counts as a slowdown."""
    return any(bits & bit and reason.slows for bit, reason in CLOCK_REASONS.items())


def culprits(names: Mapping[str, float]) -> tuple[str, ...]:
    """Who held the clocks down, in words, most frequent first.

    ``hw_slowdown`` is set beside the bit that tells the cause, so it speaks only where it is alone.
    """
    shares: dict[str, float] = {}
    for reason in CLOCK_REASONS.values():
        share = names.get(reason.name, 0.0)
        if reason.slows and share > shares.get(reason.culprit, 0.0):
            shares[reason.culprit] = share
    general = CLOCK_REASONS[0x8].culprit
    if len(shares) > 1:
        shares.pop(general, None)
    return tuple(sorted(shares, key=lambda one: -shares[one]))
