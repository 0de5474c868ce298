"""Devices: the GPUs that may be leased here, and what programs call them. By NVML, or made up."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfgate.core.errors import InputError
from perfgate.machine.nvml import PART, VISIBLE, Nvml, NvmlGpu, Unreadable, known_or, read_nvml

FAKE = "PERFGATE_FAKE_GPUS"
ORDER = "CUDA_DEVICE_ORDER"
BY_SLOT = "PCI_BUS_ID"  # how NVML numbers GPUs; CUDA does so only when told
_END = ("-1", "NoDevFiles", "none", "void")  # CUDA sees no GPU from here on


@dataclass(frozen=True)
class Device:
    """One GPU that can be leased.

    Attributes:
        key: its name among the locks; by UUID, so that all users and containers mean the same.
        word: its name in CUDA_VISIBLE_DEVICES, as perfgate was given it.
        label: its name in messages: NVML's index, or the beginning of its UUID.
        name: its model; of simulated GPUs "simulated GPU".
        uuid: its unique name; empty for a simulated GPU.
    """

    key: str
    word: str
    label: str
    name: str
    uuid: str = ""


@dataclass(frozen=True)
class Devices:
    """The GPUs that this process may use.

    Attributes:
        gpus: in the order in which programs see them.
        chosen: whether a person chose them: CUDA_VISIBLE_DEVICES is set.
        made_up: whether they exist only on paper.
        note: why there is none.
        hangs: whether that is because the driver does not answer.
    """

    gpus: tuple[Device, ...]
    chosen: bool
    made_up: bool = False
    note: str = ""
    hangs: bool = False


def visible_devices(environ: Mapping[str, str]) -> Devices:
    """The GPUs of this machine, or those of CUDA_VISIBLE_DEVICES if that is set.

    Raises:
        InputError: PERFGATE_FAKE_GPUS is no number; CUDA_VISIBLE_DEVICES names a GPU that is not
            there, or one twice, or a number that can mean two GPUs.
    """
    visible = environ.get(VISIBLE)
    if environ.get(FAKE):
        made_up = tuple(
            Device(f"gpu-{number}", str(number), str(number), "simulated GPU")
            for number in range(_count(environ[FAKE]))
        )
        return Devices(_chosen(made_up, visible), visible is not None, made_up=True)
    found = read_nvml(_all_devices)
    if isinstance(found, Unreadable):
        return Devices((), visible is not None, note=found.why, hangs=found.kind == "hangs")
    if not found:
        return Devices((), visible is not None, note="NVML shows no GPU")
    if _numbers_are_doubtful(found, visible, environ):
        raise InputError(
            "a number can mean two GPUs on a machine with several models",
            field=VISIBLE,
            found=visible,
            expected=f"UUIDs, or {ORDER}={BY_SLOT}",
            hint=f"name them by UUID (nvidia-smi -L), or export {ORDER}={BY_SLOT}",
        )
    return Devices(_chosen(found, visible), visible is not None)


def nvml_gpu(nvml: Nvml, device: Device) -> NvmlGpu:
    """A real device, to be asked of its state."""
    return nvml.gpu(device.uuid or int(device.label))


def foreign_processes(gpus: Sequence[Device]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Who is on GPUs on which nothing of ours runs yet: a notebook, or what a killed run left.

    Returns:
        label of a GPU → processes on it, ``pid 4711 (python)``, without those that have none; and
        what could not be read, which is no error.
    """
    seen = read_nvml(lambda nvml: _foreign_processes(nvml, gpus)) if gpus else ({}, [])
    if isinstance(seen, Unreadable):
        return {}, [f"who uses the GPUs is unknown: {seen.why}"]
    return seen


def _foreign_processes(
    nvml: Nvml, gpus: Sequence[Device]
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    by_gpu: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    for gpu in gpus:
        if gpu.uuid.startswith(PART):
            notes.append(f"{gpu.label}: who uses it is not looked for: part of a GPU (MIG)")
            continue
        users = nvml_gpu(nvml, gpu).users
        if isinstance(users, Unreadable):
            notes.append(f"GPU {gpu.label}: who uses it is unknown: {users.why}")
        elif users:
            by_gpu[gpu.label] = users
    return by_gpu, notes


def environment_of(leased: Sequence[Device], devices: Devices) -> dict[str, str]:
    """What a program must find in its environment to use `leased`, and no other GPU.

    Nothing where nobody chose GPUs and all are leased: then the call is the documented one.
    """
    if not devices.chosen and len(leased) == len(devices.gpus):
        return {}
    env = {VISIBLE: ",".join(gpu.word for gpu in leased)}
    if any(gpu.word.isdigit() for gpu in leased):
        env[ORDER] = BY_SLOT  # so that the GPU that is used is the one that is locked
    return env


def _count(setting: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,2}", setting):
        raise InputError(
            "not a number of GPUs", field=FAKE, found=setting, expected="a number from 1 to 999"
        )
    return int(setting)


def _all_devices(nvml: Nvml) -> tuple[Device, ...] | Unreadable:
    """All GPUs that NVML shows."""
    count = nvml.count
    if isinstance(count, Unreadable):
        return count
    return tuple(_described(nvml, index) for index in range(count))


def _described(nvml: Nvml, index: int) -> Device:
    gpu = nvml.gpu(index)
    uuid = known_or(gpu.uuid, "")
    name = known_or(gpu.name, "unknown")
    return Device(_safe(f"gpu-{uuid or index}"), str(index), str(index), name, uuid)


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", text)


def _chosen(found: Sequence[Device], visible: str | None) -> tuple[Device, ...]:
    """Those of `found` that CUDA_VISIBLE_DEVICES names, in its order, under the names it uses."""
    if visible is None:
        return tuple(found)
    chosen: list[Device] = []
    for word in (part.strip() for part in visible.split(",")):
        if word in _END or not word:
            break
        gpu = _named(word, found, visible)
        if any(one.key == gpu.key for one in chosen):
            raise InputError("names a GPU twice", field=VISIBLE, found=visible)
        chosen.append(gpu)
    return tuple(chosen)


def _named(word: str, found: Sequence[Device], visible: str) -> Device:
    if word.startswith(PART):
        return Device(_safe(f"gpu-{word}"), word, word[:12], "part of a GPU (MIG)", word)
    matching = [
        gpu
        for gpu in found
        if (gpu.word == word if word.isdigit() else bool(gpu.uuid) and gpu.uuid.startswith(word))
    ]
    if len(matching) != 1:
        raise InputError(
            f"{word} names {'several GPUs' if matching else 'no GPU of this machine'}",
            field=VISIBLE,
            found=visible,
            expected=f"of: {', '.join(gpu.word for gpu in found) or 'none'}, or their UUIDs",
        )
    (gpu,) = matching
    return Device(gpu.key, word, gpu.label, gpu.name, gpu.uuid)


def _numbers_are_doubtful(
    found: Sequence[Device], visible: str | None, environ: Mapping[str, str]
) -> bool:
    models = {gpu.name for gpu in found}
    numbered = any(word.strip().isdigit() for word in (visible or "").split(","))
    return len(models) > 1 and numbered and environ.get(ORDER) != BY_SLOT
