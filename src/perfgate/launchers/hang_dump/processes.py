"""The processes of a hang: their tree, sockets, threads and Python stacks, as lines of text."""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from perfgate.core.redaction import mask_arguments

STACKS_S = 10.0  # all stack dumps together; a hung program must not make perfgate hang
MOST_THREADS = 4000  # of all processes together; eight ranks of an engine have some hundred each

Ask = Callable[[tuple[str, ...], float], str]


def tree(processes: Sequence[psutil.Process]) -> Iterator[str]:
    """One line for each process, children below and right of their parents."""
    if not processes:
        yield "none is left"
    depths: dict[int, int] = {}
    for process in processes:
        try:
            with process.oneshot():
                depth = depths.get(process.ppid(), -1) + 1
                depths[process.pid] = depth
                times = process.cpu_times()
                yield (
                    f"{'  ' * depth}pid {process.pid} {process.status()}, "
                    f"cpu {times.user:.2f} s user {times.system:.2f} s system, "
                    f"{process.num_threads()} threads, "
                    f"{process.memory_info().rss / 2**20:.0f} MiB: "
                    f"{_call(process) or process.name()}"
                )
        except psutil.Error as error:
            yield f"pid {process.pid}: {error}"


def _call(process: psutil.Process) -> str:
    return " ".join(mask_arguments(process.cmdline())).replace("\n", "\\n")


def sockets(processes: Sequence[psutil.Process]) -> Iterator[str]:
    """How many TCP connections each process has, by state, own port and other end.

    The port of whoever came to a port that the process listens on says nothing, and is left out.
    """
    none = True
    for process in processes:
        try:
            found = process.net_connections(kind="tcp")
        except psutil.Error as error:
            yield f"pid {process.pid}: {error}"
            continue
        listening = {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}
        counts: Counter[str] = Counter()
        for one in found:
            if not one.raddr:
                counts[f"{one.status} {one.laddr.ip}:{one.laddr.port}"] += 1
            elif one.laddr.port in listening:
                counts[f"{one.status} {one.laddr.ip}:{one.laddr.port} from {one.raddr.ip}"] += 1
            else:
                counts[f"{one.status} to {one.raddr.ip}:{one.raddr.port}"] += 1
        for what, count in sorted(counts.items()):
            none = False
            yield f"pid {process.pid}: {count} {what}"
    if none:
        yield "none"


def threads(processes: Sequence[psutil.Process]) -> Iterator[str]:
    """Of each process: how many threads are in which state, waiting in which kernel function.

    R runs, S waits, D waits and cannot be killed; ``-`` where the kernel does not tell the
    function. Threads of one name, state and function share a line.
    """
    left = MOST_THREADS
    for process in processes:
        counts: Counter[str] = Counter()
        try:
            tasks = sorted(Path(f"/proc/{process.pid}/task").iterdir())
        except OSError as error:
            yield f"pid {process.pid}: {error.strerror}"
            continue
        for task in tasks[:left]:
            try:
                head, _, tail = (task / "stat").read_text(errors="replace").rpartition(")")
                state, name = tail.split()[0], head.partition("(")[2]
            except OSError:  # it has ended since
                continue
            counts[f"{state} {_waits_in(task)} {name}"] += 1
        for what, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            yield f"pid {process.pid}: {count} {what}"
        if len(tasks) > left:
            yield f"pid {process.pid}: {len(tasks) - left} more not looked at"
        left = max(0, left - len(tasks))


def _waits_in(task: Path) -> str:
    try:
        found = (task / "wchan").read_text().strip()
    except OSError:
        return "-"
    return found if found not in ("", "0") else "-"


def stacks(processes: Sequence[psutil.Process], ask: Ask) -> Iterator[str]:
    """The Python stacks, where py-spy is there and may look."""
    beside = Path(sys.executable).parent / "py-spy"
    py_spy = str(beside) if beside.is_file() else shutil.which("py-spy")
    if py_spy is None:
        yield f"no stacks: no py-spy beside {sys.executable} or on PATH"
        return
    python = [*filter(_is_python, processes)]
    if not python:
        yield "no stacks: none of these is a Python program"
        return
    deadline = time.monotonic() + STACKS_S
    for process in python:
        left = deadline - time.monotonic()
        if left <= 0:
            yield f"no stacks of pid {process.pid}: {STACKS_S:.0f} s are over"
            continue
        yield f"stacks of pid {process.pid}, by py-spy dump:"
        told = ask((py_spy, "dump", "--pid", str(process.pid)), left)
        # It begins with the command line, which may hold a secret.
        yield from told[max(0, told.find("\nPython v")) :].strip().splitlines()


def _is_python(process: psutil.Process) -> bool:
    try:
        return Path(process.exe()).name.startswith("python")
    except psutil.Error:
        return False
