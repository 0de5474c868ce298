"""Which nodes of an allocation a start may have, when several starts share the allocation.

A lock for each node in the folder of this machine's locks, held for as long as anything of the
start runs. So it holds between the workers of a session and between sessions that run on the same
machine, as the processes of a batch script do; the wardens keep it when perfgate itself is killed.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from perfgate.machine.leases.file_locks import (
    delete_unused,
    holding,
    lock_folder,
    take,
    wait_until_free,
)


@dataclass(frozen=True)
class NodeRequest:
    """Nodes that are requested.

    Attributes:
        job: number of the allocation.
        nodes: all of it, name → address.
        avoid: those that will not do.
        count: how many are needed, at most as many as will do.
        run: for which run.
        limit_s: how long to wait for them.
        tell: says who has them.
    """

    job: str
    nodes: Mapping[str, str]
    avoid: Collection[str]
    count: int
    run: str
    limit_s: float
    tell: Callable[[str], None]


@contextmanager
def free_nodes(request: NodeRequest) -> Iterator[tuple[str, ...]]:
    """Nodes for one start alone, in the order of the allocation; all at once, or none.

    Raises:
        RunError: class ``pending_too_long``: others had them all the time.
        InputError: the folder of the locks cannot be used.
    """
    folder = lock_folder(os.environ)
    # By address, too: job numbers of two clusters can be the same.
    nodes = {
        folder / f"slurm-{request.job}-{address}.lock": name
        for name, address in request.nodes.items()
        if name not in request.avoid
    }
    locks = wait_until_free(
        partial(take, nodes, request.count, request.run),
        f"{request.count} nodes of job {request.job}",
        request.limit_s,
        request.tell,
        failure="pending_too_long",
    )
    try:
        with holding(locks):
            yield tuple(nodes[lock.path] for lock in locks)
    finally:
        for lock in locks:
            delete_unused(lock.path)  # a job's number does not come again
