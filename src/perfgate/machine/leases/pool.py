"""GpuPool: lease some of this machine's GPUs, or its CPU, for one measurement.

All or nothing: nobody holds some GPUs while waiting for more, so nobody waits in a circle. There is
one lock for each GPU, and one for the machine: shared by those who use a part of the GPUs, held
alone by who needs the whole node or the CPU.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from perfgate.core.errors import InputError
from perfgate.core.measurement import Json
from perfgate.machine.leases.devices import (
    Device,
    Devices,
    environment_of,
    foreign_processes,
    visible_devices,
)
from perfgate.machine.leases.file_locks import (
    Busy,
    FileLock,
    holding,
    let_go,
    lock_folder,
    take,
    wait_until_free,
)

FOREIGN_S = 300.0  # others' programs on otherwise free GPUs; they wait for no lock


@dataclass(frozen=True)
class Lease:
    """What may be used while the block runs.

    Attributes:
        gpus: the GPUs, in the order in which the program sees them; none for the CPU.
        env: what its programs must have in their environment.
        synthetic: the GPUs are simulated; whatever is measured on them is no measurement.
        notes: what could not be made sure of.
        waited_s: how long it took to get them.
    """

    gpus: tuple[Device, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    synthetic: bool = False
    notes: tuple[str, ...] = ()
    waited_s: float = 0.0

    def plain(self) -> dict[str, Json]:
        """As a record has it."""
        return {
            "gpus": [gpu.uuid or gpu.label for gpu in self.gpus],
            "notes": list(self.notes),
            "waited_s": round(self.waited_s, 1),
        }


@dataclass(frozen=True)
class GpuPool:
    """The GPUs that this process may lease.

    Attributes:
        devices: the GPUs; those of CUDA_VISIBLE_DEVICES where that is set.
        environ: the environment that says where the locks are.
        share_cpu: whether measurements without a GPU run beside others, on purpose.
    """

    devices: Devices
    environ: Mapping[str, str]
    share_cpu: bool = False

    @classmethod
    def of_machine(
        cls, environ: Mapping[str, str] | None = None, *, share_cpu: bool = False
    ) -> Self:
        """The GPUs of this machine, or ``PERFGATE_FAKE_GPUS`` made-up ones. Locks nothing.

        Raises:
            InputError: CUDA_VISIBLE_DEVICES or PERFGATE_FAKE_GPUS cannot be understood.
        """
        environ = dict(os.environ if environ is None else environ)
        return cls(visible_devices(environ), environ, share_cpu)

    @property
    def gpus(self) -> tuple[Device, ...]:
        """The GPUs, in the order in which programs see them."""
        return self.devices.gpus

    @property
    def synthetic(self) -> bool:
        """Whether the GPUs are simulated."""
        return self.devices.made_up

    @contextmanager
    def lease(
        self,
        count: int,
        *,
        whole: bool,
        run: str,
        wait_s: float,
        tell: Callable[[str], None],
        fits: Callable[[str], bool] | None = None,
    ) -> Iterator[Lease]:
        """Have `count` GPUs, or for 0 the CPU, while the block runs. One lease at a time.

        Args:
            count: how many GPUs.
            whole: nobody else may use any GPU of this machine meanwhile, or measure on its CPU.
            run: for which run; others who wait read it.
            wait_s: how long to wait, in seconds; 0: not at all.
            tell: called with a line when waiting begins, and now and then.
            fits: whether a GPU of this model, as the driver names it, will do; None: every GPU.

        Raises:
            RunError: class ``gpus_busy``: they did not become free in time.
            InputError: there are not as many, or the folder of the locks cannot be used.
        """
        if count == 0 and self.share_cpu:
            yield Lease()
            return
        candidates = self._candidates(count, fits) if count else ()
        alone = whole or not count
        folder = lock_folder(self.environ)
        began = time.monotonic()
        locks, gpus, notes = wait_until_free(
            lambda: self._grant(folder, candidates, count, run, alone=alone),
            _described(count, alone=alone),
            wait_s,
            tell,
            hint="wait until they are done, or contact their owners; who has the locks open: "
            f"`fuser -v {folder}/*.lock`, who is on the GPUs: `nvidia-smi`",
        )
        with holding(locks):
            env = environment_of(gpus, self.devices) if gpus else {}
            made_up = self.synthetic and count > 0
            yield Lease(gpus, env, made_up, tuple(notes), time.monotonic() - began)

    def _candidates(self, count: int, fits: Callable[[str], bool] | None) -> tuple[Device, ...]:
        """The GPUs of which `count` may be leased: waiting for more would not help."""
        candidates = tuple(gpu for gpu in self.gpus if fits is None or fits(gpu.name))
        if count < 0 or len(candidates) < count:
            note = self.devices.note or "CUDA_VISIBLE_DEVICES names none"
            named = ", ".join(f"GPU {gpu.label} ({gpu.name})" for gpu in self.gpus)
            raise InputError(
                "more GPUs are requested than perfgate may use here",
                found=named or f"none ({note})",
                expected=f"{count}, of the scenario's model",
                hint="choose scenarios for fewer GPUs, or widen CUDA_VISIBLE_DEVICES",
            )
        return candidates

    def _grant(
        self, folder: Path, candidates: Sequence[Device], count: int, run: str, *, alone: bool
    ) -> tuple[tuple[FileLock, ...], tuple[Device, ...], Sequence[str]]:
        """The locks of `count` of the GPUs, the GPUs, and what could not be made sure of.

        Raises:
            Busy: others use them.
        """
        kind = "fake-" if self.synthetic and count else ""
        machine = {folder / f"{kind}machine.lock": "the machine"}
        is_watched = count > 0 and not self.synthetic
        foreign: dict[str, tuple[str, ...]] = {}
        locked = ""
        for group in _groups(candidates, count):
            files = {
                folder / f"{kind}{gpu.key}.lock": f"GPU {gpu.label}"
                for gpu in sorted(group, key=lambda gpu: gpu.key)
                if gpu.label not in foreign
            }
            with ExitStack() as stack:
                try:
                    locks = take(files, count, run)
                    stack.callback(let_go, locks)
                    of_machine = take(machine, 1, run, shared=not alone)
                except Busy as busy:
                    locked = str(busy)
                    continue
                stack.callback(let_go, of_machine)
                names = {lock.path.name for lock in locks}
                gpus = tuple(gpu for gpu in group if f"{kind}{gpu.key}.lock" in names)
                # On all GPUs, where nobody else may be on any.
                watched = self.gpus if alone else gpus
                seen, notes = foreign_processes(watched) if is_watched else ({}, [])
                if not seen:
                    stack.pop_all()
                    return (*locks, *of_machine), gpus, notes
            foreign |= seen
            locked = ""
        why = [
            f"GPU {label} is used by {', '.join(who)}, without a lease"
            for label, who in sorted(foreign.items())
        ]
        if locked:
            raise Busy("; ".join([*why, locked]))
        raise Busy("; ".join(why), patience_s=FOREIGN_S)


def _described(count: int, *, alone: bool) -> str:
    """What is waited for, in words."""
    if count == 0:
        return "the CPU"
    gpus = f"{count} GPU{'s' if count > 1 else ''}"
    return f"the whole node ({gpus})" if alone else gpus


def _groups(candidates: Sequence[Device], count: int) -> list[Sequence[Device]]:
    """The candidates in blocks of neighbours (0-3, 4-7), then all.

    Neighbours most often share a switch and a socket. All of them again and again, as each time
    foreign processes may be seen on one more of them.
    """
    spare = len(candidates) - count
    starts = range(0, spare + 1, count) if spare and count else ()
    return [*(candidates[start : start + count] for start in starts), *[candidates] * (spare + 1)]
