"""CPU: what others took of the cores that we may use, what the hypervisor took, and their clocks.

Time of the kernel's own threads is others'.
"""

import os
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import psutil

from perfgate.core.cpu_times import Core, core_times
from perfgate.machine.conditions.conditions import CpuConditions
from perfgate.machine.conditions.processes import Process

# Clients of a daemon: what they start runs, but not below them.
HAND_OVER = frozenset({"docker", "nerdctl", "crictl", "kubectl", "srun", "sbatch"})
WORKED = 0.5  # share of an interval; a core that works less may have clocked down by itself
SHORTEST_S = 0.1  # ten ticks: in less, whether a core worked cannot be told


@dataclass(frozen=True)
class CpuSample:
    """One moment.

    Attributes:
        at_s: when, by the monotonic clock.
        cores: number of a usable core → its times.
        ours: our own processes.
        mhz: number of a usable core → its clock.
        mhz_top: the highest clock that the CPU names.
        handed_over_by: a program of ours whose work is done by processes that are not ours.
    """

    at_s: float
    cores: Mapping[int, Core]
    ours: Sequence[Process] = ()
    mhz: Mapping[int, float] = field(default_factory=dict)
    mhz_top: float | None = None
    handed_over_by: str = ""


@dataclass
class CpuAccount:
    """The samples of one measurement, added up.

    Ours may be several trees, which come and go: a step of a Slurm job ends, and nobody of ours has
    its time then. What a tree used after the last sample of it is lost.
    """

    first: CpuSample | None = None
    last: CpuSample | None = None
    ours_s: float = 0.0
    clocks: list[float] = field(default_factory=list)
    handed_over_by: str = ""

    def add(self, sample: CpuSample) -> None:
        """Take one more sample, later than all before."""
        if self.first is None or self.last is None:
            self.first = sample
        else:
            self.ours_s += _used(self.last.ours, sample.ours)
            clock = _clock(self.last, sample)
            if clock is not None:
                self.clocks.append(clock)
        self.handed_over_by = self.handed_over_by or sample.handed_over_by
        self.last = sample

    def conditions(self) -> CpuConditions | None:
        """What the samples show; None when there are not two of them."""
        first, last = self.first, self.last
        if first is None or last is None or last.at_s <= first.at_s:
            return None
        cores = [number for number in first.cores if number in last.cores]
        if not cores:
            return None
        available_s = (last.at_s - first.at_s) * len(cores)
        worked_s = sum(last.cores[core].work_s - first.cores[core].work_s for core in cores)
        stolen_s = sum(last.cores[one].steal_s - first.cores[one].steal_s for one in cores)
        return CpuConditions(
            cores=len(cores),
            others_share=(
                None if self.handed_over_by else max(0.0, worked_s - self.ours_s) / available_s
            ),
            steal_share=max(0.0, stolen_s) / available_s,
            mhz_low=min(self.clocks, default=None),
            mhz_median=statistics.median(self.clocks) if self.clocks else None,
            mhz_top=last.mhz_top,
        )

    def notes(self) -> tuple[str, ...]:
        """What could not be told, and why."""
        if not self.handed_over_by:
            return ()
        return (
            "CPU of other processes not told apart: "
            f"{self.handed_over_by} has its work done by processes that are not ours",
        )


def read_cpu(
    at_s: float, ours: Sequence[Process], hand_over: Collection[str] = HAND_OVER
) -> CpuSample:
    """This moment, with our own processes as they were just found.

    Args:
        at_s: when that was.
        ours: our processes.
        hand_over: programs whose work is done by processes that are not among ours.
    """
    every = core_times()
    usable = os.sched_getaffinity(os.getpid())
    mhz, mhz_top = _clocks(tuple(every), usable)
    return CpuSample(
        at_s=at_s,
        cores={number: core for number, core in every.items() if number in usable},
        ours=ours,
        mhz=mhz,
        mhz_top=mhz_top,
        handed_over_by=next((process.name for process in ours if process.name in hand_over), ""),
    )


def _used(before: Sequence[Process], now: Sequence[Process]) -> float:
    """CPU seconds of ours between two samples; all that a new tree has used.

    Time of a process that nobody waited for is lost with it: a drop is no use of CPU.
    """
    earlier, members = _by_tree(before), {process.pid for process in before}
    return sum(
        max(0.0, used_s - earlier.get(top, 0.0))
        for top, used_s in _by_tree(now).items()
        # Else its parent has ended: so far it was counted with it.
        if top in earlier or top not in members
    )


def _by_tree(ours: Sequence[Process]) -> dict[int, float]:
    """The top of each tree → CPU seconds of all its processes."""
    members = {process.pid: process for process in ours}
    trees: dict[int, float] = {}
    for process in ours:
        top = process.pid
        while members[top].parent in members:
            top = members[top].parent
        trees[top] = trees.get(top, 0.0) + process.cpu_s
    return trees


def _clock(before: CpuSample, now: CpuSample) -> float | None:
    """Mean clock of the cores that worked since `before`; None when none did."""
    elapsed = now.at_s - before.at_s
    if elapsed < SHORTEST_S:
        return None
    working = [
        mhz
        for number, mhz in now.mhz.items()
        if number in before.cores
        and now.cores[number].work_s - before.cores[number].work_s > WORKED * elapsed
    ]
    return statistics.fmean(working) if working else None


def _clocks(online: Sequence[int], usable: set[int]) -> tuple[dict[int, float], float | None]:
    """Clock of each usable core in MHz, and the highest that the CPU names.

    Both are unknown where psutil does not say, or names fewer clocks than there are cores.
    """
    try:
        answers = psutil.cpu_freq(percpu=True)
    except (OSError, NotImplementedError, ValueError):
        return {}, None
    if len(answers) != len(online):
        return {}, None
    of_ours = {
        number: answer
        for number, answer in zip(online, answers, strict=True)
        if number in usable and answer.current
    }
    top = max((answer.max or 0.0 for answer in of_ours.values()), default=0.0)
    return {number: answer.current for number, answer in of_ours.items()}, top or None
