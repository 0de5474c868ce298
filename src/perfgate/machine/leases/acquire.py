"""Acquire: one try to get all locks of a request, or none, and who is in the way if it fails.

Called while the folder is guarded. There is one lock for each GPU, and one for the machine: shared
by those who use a part of the GPUs, held alone by who needs the whole node or the CPU.
"""

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass

from perfgate.machine.leases.devices import Device
from perfgate.machine.leases.holder import UNNAMED, Holder, holder_in
from perfgate.machine.leases.lock_folder import LockFile, LockFolder
from perfgate.machine.leases.request import LeaseRequest, chosen

_GPU = "gpu-"


@dataclass(frozen=True)
class AcquiredLocks:
    """Locks that are held, and the GPUs they stand for."""

    gpus: tuple[Device, ...]
    locks: tuple[LockFile, ...]
    files: ExitStack

    def let_go(self) -> None:
        """Close the locks; who has inherited them keeps them."""
        self.files.close()


def acquire(
    folder: LockFolder, request: LeaseRequest, avoid: Collection[str], holder: Holder
) -> AcquiredLocks | tuple[str, ...]:
    """All locks of the request, or who is in the way.

    Args:
        folder: where the locks are.
        request: what is asked for.
        avoid: keys of GPUs to be chosen last, since foreign processes are on them.
        holder: who asks.
    """
    with ExitStack() as files:
        machine = files.enter_context(folder.file(_machine(request)))
        if not machine.try_lock(shared=not request.alone):
            return _who_is_here(folder, request)
        if request.alone:
            machine.write(holder.text())
            gpus = chosen(request, request.keys, avoid) if request.count else ()
            return AcquiredLocks(gpus, (machine,), files.pop_all())
        of_gpu = {
            gpu: files.enter_context(folder.file(_file(request, gpu.key)))
            for gpu in request.candidates
        }
        free = [gpu for gpu, lock in of_gpu.items() if lock.try_lock()]
        gpus = chosen(request, {gpu.key for gpu in free}, avoid)
        for gpu in free:
            if gpu in gpus:
                of_gpu[gpu].write(holder.text())
            else:
                of_gpu[gpu].unlock()
        if not gpus:
            return _who_is_here(folder, request)
        return AcquiredLocks(gpus, (machine, *(of_gpu[gpu] for gpu in gpus)), files.pop_all())


def _who_is_here(folder: LockFolder, request: LeaseRequest) -> tuple[str, ...]:
    """Who holds what the request needs: ``GPUs 0-3 are held by run …``."""
    held, text = folder.is_held(_machine(request))
    if held:  # by one alone: a lock that is shared could have been shared with us
        return (f"the machine is held by {holder_in(text) or UNNAMED}",)
    labels = {_file(request, gpu.key): gpu.label for gpu in request.candidates}
    names = folder.names(request.world + _GPU) if request.alone else sorted(labels)
    by_holder: dict[str, list[str]] = {}
    for name in names:
        held, text = folder.is_held(name)
        if held:
            who = str(holder_in(text) or UNNAMED)
            by_holder.setdefault(who, []).append(labels.get(name) or _key(name, request))
    held_by = [f"{_listed(labels)} held by {who}" for who, labels in by_holder.items()]
    return tuple(held_by) or ("locks of others have not all been released yet",)


def _machine(request: LeaseRequest) -> str:
    return f"{request.world}machine.lock"


def _file(request: LeaseRequest, key: str) -> str:
    return f"{request.world}{key}.lock"


def _key(name: str, request: LeaseRequest) -> str:
    return name.removeprefix(request.world + _GPU).removesuffix(".lock")


def _listed(labels: list[str]) -> str:
    """``GPU 5 is``, ``GPUs 0-3 are``, ``GPUs 0, 2, 5 are``."""
    if len(labels) == 1:
        return f"GPU {labels[0]} is"
    if not all(label.isdigit() for label in labels):
        return f"GPUs {', '.join(labels)} are"
    spans: list[list[int]] = []
    for number in sorted(map(int, labels)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = (str(first) if first == last else f"{first}-{last}" for first, last in spans)
    return f"GPUs {', '.join(words)} are"
