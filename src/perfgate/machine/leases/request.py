"""Lease request: what one test asks for, which requests conflict, and how GPUs are chosen."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from perfgate.core.errors import InputError
from perfgate.machine.leases.devices import Device, Devices


@dataclass(frozen=True)
class LeaseRequest:
    """What is asked for.

    Attributes:
        count: how many GPUs; 0: the CPU.
        candidates: the GPUs of which these may be.
        alone: nobody else may hold anything meanwhile: a whole node, or the CPU.
        world: what the names of its locks begin with; simulated GPUs have locks of their own.
    """

    count: int
    candidates: tuple[Device, ...]
    alone: bool
    world: str = ""

    @property
    def keys(self) -> frozenset[str]:
        """The candidates' keys."""
        return frozenset(gpu.key for gpu in self.candidates)

    def __str__(self) -> str:
        if self.count == 0:
            return "the CPU"
        gpus = f"{self.count} GPU{'s' if self.count > 1 else ''}"
        return f"the whole node ({gpus})" if self.alone else gpus

    def plain(self) -> dict[str, object]:
        """As JSON values, for others who wait."""
        return {"keys": sorted(self.keys), "alone": self.alone, "words": str(self)}

    def is_hindered_by(self, keys: Collection[str], *, alone: bool) -> bool:
        """Whether it cannot be granted beside a request for some of `keys`."""
        return self.alone or alone or not self.keys.isdisjoint(keys)


def request_for(
    count: int,
    whole: bool,
    devices: Devices,
    fits: Callable[[str], bool] | None,
    world: str,
) -> LeaseRequest:
    """The request for `count` of the GPUs, of models that fit.

    Raises:
        InputError: there are not that many, so waiting would not help.
    """
    if count == 0:
        return LeaseRequest(0, (), alone=True)
    candidates = tuple(gpu for gpu in devices.gpus if fits is None or fits(gpu.name))
    if count < 0 or len(candidates) < count:
        raise InputError(
            "more GPUs are requested than perfgate may use here",
            found=", ".join(f"GPU {gpu.label} ({gpu.name})" for gpu in devices.gpus)
            or f"none ({devices.note or 'CUDA_VISIBLE_DEVICES names none'})",
            expected=f"{count}, of the scenario's model",
            hint="choose scenarios for fewer GPUs, or widen CUDA_VISIBLE_DEVICES",
        )
    return LeaseRequest(count, candidates, alone=whole, world=world)


def chosen(
    request: LeaseRequest, free: Collection[str], avoid: Collection[str]
) -> tuple[Device, ...]:
    """Which of the free candidates are taken; none if they are too few.

    The first block of neighbours (0-3, 4-7) that is free, since neighbours most often share a
    switch and a socket; GPUs in `avoid` only where there are no others.
    """
    for unwanted in (avoid, ()):
        left = [gpu for gpu in request.candidates if gpu.key in free and gpu.key not in unwanted]
        for start in range(0, len(request.candidates), request.count):
            block = request.candidates[start : start + request.count]
            if len(block) == request.count and all(gpu in left for gpu in block):
                return block
        if len(left) >= request.count:
            return tuple(left[: request.count])
    return ()
