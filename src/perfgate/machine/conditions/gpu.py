"""GPU: clocks, power, heat and foreign processes of the GPUs that a program will use.

Whatever NVML cannot answer becomes a note or a missing value, never an error.
"""

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from perfgate.machine.conditions.conditions import GpuConditions
from perfgate.machine.conditions.processes import Process
from perfgate.machine.nvml import (
    IDLE,
    UNSEEN_LEAST,
    Nvml,
    NvmlGpu,
    Unreadable,
    is_service,
    known_or,
    open_nvml,
    reasons_in,
    slows,
    unseen_words,
    words_of,
)

_Value = TypeVar("_Value")

# A process that ends between the readings of memory and of processes is unseen in one sample.
_FEWEST_UNSEEN = 2


@dataclass
class _Gpu:
    """One GPU and what its samples add up to; `present` are the pids of the last sample."""

    reader: NvmlGpu
    index: int
    name: str
    uuid: str
    is_split: bool
    clocks: list[float] = field(default_factory=list)
    watts: list[float] = field(default_factory=list)
    degrees: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    slowed: int = 0
    reasons_read: int = 0
    present: frozenset[int] = frozenset()
    foreign: dict[int, str] = field(default_factory=dict)  # seen beside ours, by name
    unknown: dict[int, str] = field(default_factory=dict)  # seen, in whatever pid namespace
    unseen: list[int] = field(default_factory=list)  # bytes that no listed process holds


@dataclass
class Gpus:
    """The GPUs under watch. `sample` first, then `tell_apart` with a younger process table."""

    notes: list[str]
    nvml: Nvml | None = None
    gpus: list[_Gpu] = field(default_factory=list)
    pids_are_ours_to_read: bool = False  # NVML's pids and ours are of one namespace

    def sample(self) -> None:
        """Ask each GPU once."""
        for gpu in self.gpus:
            self._clocks(gpu)
            power_w, degrees = gpu.reader.power_w, gpu.reader.temperature_c
            for what, fact, seen in (
                ("power", power_w, gpu.watts),
                ("temperature", degrees, gpu.degrees),
            ):
                if (value := self._known(gpu, what, fact)) is not None:
                    seen.append(float(value))
            self._processes(gpu)

    def tell_apart(self, table: Mapping[int, Process], ours: frozenset[int]) -> None:
        """Note who of the last sample is not ours.

        The table must be younger than the sample: then a pid that is in it and not ours is
        foreign, and one that has just ended, perhaps ours, is in it no more.
        """
        for gpu in self.gpus:
            self.pids_are_ours_to_read |= bool(gpu.present & ours)
            for pid in gpu.present - ours:
                name = table[pid].name if pid in table else ""
                if not is_service(name):
                    gpu.unknown.setdefault(pid, name)
                    if pid in table:
                        gpu.foreign.setdefault(pid, name)

    def present(self) -> dict[str, frozenset[int]]:
        """UUID → pids that were on the GPU at the last sample."""
        return {gpu.uuid: gpu.present for gpu in self.gpus}

    def conditions(self, before: Mapping[str, frozenset[int]]) -> tuple[GpuConditions, ...]:
        """What the samples show; more notes where something stayed unknown.

        Args:
            before: UUID → pids that were there before any program of ours ran. They are foreign
                whatever pid namespace they belong to; all others only if ours can be told.
        """
        if not self.pids_are_ours_to_read and any(
            gpu.unknown.keys() - before.get(gpu.uuid, frozenset()) for gpu in self.gpus
        ):
            self._note(
                "who else uses the GPUs is known only of those who did before the start: NVML "
                "shows no process of ours (are its pids of another namespace?)"
            )
        return tuple(self._conditions(gpu, before.get(gpu.uuid, frozenset())) for gpu in self.gpus)

    def close(self) -> None:
        """Let go of the driver."""
        if self.nvml is not None:
            self.nvml.close()

    def _conditions(self, gpu: _Gpu, before: frozenset[int]) -> GpuConditions:
        foreign = {pid: name for pid, name in gpu.unknown.items() if pid in before}
        if self.pids_are_ours_to_read:
            foreign |= gpu.foreign
        if gpu.is_split:
            foreign = {}
        strangers = [words_of(pid, name) for pid, name in sorted(foreign.items())]
        read = gpu.reasons_read
        return GpuConditions(
            index=gpu.index,
            name=gpu.name,
            uuid=gpu.uuid,
            sm_mhz_low=min(gpu.clocks, default=None),
            sm_mhz_median=statistics.median(gpu.clocks) if gpu.clocks else None,
            power_w_mean=statistics.fmean(gpu.watts) if gpu.watts else None,
            temperature_c_top=max(gpu.degrees, default=None),
            slowdown={name: count / read for name, count in sorted(gpu.reasons.items())},
            slowed_share=gpu.slowed / read if read else None,
            strangers=(*strangers, *self._unseen_strangers(gpu)),
        )

    def _unseen_strangers(self, gpu: _Gpu) -> tuple[str, ...]:
        """An unseen process that came after the first sample.

        One that was there already is a note: it may be our engine in a container of its own, as may
        any where NVML shows no process of ours.
        """
        first = gpu.unseen[0] if gpu.unseen else 0
        grown = [size - first for size in gpu.unseen if size - first >= UNSEEN_LEAST]
        if self.pids_are_ours_to_read and len(grown) >= _FEWEST_UNSEEN:
            return (unseen_words(max(grown)),)
        held = [size for size in gpu.unseen if size >= UNSEEN_LEAST]
        if len(held) >= _FEWEST_UNSEEN:
            self._note(f"GPU {gpu.index} may also be used by {unseen_words(max(held))}")
        return ()

    def _clocks(self, gpu: _Gpu) -> None:
        bits = self._known(gpu, "clock reasons", gpu.reader.clock_reasons)
        if bits is not None:
            gpu.reasons_read += 1
            gpu.reasons.update(reasons_in(bits))
            gpu.slowed += slows(bits)
        mhz = self._known(gpu, "SM clock", gpu.reader.sm_mhz)
        if mhz is not None and not (bits or 0) & IDLE:
            gpu.clocks.append(float(mhz))

    def _processes(self, gpu: _Gpu) -> None:
        occupants = self._known(gpu, "processes", gpu.reader.occupants)
        gpu.present = frozenset() if occupants is None else occupants.pids
        if occupants is not None and not gpu.is_split:
            self._unseen(gpu, occupants.unseen_bytes)

    def _unseen(self, gpu: _Gpu, size: int | Unreadable) -> None:
        if isinstance(size, Unreadable) and size.kind == "unsupported":
            return
        known = self._known(gpu, "memory of unseen processes", size)
        gpu.unseen += [] if known is None else [known]

    def _known(self, gpu: _Gpu, what: str, fact: _Value | Unreadable) -> _Value | None:
        """The fact; None, and a note, where it could not be read."""
        if isinstance(fact, Unreadable):
            self._note(f"GPU {gpu.index}: {what} not readable: {fact.why}")
            return None
        return fact

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def open_gpus(wanted: int, notes: list[str], visible: str | None = None) -> Gpus:
    """The GPUs that a program on `wanted` of them will use; none, and a note, when there is no way.

    Those of `visible`, else of ``CUDA_VISIBLE_DEVICES``, in its order; else the first.
    """
    if wanted <= 0:
        return Gpus(notes)
    nvml = open_nvml()
    if isinstance(nvml, Unreadable):
        notes.append(f"GPUs not watched: {nvml.why}")
        return Gpus(notes)
    found = nvml.visible_gpus(wanted, visible)
    notes += [one.why for one in found if isinstance(one, Unreadable)]
    gpus = [_described(one, notes) for one in found if isinstance(one, NvmlGpu)]
    if len(gpus) < wanted:
        notes.append(f"{len(gpus)} of {wanted} GPUs watched: NVML shows no more of them")
    return Gpus(notes, nvml, gpus)


def _described(reader: NvmlGpu, notes: list[str]) -> _Gpu:
    gpu = _Gpu(
        reader,
        known_or(reader.index, -1),
        known_or(reader.name, "unknown"),
        known_or(reader.uuid, "unknown"),
        reader.is_split is True,
    )
    if gpu.is_split:
        notes.append(f"GPU {gpu.index} is split (MIG): who else uses it is not watched")
    return gpu
