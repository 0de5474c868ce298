"""Hosts: choose the hosts of one start, alone on each of them for as long as it lasts.

The locks are files of this machine (`perfgate.machine.leases`), so they part the sessions that run
here. A lock's note keeps the mark of what was started under it until that is known to be gone: who
takes the lock next ends what is left, even if nobody else has lived to do so.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import HOSTS
from perfgate.core.untrusted_files import created_regular
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.mpirun.ssh import Host, HostQuery, HostUnfit, Unreachable
from perfgate.launchers.site import MpirunSite
from perfgate.machine.leases.file_locks import (
    FileLock,
    holding,
    let_go,
    lock_folder,
    note_in,
    take,
    wait_until_free,
)

_NOT_REACHED = "try `ssh -o BatchMode=yes HOST true` in the same shell; ssh_port and rsh_agent of "
_NOT_REACHED += "mpirun in site.yaml say how the hosts are reached"
_BUSY = (
    "wait until they are done, name more hosts in site.yaml, or raise its pending_limit_s of mpirun"
)
_SAME_PATH = "the run folder, this checkout and its Python must be at the same path on every host "
_SAME_PATH += "(docs/how-to/mpirun.md)"


@dataclass
class HostLock:
    """The lock of one host, held.

    Attributes:
        host: which.
        marks: of launches whose processes may still be there.
    """

    host: Host
    file: FileLock
    marks: list[str] = field(default_factory=list)

    def note(self, mark: str) -> None:
        """Write down what the start's processes are known by."""
        self._write([*_marks(self.file), mark])

    def forget(self) -> None:
        """Take the last note back: nothing was started under it."""
        self._write(self.marks[:-1])

    def clear(self) -> None:
        """Write down that nothing is left there."""
        self._write([])

    def _write(self, marks: list[str]) -> None:
        self.marks = marks
        self.file.write(marks=marks)


@contextmanager
def chosen_hosts(
    names: Sequence[str], request: PlacementRequest, site: MpirunSite, reach: HostQuery, mark: str
) -> Iterator[tuple[HostLock, ...]]:
    """As many hosts as the scenario needs, each looked at, and for this start alone.

    They are the first of `names` that nobody measures on; a host that is not reached is left out
    where there are enough others.

    Args:
        names: the hosts as the site has them, in order.
        request: the start. Its folder is looked for on every host.
        site: how long to wait.
        reach: how they are asked.
        mark: of the start's processes.

    Raises:
        InputError: too few hosts are named.
        RunError: class ``mpi``: too few are reached; ``config_error``: one lacks the folder or the
            programs; ``gpus_busy``: others measured on them for too long.
    """
    needed = request.scenario.hardware.nodes
    if len(names) < needed:
        raise _too_few(names, needed)
    hosts = _told_apart(tuple(map(reach.host, names)), needed)
    seen = request.folder.absolute() / "mpirun.hosts"
    with os.fdopen(created_regular(seen), "w") as file:
        file.writelines(f"{host.name}\n" for host in hosts)
    folder = lock_folder(os.environ)
    left_out: dict[Host, str] = {}
    while True:
        tried = [host for host in hosts if host not in left_out]
        if len(tried) < needed:
            told = "; ".join(f"{host.name}: {why}" for host, why in left_out.items())
            raise RunError("mpi", f"too few hosts can be reached: {told}", hint=_NOT_REACHED)
        with ExitStack() as unused:
            locks = _taken(folder, tried, request, site)
            files = [lock.file for lock in locks]
            unused.callback(let_go, files)
            for lock in locks:
                lock.note(mark)
                unused.callback(lock.forget)
            failed = {lock.host: why for lock in locks if (why := _looked_at(lock, reach, seen))}
            if not failed:
                unused.pop_all()
                with holding(files):
                    yield locks
                return
        for host, why in failed.items():
            request.tell(f"{host.name} is skipped: {why}")
        left_out |= failed


def clear_host(lock: HostLock, reach: HostQuery) -> int:
    """End what is left on a host of all that was started under its lock; how many processes.

    Raises:
        Unreachable, HostUnfit: the host could not be asked.
    """
    ended = int(reach.look(lock.host, "end", *lock.marks))
    lock.clear()
    return ended


def _looked_at(lock: HostLock, reach: HostQuery, seen: os.PathLike[str]) -> str:
    """Why the host is not reached; empty when it is. What an earlier start left there ends."""
    try:
        reach.look(lock.host, "port", "127.0.0.1", os.fspath(seen))
        if lock.marks[:-1]:
            reach.look(lock.host, "end", *lock.marks[:-1])
    except Unreachable as error:
        return str(error)
    except HostUnfit as error:
        raise RunError(
            "config_error", f"{lock.host.name} cannot be used: {error}", hint=_SAME_PATH
        ) from error
    return ""


def _taken(
    folder: Path, hosts: Sequence[Host], request: PlacementRequest, site: MpirunSite
) -> tuple[HostLock, ...]:
    """The locks of the first free hosts, as many as needed, all at once."""
    needed = request.scenario.hardware.nodes
    by_file = {folder / _file(host): host for host in hosts}
    labels = {file: host.name for file, host in by_file.items()}
    run = request.folder.absolute().parent.parent.name
    locks = wait_until_free(
        partial(take, labels, needed, run),
        f"{needed} of {len(hosts)} hosts",
        site.pending_limit_s,
        request.tell,
        hint=_BUSY,
    )
    return tuple(HostLock(by_file[lock.path], lock) for lock in locks)


def _file(host: Host) -> str:
    """The lock of a host, whatever it is called."""
    name = host.address or host.name
    return "host-" + "".join(one if one.isalnum() or one in ".-" else "_" for one in name)


def _marks(lock: FileLock) -> list[str]:
    """The marks in a lock's note; none where somebody else has written something else there."""
    marks = note_in(lock.path).get("marks")
    words = marks if isinstance(marks, list) else []
    return [word for word in words if isinstance(word, str) and word.isalnum()]


def _told_apart(hosts: tuple[Host, ...], needed: int) -> tuple[Host, ...]:
    """The hosts, each once: one that has two names would be waited for in vain."""
    apart = tuple({_file(host): host for host in reversed(hosts)}.values())[::-1]
    if len(apart) < needed:
        raise _too_few([host.name for host in apart], needed)
    return apart


def _too_few(names: Sequence[str], needed: int) -> InputError:
    return InputError(
        "too few hosts are named",
        field="mpirun.hosts",
        found=" ".join(names) or "nothing",
        expected=f"{needed} different hosts, the server's first",
        hint=f"name them in site.yaml, or set {HOSTS}",
    )
