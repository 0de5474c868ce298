"""A driver with GPUs that exist only here, behind pynvml's names, constants and errors."""

import time
import types
from collections.abc import Sequence
from dataclasses import dataclass

import pynvml


@dataclass
class FakeGpu:
    """One GPU; `pids` are those on it at each look, the last for ever after; None: not readable."""

    uuid: str = "GPU-00000000-aaaa"
    name: str = "NVIDIA B200"
    pids: Sequence[Sequence[int] | None] = ((),)
    looks: int = 0


class FakeDriver(types.ModuleType):
    """Stands for the module pynvml."""

    NVMLError = pynvml.NVMLError

    def __init__(self, *gpus: FakeGpu, error: int = 0, hangs_s: float = 0.0) -> None:
        super().__init__("pynvml")
        self.gpus = gpus
        self.error = error
        self.hangs_s = hangs_s
        self.open = 0
        functions = [name for name in vars(FakeDriver) if name.startswith("nvml")]
        assert all(hasattr(pynvml, name) for name in functions), "not in the real module"

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's names, here and below
        if self.error:
            raise pynvml.NVMLError(self.error)
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu:  # noqa: N802
        for gpu in self.gpus:
            if gpu.uuid == uuid:
                return gpu
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetUUID(self, gpu: FakeGpu) -> str:  # noqa: N802
        return gpu.uuid

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> str:  # noqa: N802
        return gpu.name

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: FakeGpu) -> list[object]:  # noqa: N802
        time.sleep(self.hangs_s)
        pids = gpu.pids[min(gpu.looks, len(gpu.pids) - 1)]
        gpu.looks += 1
        if pids is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
        return [types.SimpleNamespace(pid=pid) for pid in pids]
