"""A machine with GPUs that exist only here, behind pynvml's own names, constants and errors."""

import types
from collections.abc import Sequence
from dataclasses import dataclass, field

import pynvml
from fake_pynvml import FakePynvml


@dataclass
class FakeGpu:
    """One GPU; what is a list gives one value a look, and its last one for ever after.

    Attributes:
        refuses: function → the error code that it answers with.
    """

    uuid: str = "GPU-00000000-aaaa"
    name: str = "NVIDIA B200"
    mhz: Sequence[int] = (1965,)
    milliwatts: Sequence[int] = (950_000,)
    degrees: Sequence[int] = (61,)
    reasons: Sequence[int] = (0,)
    pids: Sequence[Sequence[int]] = ((),)
    mig: bool = False
    refuses: dict[str, int] = field(default_factory=dict)
    looks: dict[str, int] = field(default_factory=dict)

    def next(self, what: str) -> object:
        """The value of this look."""
        values = getattr(self, what)
        look = self.looks.get(what, 0)
        self.looks[what] = look + 1
        return values[min(look, len(values) - 1)]


class FakeNvml(FakePynvml):
    """Stands for the module pynvml; functions in `missing` do not exist in this release."""

    def __init__(self, *gpus: FakeGpu, missing: Sequence[str] = (), init_error: int = 0) -> None:
        super().__init__(gpus, init_error)
        functions = (
            "nvmlDeviceGetClockInfo",
            "nvmlDeviceGetPowerUsage",
            "nvmlDeviceGetTemperature",
            "nvmlDeviceGetTemperatureV",
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
            "nvmlDeviceGetComputeRunningProcesses",
            "nvmlDeviceGetName",
            "nvmlDeviceGetUUID",
            "nvmlDeviceGetIndex",
            "nvmlDeviceGetMigMode",
        )
        self.have((name for name in functions if name not in missing), self._of_device)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802 - NVML's name
        if index >= len(self.gpus):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self.gpus[index]

    def _of_device(self, function: str):
        def answer(gpu: FakeGpu, *arguments: int) -> object:
            if function in gpu.refuses:
                raise pynvml.NVMLError(gpu.refuses[function])
            if function.startswith("nvmlDeviceGetTemperature"):
                assert arguments == (pynvml.NVML_TEMPERATURE_GPU,)
                return gpu.next("degrees")
            if function.startswith("nvmlDeviceGetCurrentClocks"):
                return gpu.next("reasons")
            if function == "nvmlDeviceGetClockInfo":
                assert arguments == (pynvml.NVML_CLOCK_SM,)
                return gpu.next("mhz")
            if function == "nvmlDeviceGetComputeRunningProcesses":
                return [types.SimpleNamespace(pid=pid) for pid in gpu.next("pids")]
            return {
                "nvmlDeviceGetPowerUsage": lambda: gpu.next("milliwatts"),
                "nvmlDeviceGetName": lambda: gpu.name,
                "nvmlDeviceGetUUID": lambda: gpu.uuid,
                "nvmlDeviceGetIndex": lambda: self.gpus.index(gpu),
                "nvmlDeviceGetMigMode": lambda: [int(gpu.mig), int(gpu.mig)],
            }[function]()

        return answer
