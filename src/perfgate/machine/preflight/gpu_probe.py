"""GPU probe: read once, through NVML, what the GPUs of a scenario are like now. Judges nothing.

Names of functions and constants are NVML's (NVML API reference, "Device Queries").
"""

import os
from collections.abc import Callable, Sequence

from perfgate.machine.leases.devices import Device, Devices, nvml_gpu, visible_devices
from perfgate.machine.nvml import Nvml, NvmlGpu, read_nvml, watts
from perfgate.machine.preflight.facts import GpuFacts, GpuLook, Rows
from perfgate.machine.reading import Unreadable


def look_at_gpus(
    wanted: int, is_model: Callable[[str], bool], leased: Sequence[Device] | None = None
) -> GpuLook | Unreadable:
    """The first `wanted` GPUs whose model will do, of those that this process may use.

    Args:
        wanted: how many there should be; fewer may be found.
        is_model: whether a GPU of this name will do.
        leased: the GPUs that are to be used; None: those that CUDA_VISIBLE_DEVICES shows.

    Raises:
        InputError: CUDA_VISIBLE_DEVICES names a GPU that is not there.
    """
    devices = Devices(tuple(leased), True) if leased is not None else visible_devices(os.environ)
    if devices.made_up:
        return Unreadable("the GPUs are simulated (PERFGATE_FAKE_GPUS)")
    if devices.hangs:
        return Unreadable(devices.note, "hangs")
    chosen = [gpu for gpu in devices.gpus if is_model(gpu.name)][:wanted]

    def read(nvml: Nvml) -> GpuLook:
        return GpuLook(
            tuple(_facts(gpu, nvml_gpu(nvml, gpu)) for gpu in chosen),
            tuple(gpu.name for gpu in devices.gpus),
            driver=nvml.ask(str, "nvmlSystemGetDriverVersion"),
            cuda=nvml.ask(_cuda, "nvmlSystemGetCudaDriverVersion"),
        )

    return read_nvml(read)


def _facts(device: Device, gpu: NvmlGpu) -> GpuFacts:
    errors, graphics = "nvmlDeviceGetTotalEccErrors", "NVML_CLOCK_GRAPHICS"
    uncorrected, corrected = (f"NVML_MEMORY_ERROR_TYPE_{kind}CORRECTED" for kind in ("UN", ""))
    return GpuFacts(
        label=device.label,
        name=device.name,
        memory_bytes=gpu.ask(lambda memory: int(memory.total), "nvmlDeviceGetMemoryInfo"),
        free_bytes=gpu.ask(lambda memory: int(memory.free), "nvmlDeviceGetMemoryInfo"),
        processes=gpu.users,
        is_split=gpu.is_split,
        uncorrected=gpu.ask(int, errors, uncorrected, "NVML_VOLATILE_ECC"),
        corrected=gpu.ask(int, errors, corrected, "NVML_VOLATILE_ECC"),
        rows=gpu.ask(_rows, "nvmlDeviceGetRemappedRows"),
        retired_pending=gpu.ask(bool, "nvmlDeviceGetRetiredPagesPendingStatus"),
        sm_mhz=gpu.sm_mhz,
        sm_mhz_most=gpu.ask(int, "nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
        asked_mhz=gpu.ask(int, "nvmlDeviceGetApplicationsClock", graphics),
        asked_mhz_default=gpu.ask(int, "nvmlDeviceGetDefaultApplicationsClock", graphics),
        reasons=gpu.clock_reasons,
        power_w=gpu.ask(watts, "nvmlDeviceGetEnforcedPowerLimit"),
        power_w_default=gpu.ask(watts, "nvmlDeviceGetPowerManagementDefaultLimit"),
        is_persistent=gpu.ask(bool, "nvmlDeviceGetPersistenceMode"),
        degrees=gpu.temperature_c,
        margin=_margin(gpu),
        links=_links(gpu),
    )


def _margin(gpu: NvmlGpu) -> int | Unreadable:
    """GPUs since Hopper tell what is left, older ones where they begin to slow down."""
    margin = gpu.ask(int, "nvmlDeviceGetMarginTemperature")
    if not isinstance(margin, Unreadable):
        return margin
    threshold = "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN"
    limit = gpu.ask(int, "nvmlDeviceGetTemperatureThreshold", threshold)
    degrees = gpu.temperature_c
    if isinstance(limit, Unreadable):
        return limit
    return degrees if isinstance(degrees, Unreadable) else limit - degrees


def _links(gpu: NvmlGpu) -> tuple[bool, ...] | Unreadable:
    """NVML numbers a GPU's links from 0, and knows the last one by refusing the next."""
    found: list[bool] = []
    for number in range(int(gpu.nvml.library.NVML_NVLINK_MAX_LINKS)):
        is_up = gpu.ask(bool, "nvmlDeviceGetNvLinkState", number)
        if isinstance(is_up, Unreadable):
            return is_up if not found and is_up.kind != "unsupported" else tuple(found)
        found.append(is_up)
    return tuple(found)


def _rows(found: Sequence[int]) -> Rows:
    corrected, uncorrected, pending, failed = found
    return Rows(corrected + uncorrected, bool(pending), bool(failed))


def _cuda(version: int) -> str:
    """12080 → 12.8."""
    return f"{version // 1000}.{version % 1000 // 10}"
