"""Say what a program was doing when it hung, or was ended for taking too long.

What costs little comes first, and each part is in the file before the next one is looked for: a
full disk, or a machine on which even looking hangs, leaves the most.
"""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import psutil

from perfgate.core import raw_log
from perfgate.core.redaction import redact
from perfgate.core.untrusted_files import opened_regular
from perfgate.launchers.hang_dump import machine
from perfgate.launchers.hang_dump import processes as processes_seen
from perfgate.launchers.hang_dump.processes import Ask

Part = tuple[str, float, Callable[[], Iterable[str]]]

LOG_LINES = 40  # of each log


def write_evidence(
    file: Path,
    why: str,
    processes: Sequence[psutil.Process],
    ask: Ask,
    logs: Sequence[Path] = (),
) -> None:
    """Append what can be seen of the processes and their machine to `file`.

    A part that fails, or takes longer than its own limit of time, says so in one line and hinders
    no other. Environments are not read, and all that is written is redacted.

    Args:
        file: the evidence file; earlier evidence in it is kept.
        why: one line that says why somebody will want to know.
        processes: the program and its descendants; none where they have ended.
        ask: calls a program for at most some seconds and gives its output.
        logs: the program's own output.
    """
    folder = file.parent
    parts: list[Part] = [
        ("processes", 5.0, lambda: processes_seen.tree(processes)),
        *((f"end of {log.name}", 5.0, partial(raw_log.tail, log, LOG_LINES)) for log in logs),
        ("sockets", 5.0, lambda: processes_seen.sockets(processes)),
        ("threads, as the kernel sees them", 5.0, lambda: processes_seen.threads(processes)),
        ("memory and disk", 5.0, lambda: machine.memory(folder)),
        ("kernel messages", 5.0, machine.kernel_messages),
        ("stacks", 20.0, lambda: processes_seen.stacks(processes, ask)),
        ("GPUs", 30.0, lambda: machine.gpus(ask)),
    ]
    _append(file, [why])
    for title, seconds, look in parts:
        found = within(seconds, look)
        _append(file, [f"{title}:", *(f"  {line}" for line in found)])


def within(seconds: float, look: Callable[[], Iterable[str]]) -> list[str]:
    """The lines that `look` finds in `seconds`; the last one says why there are no more.

    It looks in a thread of its own: to read about a process that is stuck in the kernel can take
    for ever, and a thread can be left behind.
    """
    found: list[str] = []

    def run() -> None:
        try:
            for line in look():
                found.append(line)  # one by one: what is found before it hangs is used
        except Exception as error:  # whatever it is: the rest of the evidence matters more
            found.append(f"no more: {type(error).__name__}: {error}")

    thread = threading.Thread(target=run, name="evidence", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the machine has no thread left for us
        return [f"not looked: {error}"]
    thread.join(seconds)
    return [*found, f"no more: {seconds:.0f} s are over"] if thread.is_alive() else found


def _append(file: Path, lines: Iterable[str]) -> None:
    to = opened_regular(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, raw_log.PRIVATE)
    with os.fdopen(to, "a", encoding="utf-8") as text:
        text.writelines(f"{redact(line)}\n" for line in lines)
