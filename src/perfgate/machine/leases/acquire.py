"""Taking: one try to get all locks of a wish, or none, and who is in the way if it fails.

Called while the folder is guarded. There is one lock for each GPU, and one for the machine: shared
by those who use a part of the GPUs, held alone by who needs the whole node or the CPU.
"""

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass

from perfgate.machine.leases.devices import Device
from perfgate.machine.leases.holder import UNNAMED, Holder, holder_in
from perfgate.machine.leases.lock_folder import LockFile, LockFolder
from perfgate.machine.leases.request import Wish, chosen

_GPU = "gpu-"


@dataclass(frozen=True)
class Taken:
    """Locks that are held, and the GPUs they stand for."""

    gpus: tuple[Device, ...]
    locks: tuple[LockFile, ...]
    files: ExitStack

    def let_go(self) -> None:
        """Close the locks; who has inherited them keeps them."""
        self.files.close()


def take(
    folder: LockFolder, wish: Wish, avoid: Collection[str], holder: Holder
) -> Taken | tuple[str, ...]:
    """All locks of the wish, or who is in the way.

    Args:
        folder: where the locks are.
        wish: what is asked for.
        avoid: keys of GPUs to be taken last, since strangers are on them.
        holder: who asks.
    """
    with ExitStack() as files:
        machine = files.enter_context(folder.file(_machine(wish)))
        if not machine.try_lock(shared=not wish.alone):
            return _who_is_here(folder, wish)
        if wish.alone:
            machine.write(holder.text())
            gpus = chosen(wish, wish.keys, avoid) if wish.count else ()
            return Taken(gpus, (machine,), files.pop_all())
        of_gpu = {
            gpu: files.enter_context(folder.file(_file(wish, gpu.key))) for gpu in wish.candidates
        }
        free = [gpu for gpu, lock in of_gpu.items() if lock.try_lock()]
        gpus = chosen(wish, {gpu.key for gpu in free}, avoid)
        for gpu in free:
            if gpu in gpus:
                of_gpu[gpu].write(holder.text())
            else:
                of_gpu[gpu].unlock()
        if not gpus:
            return _who_is_here(folder, wish)
        return Taken(gpus, (machine, *(of_gpu[gpu] for gpu in gpus)), files.pop_all())


def _who_is_here(folder: LockFolder, wish: Wish) -> tuple[str, ...]:
    """Who holds what the wish needs: ``GPUs 0-3 are held by run …``."""
    held, text = folder.is_held(_machine(wish))
    if held:  # by one alone: a lock that is shared could have been shared with us
        return (f"the machine is held by {holder_in(text) or UNNAMED}",)
    labels = {_file(wish, gpu.key): gpu.label for gpu in wish.candidates}
    names = folder.names(wish.world + _GPU) if wish.alone else sorted(labels)
    by_holder: dict[str, list[str]] = {}
    for name in names:
        held, text = folder.is_held(name)
        if held:
            who = str(holder_in(text) or UNNAMED)
            by_holder.setdefault(who, []).append(labels.get(name) or _key(name, wish))
    told = [f"{_listed(labels)} held by {who}" for who, labels in by_holder.items()]
    return tuple(told) or ("somebody else's locks have not all been let go of yet",)


def _machine(wish: Wish) -> str:
    return f"{wish.world}machine.lock"


def _file(wish: Wish, key: str) -> str:
    return f"{wish.world}{key}.lock"


def _key(name: str, wish: Wish) -> str:
    return name.removeprefix(wish.world + _GPU).removesuffix(".lock")


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
