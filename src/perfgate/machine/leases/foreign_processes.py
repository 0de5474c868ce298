"""Foreign processes: those on GPUs that nobody has leased, by NVML. Waits for nothing long.

Asked before anything of ours runs there, so that whoever is there is a stranger: a notebook, a
forgotten server, or a killed run whose memory the driver has not given back yet.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from perfgate.machine.leases.devices import Device
from perfgate.machine.nvml import answer

PATIENCE_S = 10.0  # a driver that hangs must not hang the queue
_MPS = "nvidia-cuda-mps"  # the way to a shared GPU, not a user of it (as in `environment.gpu`)


@dataclass
class ForeignProcesses:
    """What a look at some GPUs showed.

    Attributes:
        strangers: key of a GPU → processes on it: ``pid 4711 (python)``; clean ones are left out.
        notes: whose processes could not be read, and why.
    """

    strangers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def look(gpus: Sequence[Device]) -> ForeignProcesses:
    """Who is on `gpus` now. What cannot be read is a note, never an error."""
    seen, done = ForeignProcesses(), threading.Event()

    def ask() -> None:
        try:
            _ask(gpus, seen)
        finally:
            done.set()

    if not gpus:
        return seen
    threading.Thread(target=ask, name="perfgate-strangers", daemon=True).start()
    if not done.wait(PATIENCE_S):
        hangs = f"no answer from the GPUs' driver in {PATIENCE_S:.0f} s: who uses them is unknown"
        return ForeignProcesses(notes=[hangs])
    return seen


def _ask(gpus: Sequence[Device], seen: ForeignProcesses) -> None:
    try:
        nvml = import_module("pynvml")
    except ImportError:
        seen.notes.append("who uses the GPUs is unknown: no nvidia-ml-py in this environment")
        return
    _, why = answer(nvml, "nvmlInit")
    if why:
        seen.notes.append(f"who uses the GPUs is unknown: {why}")
        return
    try:
        for gpu in gpus:
            _ask_one(nvml, gpu, seen)
    finally:
        answer(nvml, "nvmlShutdown")


def _ask_one(nvml: Any, gpu: Device, seen: ForeignProcesses) -> None:
    if gpu.uuid.startswith("MIG-"):
        seen.notes.append(f"{gpu.label}: who uses it is not looked for: part of a GPU (MIG)")
        return
    handle, why = (
        answer(nvml, "nvmlDeviceGetHandleByUUID", gpu.uuid)
        if gpu.uuid
        else answer(nvml, "nvmlDeviceGetHandleByIndex", int(gpu.label))
    )
    if not why:
        found, why = answer(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    if why:
        seen.notes.append(f"GPU {gpu.label}: who uses it is unknown: {why}")
        return
    named = {one.pid: _name(one.pid) for one in found}
    strangers = sorted(pid for pid, name in named.items() if not name.startswith(_MPS))
    if strangers:
        seen.strangers[gpu.key] = tuple(
            f"pid {pid} ({named[pid]})" if named[pid] else f"pid {pid}" for pid in strangers
        )


def _name(pid: int) -> str:
    """The process's name; empty if it cannot be seen from here, as in a container."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""
