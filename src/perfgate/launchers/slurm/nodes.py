"""Which nodes of an allocation a start may have, when several starts share the allocation.

A lock for each node in the folder of this machine's locks, held for as long as anything of the
start runs. So it holds between the workers of a session and between sessions that run on the same
machine, as the processes of a batch script do; the wardens keep it when perfgate itself is killed.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from perfgate.launchers.nodes.lock_wait import LockWait
from perfgate.machine.leases.holder import UNNAMED, Holder, LeaseOwner, holder_in
from perfgate.machine.leases.inheritance import holding
from perfgate.machine.leases.lock_folder import LockFile, LockFolder, open_folder

_GUARD_S = 30.0


@dataclass(frozen=True)
class NodeRequest:
    """Nodes that are asked for.

    Attributes:
        job: number of the allocation.
        nodes: all of it, name → address.
        avoid: those that will not do.
        count: how many are needed, at most as many as will do.
        owner: for what.
        limit_s: how long to wait for them.
        tell: says who has them.
    """

    job: str
    nodes: Mapping[str, str]
    avoid: Collection[str]
    count: int
    owner: LeaseOwner
    limit_s: float
    tell: Callable[[str], None]


@contextmanager
def free_nodes(asked: NodeRequest) -> Iterator[tuple[str, ...]]:
    """Nodes for one start alone, in the order of the allocation.

    One start at a time collects nodes; the others wait for their turn, so that one that needs many
    is not passed for ever by those that need one.

    Raises:
        RunError: class ``pending_too_long``: others had them all the time.
        InputError: the folder of the locks cannot be used.
    """
    folder = open_folder(os.environ)
    text = Holder.now(asked.owner).text()
    with ExitStack() as stack:
        # An address, too: job numbers of two clusters can be the same.
        turn = _Lock(
            folder, f"slurm-{asked.job}-{next(iter(asked.nodes.values()))}.turn.lock", text
        )
        locks = {
            name: _Lock(folder, f"slurm-{asked.job}-{address}.lock", text)
            for name, address in asked.nodes.items()
            if name not in asked.avoid
        }
        _collect(asked, turn, locks, stack)
        turn.let_go()
        taken = tuple(name for name, lock in locks.items() if lock.file is not None)
        with holding([lock.file for lock in locks.values() if lock.file is not None]):
            yield taken


class _Lock:
    """One lock, by its file's name; `file` is set while we hold it."""

    def __init__(self, folder: LockFolder, name: str, text: str) -> None:
        self.folder = folder
        self.name = name
        self.text = text
        self.file: LockFile | None = None

    def take(self) -> bool:
        """Take it if it is free."""
        if self.file is None:
            file = self.folder.open(self.name)
            if not file.try_lock():
                file.close()
                return False
            file.write(self.text)
            self.file = file
        return True

    def let_go(self) -> None:
        """Let go of it, and of its file: a job's number does not come again.

        A warden that has inherited it keeps the lock; then the file must stay.
        """
        file, self.file = self.file, None
        if file is not None:
            file.close()
            with suppress(TimeoutError), self.folder.guarded(time.monotonic() + _GUARD_S):
                held, _ = self.folder.is_held(self.name)
                if not held:
                    self.folder.delete(self.name)

    def holder(self) -> str | None:
        """Who holds it, in words; None: nobody any more."""
        held, text = self.folder.is_held(self.name)
        return str(holder_in(text) or UNNAMED) if held else None


def _collect(asked: NodeRequest, turn: _Lock, locks: dict[str, _Lock], stack: ExitStack) -> None:
    """Take as many of the locks as are needed; `stack` lets go of them."""
    for lock in (turn, *locks.values()):
        stack.callback(lock.let_go)

    def take() -> str:
        if turn.take():
            for lock in locks.values():
                if _held(locks) < asked.count:
                    lock.take()
        return "" if _held(locks) == asked.count else _who(turn, locks)

    nodes = f"{asked.count} free nodes of job {asked.job}"
    LockWait(turn.folder, nodes, asked.limit_s, "pending_too_long", asked.tell).until(take)


def _held(locks: dict[str, _Lock]) -> int:
    return sum(lock.file is not None for lock in locks.values())


def _who(turn: _Lock, locks: dict[str, _Lock]) -> str:
    """Who has what we wait for."""
    told = [
        f"{name} is held by {holder}"
        for name, lock in locks.items()
        if lock.file is None and (holder := lock.holder()) is not None
    ]
    if turn.file is None and (first := turn.holder()) is not None:
        told.append(f"queued before: {first}")
    return "; ".join(told) or "locks of others have not all been released yet"
