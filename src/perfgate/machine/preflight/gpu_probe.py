"""GPU probe: read once, through NVML, what the GPUs of a scenario are like now. Judges nothing.

Names of functions and constants are NVML's (NVML API reference, "Device Queries").
"""

import os
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from perfgate.machine.leases.devices import Device, Devices, visible_devices
from perfgate.machine.nvml import answer
from perfgate.machine.preflight.facts import GpuFacts, GpuLook, Rows, Unreadable

PATIENCE_S = 10.0  # for all of it; a driver that hangs must not hang the preflight
_MPS = "nvidia-cuda-mps"  # the way to a shared GPU, not a user of it (as in `environment.gpu`)
_Value = TypeVar("_Value")


def look_at_gpus(
    wanted: int, is_model: Callable[[str], bool], leased: Sequence[Device] | None = None
) -> GpuLook:
    """The first `wanted` GPUs whose model will do, of those that this process may use.

    Args:
        wanted: how many there should be; fewer may be found.
        is_model: whether a GPU of this name will do.
        leased: the GPUs that are to be used; None: those that CUDA_VISIBLE_DEVICES shows.

    Raises:
        InputError: CUDA_VISIBLE_DEVICES names a GPU that is not there.
    """
    found: list[GpuLook] = []
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            found.append(_look(wanted, is_model, leased))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=ask, name="perfgate-preflight", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if errors:
        raise errors[0]
    if not found:
        return GpuLook(why=f"the driver did not answer in {PATIENCE_S:.0f} s", hangs=True)
    return found[0]


def _look(wanted: int, is_model: Callable[[str], bool], leased: Sequence[Device] | None) -> GpuLook:
    devices = Devices(tuple(leased), True) if leased is not None else visible_devices(os.environ)
    if devices.made_up:
        return GpuLook(why="the GPUs are made up (PERFGATE_FAKE_GPUS)")
    try:
        nvml = import_module("pynvml")
    except ImportError:
        return GpuLook(why="no nvidia-ml-py in this environment")
    _, why = answer(nvml, "nvmlInit")
    if why:
        return GpuLook(why=why)
    try:
        asking = _Asking(nvml)
        chosen = [gpu for gpu in devices.gpus if is_model(gpu.name)][:wanted]
        return GpuLook(
            tuple(_described(asking, gpu) for gpu in chosen),
            tuple(gpu.name for gpu in devices.gpus),
            driver=asking.ask(str, "nvmlSystemGetDriverVersion"),
            cuda=asking.ask(_cuda, "nvmlSystemGetCudaDriverVersion"),
        )
    finally:
        answer(nvml, "nvmlShutdown")


class _Asking:
    """Asks NVML's functions; what has no answer is `Unreadable`."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml

    def ask(self, read: Callable[[Any], _Value], name: str, *arguments: Any) -> _Value | Unreadable:
        found, why = answer(self.nvml, name, *arguments)
        return Unreadable(why) if why else read(found)

    def constant(self, name: str, value: int) -> int:
        """NVML's number, also where this nvidia-ml-py does not name it."""
        return int(getattr(self.nvml, name, value))


def _described(asking: _Asking, gpu: Device) -> GpuFacts:
    nvml = asking.nvml
    handle, why = (
        answer(nvml, "nvmlDeviceGetHandleByUUID", gpu.uuid)
        if gpu.uuid
        else answer(nvml, "nvmlDeviceGetHandleByIndex", int(gpu.label))
    )

    def ask(read: Callable[[Any], _Value], name: str, *arguments: Any) -> _Value | Unreadable:
        return Unreadable(why) if why else asking.ask(read, name, handle, *arguments)

    sm = asking.constant("NVML_CLOCK_SM", 1)
    graphics = asking.constant("NVML_CLOCK_GRAPHICS", 0)
    volatile = asking.constant("NVML_VOLATILE_ECC", 0)
    sensor = asking.constant("NVML_TEMPERATURE_GPU", 0)
    degrees = ask(int, "nvmlDeviceGetTemperatureV", sensor)
    if isinstance(degrees, Unreadable):  # older drivers
        degrees = ask(int, "nvmlDeviceGetTemperature", sensor)
    reasons = ask(int, "nvmlDeviceGetCurrentClocksEventReasons")
    if isinstance(reasons, Unreadable):  # drivers before CUDA 12.2
        reasons = ask(int, "nvmlDeviceGetCurrentClocksThrottleReasons")
    return GpuFacts(
        label=gpu.label,
        name=gpu.name,
        memory_bytes=ask(lambda memory: int(memory.total), "nvmlDeviceGetMemoryInfo"),
        free_bytes=ask(lambda memory: int(memory.free), "nvmlDeviceGetMemoryInfo"),
        processes=ask(_processes, "nvmlDeviceGetComputeRunningProcesses"),
        is_split=_is_split(asking, ask),
        uncorrected=ask(int, "nvmlDeviceGetTotalEccErrors", 1, volatile),
        corrected=ask(int, "nvmlDeviceGetTotalEccErrors", 0, volatile),
        rows=ask(_rows, "nvmlDeviceGetRemappedRows"),
        retired_pending=ask(bool, "nvmlDeviceGetRetiredPagesPendingStatus"),
        sm_mhz=ask(int, "nvmlDeviceGetClockInfo", sm),
        sm_mhz_most=ask(int, "nvmlDeviceGetMaxClockInfo", sm),
        asked_mhz=ask(int, "nvmlDeviceGetApplicationsClock", graphics),
        asked_mhz_default=ask(int, "nvmlDeviceGetDefaultApplicationsClock", graphics),
        reasons=reasons,
        power_w=ask(_watts, "nvmlDeviceGetEnforcedPowerLimit"),
        power_w_default=ask(_watts, "nvmlDeviceGetPowerManagementDefaultLimit"),
        is_persistent=ask(bool, "nvmlDeviceGetPersistenceMode"),
        degrees=degrees,
        margin=_margin(asking, ask, degrees),
        links=Unreadable(why) if why else _links(asking, handle),
    )


_Ask = Callable[..., Any]


def _is_split(asking: _Asking, ask: _Ask) -> bool | Unreadable:
    """A GPU that knows no MIG is whole."""
    mode = ask(lambda modes: bool(modes[0]), "nvmlDeviceGetMigMode")
    if isinstance(mode, Unreadable) and mode.why == _not_supported(asking):
        return False
    return mode  # type: ignore[no-any-return]


def _margin(asking: _Asking, ask: _Ask, degrees: int | Unreadable) -> int | Unreadable:
    """GPUs since Hopper tell what is left, older ones where they begin to slow down."""
    margin: int | Unreadable = ask(int, "nvmlDeviceGetMarginTemperature")
    if not isinstance(margin, Unreadable):
        return margin
    slows = asking.constant("NVML_TEMPERATURE_THRESHOLD_SLOWDOWN", 1)
    limit: int | Unreadable = ask(int, "nvmlDeviceGetTemperatureThreshold", slows)
    if isinstance(limit, Unreadable):
        return limit
    return degrees if isinstance(degrees, Unreadable) else limit - degrees


def _links(asking: _Asking, handle: Any) -> tuple[bool, ...] | Unreadable:
    """NVML numbers a GPU's links from 0, and knows the last one by refusing the next."""
    found: list[bool] = []
    for number in range(asking.constant("NVML_NVLINK_MAX_LINKS", 18)):
        state, why = answer(asking.nvml, "nvmlDeviceGetNvLinkState", handle, number)
        if why and not found and why != _not_supported(asking):
            return Unreadable(why)
        if why:
            break
        found.append(bool(state))
    return tuple(found)


def _not_supported(asking: _Asking) -> str:
    return str(asking.nvml.NVMLError(asking.constant("NVML_ERROR_NOT_SUPPORTED", 3)))


def _processes(found: Sequence[Any]) -> tuple[str, ...]:
    named = {int(one.pid): _name(int(one.pid)) for one in found}
    return tuple(
        f"pid {pid} ({name})" if name else f"pid {pid}"
        for pid, name in sorted(named.items())
        if not name.startswith(_MPS)
    )


def _name(pid: int) -> str:
    """The process's name; empty if it cannot be seen from here, as in a container."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _rows(found: Sequence[int]) -> Rows:
    corrected, uncorrected, pending, failed = found
    return Rows(corrected + uncorrected, bool(pending), bool(failed))


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000.0


def _cuda(version: int) -> str:
    """12080 → 12.8."""
    return f"{version // 1000}.{version % 1000 // 10}"
