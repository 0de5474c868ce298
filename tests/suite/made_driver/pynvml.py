"""Stands for the module pynvml in sessions that tests start: two idle B200 that exist only here.

All else is the real module's, which answers that it was not initialised.
"""

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace

_others = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).parent]
_spec = PathFinder.find_spec("pynvml", _others)
_real = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_real)
globals().update({name: value for name, value in vars(_real).items() if not name.startswith("__")})

_GPUS = tuple(SimpleNamespace(index=index, uuid=f"GPU-{index}-made") for index in range(2))


def nvmlInit() -> None:  # noqa: N802 - NVML's names, here and below
    """It is always there."""


def nvmlShutdown() -> None:  # noqa: N802
    """Nothing to let go of."""


def nvmlDeviceGetCount() -> int:  # noqa: N802
    return len(_GPUS)


def nvmlDeviceGetHandleByIndex(index: int) -> SimpleNamespace:  # noqa: N802
    return _GPUS[index]


def nvmlDeviceGetHandleByUUID(uuid: str) -> SimpleNamespace:  # noqa: N802
    return next(gpu for gpu in _GPUS if gpu.uuid == uuid)


def nvmlDeviceGetIndex(gpu: SimpleNamespace) -> int:  # noqa: N802
    return gpu.index


def nvmlDeviceGetUUID(gpu: SimpleNamespace) -> str:  # noqa: N802
    return gpu.uuid


def nvmlDeviceGetName(_gpu: SimpleNamespace) -> str:  # noqa: N802
    return "NVIDIA B200"


def nvmlDeviceGetComputeRunningProcesses(_gpu: SimpleNamespace) -> list[object]:  # noqa: N802
    return []
