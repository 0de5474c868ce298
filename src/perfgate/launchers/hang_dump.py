"""Hang dump: what the processes of a program were doing when it hung, or took too long.

State, place in the kernel and command line of each, by psutil and /proc; then the Python stacks,
where `py-spy` is installed. Environments are not read, and all that is written is redacted.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import psutil

from perfgate.core import raw_log
from perfgate.core.redaction import mask_arguments, redact
from perfgate.core.untrusted_files import opened_regular

STATES_S = 5.0
STACKS_S = 10.0  # all stack dumps together; a hung program must not make perfgate hang

Ask = Callable[[tuple[str, ...], float], str]


def write_evidence(file: Path, why: str, processes: Sequence[psutil.Process], ask: Ask) -> None:
    """Append what the processes are doing to `file`; the states are there before the stacks.

    Args:
        file: the evidence file; earlier evidence in it is kept.
        why: one line that says why somebody will want to know.
        processes: the program and its descendants, parents first; none where they have ended.
        ask: calls a program for at most some seconds and gives its output.
    """
    _append(file, [why, "processes:", *_indented(_states_in_time(processes))])
    _append(file, ["stacks:", *_indented(_stacks(processes, ask))])


def _states_in_time(processes: Sequence[psutil.Process]) -> list[str]:
    """The lines of `_states` that come within `STATES_S`.

    A thread reads them: /proc can block for ever on a process that is stuck in the kernel, and a
    thread can be left behind.
    """
    lines: list[str] = []
    thread = threading.Thread(target=lambda: lines.extend(_states(processes)), daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the machine has no thread left for us
        return [f"not read: {error}"]
    thread.join(STATES_S)
    return [*lines, f"no more: {STATES_S:.0f} s are over"] if thread.is_alive() else lines


def _states(processes: Sequence[psutil.Process]) -> Iterator[str]:
    if not processes:
        yield "none is left"
    for process in processes:
        try:
            with process.oneshot():
                command = " ".join(mask_arguments(process.cmdline())).replace("\n", "\\n")
                yield (
                    f"pid {process.pid} {process.name()} {process.status()}, "
                    f"waits in {_wait_channel(process.pid)}: {command}"
                )
        except psutil.Error as error:
            yield f"pid {process.pid}: {error}"


def _wait_channel(pid: int) -> str:
    """The kernel function that the process waits in; ``-``: none, or it may not be read."""
    try:
        channel = Path(f"/proc/{pid}/wchan").read_text().strip()
    except OSError:
        return "-"
    return channel if channel not in ("", "0") else "-"


def _stacks(processes: Sequence[psutil.Process], ask: Ask) -> Iterator[str]:
    beside = Path(sys.executable).parent / "py-spy"
    py_spy = str(beside) if beside.is_file() else shutil.which("py-spy")
    if py_spy is None:
        yield f"no py-spy beside {sys.executable} or on PATH"
        return
    deadline = time.monotonic() + STACKS_S
    for process in filter(_is_python, processes):
        left = deadline - time.monotonic()
        if left <= 0:
            yield f"no stacks of pid {process.pid}: {STACKS_S:.0f} s are over"
            continue
        yield f"pid {process.pid}, by py-spy dump:"
        dump = ask((py_spy, "dump", "--pid", str(process.pid)), left)
        # It begins with the command line, which may hold a secret.
        yield from dump[max(0, dump.find("\nPython v")) :].strip().splitlines()


def _is_python(process: psutil.Process) -> bool:
    try:
        return Path(process.exe()).name.startswith("python")
    except psutil.Error:
        return False


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _append(file: Path, lines: Iterable[str]) -> None:
    handle = opened_regular(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, raw_log.PRIVATE)
    with os.fdopen(handle, "a", encoding="utf-8") as text:
        text.writelines(f"{redact(line)}\n" for line in lines)
