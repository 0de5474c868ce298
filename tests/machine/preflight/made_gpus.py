"""GPUs that exist only here: as facts for the rules, and behind pynvml's names for the probe."""

import types
from dataclasses import replace
from typing import Any

import pynvml
from fake_pynvml import FakePynvml

from perfgate.machine.preflight.facts import GpuFacts, Rows, Unreadable

GIB = 2**30
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
REFUSED = str(pynvml.NVMLError(NOT_SUPPORTED))

WELL = GpuFacts(
    label="0",
    name="NVIDIA H200",
    memory_bytes=141 * GIB,
    free_bytes=140 * GIB,
    processes=(),
    is_split=False,
    uncorrected=0,
    corrected=0,
    rows=Rows(0, False, False),
    retired_pending=Unreadable(REFUSED),
    sm_mhz=345,
    sm_mhz_most=1980,
    asked_mhz=1980,
    asked_mhz_default=1980,
    reasons=0x1,
    power_w=700.0,
    power_w_default=700.0,
    is_persistent=True,
    degrees=30,
    margin=57,
    links=(True,) * 18,
)


def gpu(**changes: Any) -> GpuFacts:
    """A GPU that is well but for the changes."""
    return replace(WELL, **changes)


# What NVML's functions answer of a GPU that is well, by their names.
ANSWERS: dict[str, Any] = {
    "nvmlDeviceGetName": "NVIDIA H200",
    "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=141 * GIB, free=140 * GIB),
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
    "nvmlDeviceGetRetiredPagesPendingStatus": NOT_SUPPORTED,
    "nvmlDeviceGetClockInfo": 345,
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetApplicationsClock": 1980,
    "nvmlDeviceGetDefaultApplicationsClock": 1980,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0x1,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetTemperatureV": 30,
    "nvmlDeviceGetTemperature": 31,
    "nvmlDeviceGetMarginTemperature": 57,
    "nvmlDeviceGetTemperatureThreshold": 87,
    "nvmlDeviceGetNvLinkState": [1] * 18,
}
# With these a function is asked; any other call is a mistake.
ARGUMENTS: dict[str, tuple[int, ...]] = {
    "nvmlDeviceGetClockInfo": (pynvml.NVML_CLOCK_SM,),
    "nvmlDeviceGetMaxClockInfo": (pynvml.NVML_CLOCK_SM,),
    "nvmlDeviceGetApplicationsClock": (pynvml.NVML_CLOCK_GRAPHICS,),
    "nvmlDeviceGetDefaultApplicationsClock": (pynvml.NVML_CLOCK_GRAPHICS,),
    "nvmlDeviceGetTemperatureV": (pynvml.NVML_TEMPERATURE_GPU,),
    "nvmlDeviceGetTemperature": (pynvml.NVML_TEMPERATURE_GPU,),
    "nvmlDeviceGetTemperatureThreshold": (pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,),
}
_ERRORS = {
    (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC): "uncorrected",
    (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC): "corrected",
}


class MadeNvml(FakePynvml):
    """Stands for the module pynvml. Each GPU is a mapping: function → answer; a number of NVML's
    errors given as `Refusal` is raised. What is not named is answered as by a GPU that is well.
    """

    def __init__(self, *gpus: dict[str, Any], init_error: int = 0) -> None:
        super().__init__(gpus, init_error)
        self.have(ANSWERS, self._of_device)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802 - NVML's names
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:  # noqa: N802
        return int(uuid.removeprefix("GPU-"))

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}"

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.65.06"

    def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802
        return 13000

    def _of_device(self, function: str):
        def answer(handle: int, *arguments: int) -> Any:
            made = self.gpus[handle]
            found = made.get(function, ANSWERS[function])
            if function == "nvmlDeviceGetTotalEccErrors":
                found = made.get(_ERRORS[arguments], found)
            elif function == "nvmlDeviceGetNvLinkState" and isinstance(found, list):
                (number,) = arguments
                if number >= len(found):
                    raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
                found = found[number]
            else:
                number = arguments[1:] if function == "nvmlDeviceGetNvLinkState" else arguments
                assert number == ARGUMENTS.get(function, ()), function
            if isinstance(found, Refusal):
                raise pynvml.NVMLError(found.code)
            return found

        return answer


class Refusal:
    """An error that NVML answers with."""

    def __init__(self, code: int = NOT_SUPPORTED) -> None:
        self.code = code


ANSWERS["nvmlDeviceGetRetiredPagesPendingStatus"] = Refusal()
