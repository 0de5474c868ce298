"""Inheritance: hand the locks of a lease on to the wardens of what is started under it.

An flock belongs to the opening of a file, not to a process. A warden that has inherited the
descriptor keeps the lock, and wardens end last: after everything that they watch over. So a lease
is free when nothing runs under it any more, whoever was killed, and whoever's processes they are.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from perfgate.machine.leases.lock_folder import LockFile

_guard = threading.Lock()
_held: dict[int, Sequence[LockFile]] = {}  # of this process, by the thread that asked


@contextmanager
def kept_open() -> Iterator[tuple[int, ...]]:
    """Descriptors of all locks that this process holds, for `pass_fds` of a warden; copies."""
    with ExitStack() as stack:
        copies = []
        with _guard:
            for locks in _held.values():
                for lock in locks:
                    copy = os.dup(lock.descriptor)
                    stack.callback(os.close, copy)
                    copies.append(copy)
        yield tuple(copies)


def refuse_a_second() -> None:
    """Who holds a lease and waits for another could wait for himself.

    Raises:
        ValueError: this thread holds a lease.
    """
    with _guard:
        if threading.get_ident() in _held:
            raise ValueError("a lease inside a lease: ask for all that is needed at once")


@contextmanager
def holding(locks: Sequence[LockFile]) -> Iterator[None]:
    """Hand `locks` on to whatever is started while the block runs."""
    me = threading.get_ident()
    with _guard:
        _held[me] = locks
    try:
        yield
    finally:
        with _guard:
            del _held[me]
