"""Remove the shared memory that a program left behind, which could fill it up for the next start.

NCCL, CUDA, Open MPI and Python's multiprocessing keep files in /dev/shm that outlive a SIGKILL. Run
by the wardens, which load this file by its path: standard library only.

Machines are shared, so a file goes only if all of this holds: it was not there before the program
was started; it is a plain file of our user; one of the program's processes shared memory through it
(mapped it shared and writable) when the end began, or a library put the number of one of them into
its name; and no living process has it mapped or open. What cannot be known counts against removal.
Nothing is looked at while the program runs, and next to nothing where it left no file.
"""

import contextlib
import ctypes
import os
import re
import stat
import threading
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

# To import pathlib would delay the start of every program.
# ruff: noqa: PTH108, PTH110, PTH115, PTH118, PTH119, PTH123, PTH208

FOLDER = "/dev/shm"  # noqa: S108 - where the C library puts shm_open(3)'s files
SYSTEM_V = "/proc/sysvipc/shm"
IPC_RMID = 0  # linux/ipc.h
FIRST_PID_NAMESPACE = "pid:[4026531836]"  # linux/proc_ns.h: PROC_PID_INIT_INO
LONGEST_LOOK_S = 3.0  # reading about a process that is stuck in the kernel can take for ever
# Names that hold the number of the process that made the file: PyTorch, Intel's OpenMP, and the
# CUDA driver, which writes user and process in hexadecimal.
_NAMED = re.compile(r"(?:torch_|__KMP_REGISTERED_LIB_)(\d+)_|cuda\.shm\.[0-9a-f]+\.([0-9a-f]+)\.")
# Rights, device and inode of a mapped file: range, rights, offset, device, inode, path.
_MAPPING = re.compile(rb"^\S+ (\S+) \S+ (\S+ \d+) +/", re.MULTILINE)
_SHARED = re.compile(b"rw.s")


class File(NamedTuple):
    """A file of /dev/shm; device and inode tell it from another one of the same name."""

    name: str
    device: int
    inode: int
    private: bool  # only our user, and root, may open it


class Segment(NamedTuple):
    """A segment of System V shared memory, as shmctl(2) tells it."""

    number: int
    creator: int
    attached: int
    owner: int


class SharedMemory:
    """What a program leaves in shared memory; made before it is started."""

    def __init__(self) -> None:
        self._before = {(file.device, file.inode) for file in _files()}
        self._segments_before = {segment.number for segment in _segments()}
        self._pids: set[int] = set()
        self._used: set[File] = set()

    def look(self, pids: Collection[int]) -> None:
        """Note what the processes of the program use: the end has begun, and they still live."""
        self._pids.update(pids)
        new = self._new_files()
        if new:
            used: list[File] = []  # a list may grow behind our back
            _within(LONGEST_LOOK_S, lambda: _note_shared(pids, new, used))
            self._used.update(used)

    def remove(self, pids: Collection[int]) -> list[str]:
        """Remove what is left now that no process of the program lives; the names of it.

        Args:
            pids: numbers that processes of the program had.
        """
        self._pids.update(pids)
        ours = {file for file in self._new_files() if file in self._used or self._is_named(file)}
        free: list[File] = []
        if ours:
            _within(LONGEST_LOOK_S, lambda: free.extend(sorted(_unused(ours))))
        return [
            *(one.name for one in free if _remove_file(one)),
            *(f"segment {gone.number}" for gone in filter(_remove_segment, self._left_segments())),
        ]

    def _new_files(self) -> set[File]:
        return {file for file in _files() if (file.device, file.inode) not in self._before}

    def _is_named(self, file: File) -> bool:
        """Whether its name holds the number of a process of the program that is gone.

        Only where every process can be seen: from inside a container, the same number may be that
        of another container's process.
        """
        found = _NAMED.match(file.name)
        if found is None or os.readlink("/proc/self/ns/pid") != FIRST_PID_NAMESPACE:
            return False
        pid = int(found[1]) if found[1] else int(found[2], 16)
        return pid in self._pids and not os.path.exists(f"/proc/{pid}")

    def _left_segments(self) -> list[Segment]:
        return [
            segment
            for segment in _segments()
            if segment.number not in self._segments_before
            and segment.creator in self._pids
            and segment.owner == os.geteuid()
            and segment.attached == 0
            and not os.path.exists(f"/proc/{segment.creator}")
        ]


def _files() -> Iterator[File]:
    """The plain files of our user directly in /dev/shm."""
    try:
        entries = [*os.scandir(FOLDER)]
    except OSError:  # there is none
        return
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # it is gone again
            continue
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            private = status.st_mode & 0o077 == 0
            yield File(entry.name, status.st_dev, status.st_ino, private)


def _note_shared(pids: Collection[int], files: Collection[File], found: list[File]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or may not be looked at
            found += _mapped(str(pid), files, shared=True)


def _unused(files: Collection[File]) -> set[File]:
    """Those of `files` that no process has mapped or open, as far as that can be known."""
    free = set(files)
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            used = _mapped(entry, free) | _open(entry, free)
        except (FileNotFoundError, ProcessLookupError):  # it has ended since
            continue
        except PermissionError:
            used = {one for one in free if _may_use(entry, one)}
        free -= used
    return free


def _mapped(pid: str, files: Collection[File], *, shared: bool = False) -> set[File]:
    """Those of `files` that a process has mapped; `shared`: only shared and writable."""
    maps = _read(f"/proc/{pid}/maps")
    places = {_place(file): file for file in files if b" %d " % file.inode in maps}
    mappings = _MAPPING.findall(maps) if places else []
    used = {place for rights, place in mappings if not shared or _SHARED.fullmatch(rights)}
    return {one for place, one in places.items() if place in used}


def _place(file: File) -> bytes:
    """Device and inode, as a line of proc_pid_maps(5) has them."""
    return b"%02x:%02x %d" % (os.major(file.device), os.minor(file.device), file.inode)


def _open(pid: str, files: Collection[File]) -> set[File]:
    """By name, which takes too many rather than too few, and asks no file system."""
    links = set()
    for descriptor in os.scandir(f"/proc/{pid}/fd"):
        try:
            links.add(os.path.basename(os.readlink(descriptor.path)))
        except FileNotFoundError:  # closed since
            continue
    return {file for file in files if file.name in links}


def _may_use(pid: str, file: File) -> bool:
    """Whether a process that we may not look at has to be taken for one that uses the file.

    Not if the file is closed to its user, or if it has touched no shared memory at all. Root and
    the first process may do everything, but have no business with the memory of our programs.
    """
    try:
        status = _read(f"/proc/{pid}/status")
    except OSError:
        return False
    facts = dict(line.split(b":\t", 1) for line in status.splitlines() if b":\t" in line)
    user = int(facts[b"Uid"].split()[0])
    if pid == "1" or user == 0 != os.geteuid():
        return False
    if facts.get(b"RssShmem", b"").split()[:1] == [b"0"]:
        return False
    return user == os.geteuid() or not file.private


def _remove_file(file: File) -> bool:
    path = os.path.join(FOLDER, file.name)
    try:
        status = os.lstat(path)
        if (status.st_dev, status.st_ino) != (file.device, file.inode):
            return False
        os.unlink(path)
    except OSError:
        return False
    return True


def _segments() -> Iterator[Segment]:
    try:
        lines = _read(SYSTEM_V).splitlines()[1:]
    except OSError:  # the kernel has none
        return
    for line in lines:  # key, number, rights, size, creator, last user, attached, owner, …
        _, number, _, _, creator, _, attached, owner, *_ = map(int, line.split())
        yield Segment(number, creator, attached, owner)


def _remove_segment(segment: Segment) -> bool:
    return bool(ctypes.CDLL(None).shmctl(segment.number, IPC_RMID, None) == 0)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _within(seconds: float, look: Callable[[], None]) -> None:
    """Run `look` for at most some seconds; what it has found by then is all there is."""

    def run() -> None:
        with contextlib.suppress(OSError):
            look()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
