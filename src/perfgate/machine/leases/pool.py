"""GpuPool: lease some of this machine's GPUs, or its CPU, for one measurement.

All or nothing, in the order of asking: nobody holds some GPUs while waiting for more, so nobody
waits in a circle; and who asks for much is not passed by those who ask for little.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from perfgate.core.errors import RunError
from perfgate.core.measurement import Json
from perfgate.machine.leases.acquire import AcquiredLocks, acquire
from perfgate.machine.leases.devices import Device, Devices, environment_of, visible_devices
from perfgate.machine.leases.foreign_processes import ForeignProcesses, look
from perfgate.machine.leases.holder import Holder, LeaseOwner
from perfgate.machine.leases.inheritance import holding, refuse_a_second
from perfgate.machine.leases.lock_folder import LockFolder, open_folder
from perfgate.machine.leases.queue import Ticket, ahead, draw
from perfgate.machine.leases.request import LeaseRequest, request_for

FAILURE = "gpus_busy"
FOREIGN_S = 300.0  # others' programs on otherwise free GPUs; they know of no queue
GUARD_S = 3.0  # for the guard of the folder, which is held for a millisecond, before it is told
TELL_EVERY_S = 60.0
_PAUSES_S = (0.05, 1.0)  # between two tries: the first, and the longest
_FAKE_WORLD = "fake-"

Tell = Callable[[str], None]


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
        owner: LeaseOwner,
        wait_s: float,
        tell: Tell,
        fits: Callable[[str], bool] | None = None,
    ) -> Iterator[Lease]:
        """Have `count` GPUs, or for 0 the CPU, while the block runs.

        Args:
            count: how many GPUs.
            whole: nobody else may use any GPU of this machine meanwhile, or measure on its CPU.
            owner: for what; others who wait are told.
            wait_s: how long to wait, in seconds; 0: not at all.
            tell: called with a line when waiting begins, when its reason changes, and now and then.
            fits: whether a GPU of this model, as the driver names it, will do; None: every GPU.

        Raises:
            RunError: class ``gpus_busy``: they did not become free in time.
            InputError: there are not as many, or the folder of the locks cannot be used.
            ValueError: this thread holds a lease already.
        """
        if count == 0 and self.share_cpu:
            yield Lease()
            return
        made_up = self.synthetic and count > 0
        request = request_for(count, whole, self.devices, fits, _FAKE_WORLD if made_up else "")
        refuse_a_second()
        watched = () if made_up else self.gpus
        folder = open_folder(self.environ)
        waiting = _Waiting(folder, request, watched, owner, wait_s, tell)
        acquired, notes = waiting.until_granted()
        try:
            with holding(acquired.locks):
                yield Lease(
                    acquired.gpus,
                    environment_of(acquired.gpus, self.devices) if acquired.gpus else {},
                    made_up,
                    (*notes, *([folder.note] if folder.note else [])),
                    waiting.waited_s,
                )
        finally:
            acquired.let_go()


@dataclass
class _Waiting:
    """One request on its way to be granted."""

    folder: LockFolder
    request: LeaseRequest
    watched: Sequence[Device]
    owner: LeaseOwner
    wait_s: float
    tell: Tell
    _ticket: Ticket | None = None
    _began: float = field(default_factory=time.monotonic)
    _said: str = ""
    _said_at: float = 0.0
    _foreign: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by GPU, when last seen
    _ever_foreign: set[str] = field(default_factory=set)
    _foreign_since: float | None = None

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self._began

    def until_granted(self) -> tuple[AcquiredLocks, Sequence[str]]:
        """The locks, and what could not be made sure of."""
        pause_s, longest_s = _PAUSES_S
        try:
            while True:
                found = self._try_once()
                if isinstance(found, AcquiredLocks):
                    seen = self._look_at(found)
                    if not seen.by_gpu:
                        return found, seen.notes
                    found.let_go()
                    if self._remember(seen):
                        continue  # there may be others that are free of them
                    found = self._foreign_in_words()
                else:
                    self._foreign_since = None
                self._give_up_in_time(found)
                self._say(found)
                time.sleep(min(pause_s, max(0.0, self.wait_s - self.waited_s)))
                pause_s = min(1.5 * pause_s, longest_s)
        finally:
            if self._ticket is not None:
                self._ticket.give_back()
                self._ticket = None

    def _try_once(self) -> AcquiredLocks | tuple[str, ...]:
        """All locks, or who is in the way."""
        holder = Holder.now(self.owner)
        try:
            ends = self._began + max(self.wait_s, 1.0)
            with self.folder.guarded(min(ends, time.monotonic() + GUARD_S)):
                earlier = ahead(self.folder, self.request, self._ticket)
                if earlier:
                    found: AcquiredLocks | tuple[str, ...] = _in_the_queue(earlier)
                else:
                    found = acquire(self.folder, self.request, self._foreign, holder)
                if (
                    self._ticket is None
                    and self.wait_s > 0
                    and not isinstance(found, AcquiredLocks)
                ):
                    self._ticket = draw(self.folder, self.request, holder)
                return found
        except TimeoutError as error:
            return (str(error),)

    def _look_at(self, acquired: AcquiredLocks) -> ForeignProcesses:
        """Who is on the GPUs that were just locked; on all, where nobody else may be on any."""
        try:
            mine = self.watched if self.request.alone and self.request.count else acquired.gpus
            seen = look(mine if self.watched else ())
        except BaseException:
            acquired.let_go()
            raise
        looked_at = {gpu.key for gpu in mine}
        self._foreign = {k: who for k, who in self._foreign.items() if k not in looked_at}
        return seen

    def _remember(self, seen: ForeignProcesses) -> bool:
        """Avoid the GPUs that others use from now on; whether there are new ones among them."""
        self._foreign |= seen.by_gpu
        fresh = not seen.by_gpu.keys() <= self._ever_foreign
        self._ever_foreign |= seen.by_gpu.keys()
        return fresh

    def _foreign_in_words(self) -> tuple[str, ...]:
        if self._foreign_since is None:
            self._foreign_since = time.monotonic()
        labels = {gpu.key: gpu.label for gpu in self.watched}
        return tuple(
            f"GPU {labels.get(key, key)} is used by {', '.join(who)}, without a lease"
            for key, who in sorted(self._foreign.items())
        )

    def _give_up_in_time(self, why: Sequence[str]) -> None:
        since = self._foreign_since
        of_foreign = since is not None and time.monotonic() - since >= FOREIGN_S
        if self.waited_s < self.wait_s and not of_foreign:
            return
        raise RunError(
            FAILURE,
            f"{self.request} did not become free in {self.waited_s:.0f} s: {'; '.join(why)}",
            hint="wait until they are done, or contact their owners; who has the locks open: "
            f"`fuser -v {self.folder.path}/*.lock`, who is on the GPUs: `nvidia-smi`",
        )

    def _say(self, why: Sequence[str]) -> None:
        line = f"waiting for {self.request}: {'; '.join(why)}"
        now = time.monotonic()
        if line != self._said or now - self._said_at >= TELL_EVERY_S:
            self._said, self._said_at = line, now
            self.tell(line)


def _in_the_queue(earlier: Sequence[str]) -> tuple[str, ...]:
    more = f" (and {len(earlier) - 1} more)" if len(earlier) > 1 else ""
    return (f"queued before: {earlier[0]}{more}",)
