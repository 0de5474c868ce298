"""Foreign processes: those on GPUs that nobody has leased, by NVML. Waits for nothing long.

Asked before anything of ours runs there, so that whoever is there is foreign: a notebook, a
forgotten server, or a killed run whose memory the driver has not given back yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from perfgate.machine.leases.devices import Device, nvml_gpu
from perfgate.machine.nvml import PART, Nvml, read_nvml
from perfgate.machine.reading import Unreadable


@dataclass
class ForeignProcesses:
    """What a look at some GPUs showed.

    Attributes:
        by_gpu: key of a GPU → processes on it: ``pid 4711 (python)``; clean ones are left out.
        notes: whose processes could not be read, and why.
    """

    by_gpu: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def look(gpus: Sequence[Device]) -> ForeignProcesses:
    """Who is on `gpus` now. What cannot be read is a note, never an error."""
    if not gpus:
        return ForeignProcesses()
    seen = read_nvml(lambda nvml: _look(nvml, gpus))
    if isinstance(seen, Unreadable):
        return ForeignProcesses(notes=[f"who uses the GPUs is unknown: {seen.why}"])
    return seen


def _look(nvml: Nvml, gpus: Sequence[Device]) -> ForeignProcesses:
    seen = ForeignProcesses()
    for gpu in gpus:
        if gpu.uuid.startswith(PART):
            seen.notes.append(f"{gpu.label}: who uses it is not looked for: part of a GPU (MIG)")
            continue
        users = nvml_gpu(nvml, gpu).users
        if isinstance(users, Unreadable):
            seen.notes.append(f"GPU {gpu.label}: who uses it is unknown: {users.why}")
        elif users:
            seen.by_gpu[gpu.key] = users
    return seen
