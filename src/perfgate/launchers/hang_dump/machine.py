"""The machine around a program: memory, disk, kernel messages, GPUs, as lines."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from perfgate.launchers.hang_dump.processes import Ask

GPUS_S = 10.0  # each call; nvidia-smi hangs where the driver does
MOST_MESSAGES = 20
KMSG = Path("/dev/kmsg")
# What the kernel says of GPUs (NVIDIA's driver logs "NVRM: Xid"), of memory, and of hung tasks.
_TELLING = re.compile(r"\bXid\b|NVRM|\boom\b|out of memory|killed process|blocked for more", re.I)


def memory(folder: Path) -> Iterator[str]:
    """Memory, swap, shared memory, and the disk of `folder`."""
    ram, swap = psutil.virtual_memory(), psutil.swap_memory()
    yield f"memory: {_gib(ram.available)} available of {_gib(ram.total)}"
    yield f"swap: {_gib(swap.used)} used of {_gib(swap.total)}"
    yield f"load of the last minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    for place in (Path("/dev/shm"), folder):  # noqa: S108 - looked at, not written
        used = shutil.disk_usage(place)
        yield f"{place}: {_gib(used.free)} free of {_gib(used.total)}"


def kernel_messages() -> Iterator[str]:
    """The last messages of the kernel that speak of a GPU, a lack of memory or a hung task."""
    try:
        messages = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        yield f"cannot be read: {KMSG}: {error.strerror}"
        return
    try:
        found = [text for text in _records(messages) if _TELLING.search(text)]
    finally:
        os.close(messages)
    yield from found[-MOST_MESSAGES:] or ["none of GPUs, a lack of memory or hung tasks"]
    yield f"[{time.monotonic():.6f}] is now"  # the kernel counts from its start, as this clock does


def _records(messages: int) -> Iterator[str]:
    """All messages that the kernel still has; see its documentation of /dev/kmsg."""
    while True:
        try:
            record = os.read(messages, 8192).decode(errors="replace")
        except BlockingIOError:  # that was the last
            return
        except BrokenPipeError:  # overwritten while we read; the next read goes on behind it
            continue
        if not record:  # the kernel's is never at its end
            return
        head, _, text = record.partition(";")
        microseconds = head.split(",")[2]
        yield f"[{int(microseconds) / 1e6:.6f}] {text.partition(chr(10))[0]}"


def gpus(ask: Ask) -> Iterator[str]:
    """Who uses the GPUs, and how busy, full, fast and throttled they are, by nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        yield "no nvidia-smi on PATH"
        return
    who = "--query-compute-apps=gpu_uuid,pid,process_name,used_memory"
    yield from ask(("nvidia-smi", who, "--format=csv"), GPUS_S).splitlines()
    how = "UTILIZATION,MEMORY,CLOCK,PERFORMANCE"
    yield from ask(("nvidia-smi", "-q", "-d", how), GPUS_S).splitlines()


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
