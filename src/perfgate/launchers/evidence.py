"""Say what a program was doing when it was ended for taking too long: processes and stacks."""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

STACKS_S = 10.0  # all stack dumps together; a hung program must not make perfgate hang

Ask = Callable[[tuple[str, ...], float], str]


def write_evidence(file: Path, why: str, processes: Sequence[psutil.Process], ask: Ask) -> None:
    """Append the process tree and, where py-spy can look, the Python stacks to `file`.

    The tree is written first: it is there even if a stack dump hangs or the disk is full then.

    Args:
        file: the evidence file; earlier evidence in it is kept.
        why: one line that says why the program is ended.
        processes: the program and its descendants.
        ask: calls a program for at most some seconds and gives its output.
    """
    with file.open("a", encoding="utf-8", errors="replace") as text:
        print(why, file=text)
        text.writelines(line + "\n" for line in _tree(processes))
    with file.open("a", encoding="utf-8", errors="replace") as text:
        text.writelines(line + "\n" for line in _stacks(processes, ask))


def _tree(processes: Sequence[psutil.Process]) -> list[str]:
    """One line for each process, children below and right of their parents."""
    depths: dict[int, int] = {}
    lines = []
    for process in processes:
        try:
            with process.oneshot():
                depth = depths.get(process.ppid(), 0) + 1
                depths[process.pid] = depth
                times = process.cpu_times()
                lines.append(
                    f"{'  ' * depth}pid {process.pid} {process.status()}, "
                    f"cpu {times.user:.2f} s user {times.system:.2f} s system, "
                    f"{process.num_threads()} threads, "
                    f"{process.memory_info().rss / 2**20:.0f} MiB: "
                    f"{' '.join(process.cmdline()) or process.name()}"
                )
        except psutil.Error as error:
            lines.append(f"  pid {process.pid}: {error}")
    return lines


def _stacks(processes: Sequence[psutil.Process], ask: Ask) -> list[str]:
    beside = Path(sys.executable).parent / "py-spy"
    py_spy = str(beside) if beside.is_file() else shutil.which("py-spy")
    if py_spy is None:
        return [f"no stacks: no py-spy beside {sys.executable} or on PATH"]
    lines = []
    deadline = time.monotonic() + STACKS_S
    for process in filter(_is_python, processes):
        left = deadline - time.monotonic()
        if left <= 0:
            lines.append(f"no stacks of pid {process.pid}: {STACKS_S:.0f} s are over")
            continue
        lines += [f"stacks of pid {process.pid}, by py-spy dump:"]
        lines += ask((py_spy, "dump", "--pid", str(process.pid)), left).splitlines()
    return lines or ["no stacks: none of these is a Python program"]


def _is_python(process: psutil.Process) -> bool:
    try:
        return Path(process.exe()).name.startswith("python")
    except psutil.Error:
        return False
