"""Stands for the module pynvml: the real one's names, constants and errors, GPUs that exist only
here. Functions that the real module does not have cannot be made up.
"""

import time
import types
from collections.abc import Mapping, Sequence
from typing import Any

import pynvml

MIB = 2**20
GIB = 2**30
_UUID = "GPU-00000000-aaaa"


class Refusal:
    """An error that NVML answers with."""

    def __init__(self, code: int = pynvml.NVML_ERROR_NOT_SUPPORTED) -> None:
        self.code = code


class Looks:
    """One answer a look, and the last one for ever after."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = answers


# What NVML's functions answer of a GPU that is well, by their names.
WELL: dict[str, Any] = {
    "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(
        total=141 * GIB, free=140 * GIB, used=0, reserved=GIB
    ),
    "nvmlDeviceGetGraphicsRunningProcesses": (),
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
    "nvmlDeviceGetRetiredPagesPendingStatus": Refusal(),
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetApplicationsClock": 1980,
    "nvmlDeviceGetDefaultApplicationsClock": 1980,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetMarginTemperature": 57,
    "nvmlDeviceGetTemperatureThreshold": 87,
    "nvmlDeviceGetNvLinkState": [1] * 18,
}
# With these a function is asked; any other call is a mistake.
_ARGUMENTS: dict[str, tuple[int, ...]] = {
    "nvmlDeviceGetClockInfo": (pynvml.NVML_CLOCK_SM,),
    "nvmlDeviceGetMaxClockInfo": (pynvml.NVML_CLOCK_SM,),
    "nvmlDeviceGetApplicationsClock": (pynvml.NVML_CLOCK_GRAPHICS,),
    "nvmlDeviceGetDefaultApplicationsClock": (pynvml.NVML_CLOCK_GRAPHICS,),
    "nvmlDeviceGetTemperatureV": (pynvml.NVML_TEMPERATURE_GPU,),
    "nvmlDeviceGetTemperature": (pynvml.NVML_TEMPERATURE_GPU,),
    "nvmlDeviceGetTemperatureThreshold": (pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,),
}
_ECC_ERRORS = {
    (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC): "uncorrected",
    (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC): "corrected",
}


class FakeGpu:
    """One GPU; what is a sequence gives one value a look, and its last one for ever after.

    Args:
        pids: those on it at each look; None: not readable.
        refuses: function → the error code that it answers with.
        answers: function, or "uncorrected" and "corrected" errors → its answer, where that is not
            a well GPU's; a `Refusal` is raised.

    Attributes:
        looks: function → how often it was asked.
    """

    def __init__(
        self,
        uuid: str = _UUID,
        name: str = "NVIDIA B200",
        mhz: Sequence[int] = (1965,),
        milliwatts: Sequence[int] = (950_000,),
        degrees: Sequence[int] = (61,),
        reasons: Sequence[int] = (0,),
        pids: Sequence[Sequence[int] | None] = ((),),
        mig: bool = False,
        refuses: Mapping[str, int] | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> None:
        self.uuid = uuid
        self.refuses = dict(refuses or {})
        self.looks: dict[str, int] = {}
        self.answers = {
            **WELL,
            "nvmlDeviceGetUUID": uuid,
            "nvmlDeviceGetName": name,
            "nvmlDeviceGetMigMode": [int(mig), int(mig)],
            "nvmlDeviceGetClockInfo": Looks(mhz),
            "nvmlDeviceGetPowerUsage": Looks(milliwatts),
            "nvmlDeviceGetTemperatureV": Looks(degrees),
            "nvmlDeviceGetTemperature": Looks(degrees),
            "nvmlDeviceGetCurrentClocksEventReasons": Looks(reasons),
            "nvmlDeviceGetCurrentClocksThrottleReasons": Looks(reasons),
            "nvmlDeviceGetComputeRunningProcesses": Looks([_processes(one) for one in pids]),
            **(answers or {}),
        }

    def answer(self, function: str, arguments: tuple[int, ...]) -> Any:
        """What NVML's function answers now."""
        look = self.looks.get(function, 0)
        self.looks[function] = look + 1
        if function in self.refuses:
            raise pynvml.NVMLError(self.refuses[function])
        found = self.answers[function]
        if isinstance(found, Looks):
            found = found.answers[min(look, len(found.answers) - 1)]
        if function == "nvmlDeviceGetTotalEccErrors":
            found = self.answers.get(_ECC_ERRORS[arguments], found)
        elif function == "nvmlDeviceGetNvLinkState":
            (number,) = arguments
            if isinstance(found, list):
                invalid = Refusal(pynvml.NVML_ERROR_INVALID_ARGUMENT)
                found = found[number] if number < len(found) else invalid
        elif function == "nvmlDeviceGetMemoryInfo":
            assert arguments in ((), (pynvml.nvmlMemory_v2,))
        else:
            assert arguments == _ARGUMENTS.get(function, ()), function
        if isinstance(found, Refusal):
            raise pynvml.NVMLError(found.code)
        return found


def _processes(pids: Sequence[int] | None) -> Any:
    if pids is None:
        return Refusal(pynvml.NVML_ERROR_NO_PERMISSION)
    return [types.SimpleNamespace(pid=pid, usedGpuMemory=0) for pid in pids]


class FakePynvml(types.ModuleType):
    """The module.

    Args:
        missing: functions that this release does not have.
        init_error: NVML's error when it is opened; 0: none.
        hangs_s: how long it takes to tell of processes.

    Attributes:
        open: how often it was opened and not shut down.
    """

    def __init__(
        self,
        *gpus: FakeGpu,
        missing: Sequence[str] = (),
        init_error: int = 0,
        hangs_s: float = 0.0,
    ) -> None:
        super().__init__("pynvml")
        self.gpus = gpus
        self.init_error = init_error
        self.hangs_s = hangs_s
        self.open = 0
        for name in dir(pynvml):
            if name.startswith(
                ("NVML_", "NVMLError", "NVMLLibraryMismatchError", "nvmlClocks", "nvmlMemory_")
            ):
                setattr(self, name, getattr(pynvml, name))
        for function in FakeGpu().answers:
            if function not in missing:
                setattr(self, function, self._of_gpu(function))
        for function in vars(self).keys() | vars(FakePynvml).keys():
            real = not function.startswith("nvml") or hasattr(pynvml, function)
            assert real, f"the real module has no {function}"

    def _of_gpu(self, function: str):
        def answer(gpu: FakeGpu, *arguments: int) -> Any:
            if function == "nvmlDeviceGetComputeRunningProcesses":
                time.sleep(self.hangs_s)
            return gpu.answer(function, arguments)

        return answer

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's names, here and below
        if self.init_error:
            raise pynvml.NVMLError(self.init_error)
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.65.06"

    def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802
        return 13000

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetIndex(self, gpu: FakeGpu) -> int:  # noqa: N802
        return self.gpus.index(gpu)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        if index >= len(self.gpus):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu:  # noqa: N802
        for gpu in self.gpus:
            if gpu.uuid == uuid:
                return gpu
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
