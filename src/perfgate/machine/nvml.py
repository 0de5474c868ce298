"""nvml: ask NVIDIA's management library without ever failing, and find the GPUs of a program.

pynvml's functions keep NVML's names (NVML API reference, "Device Queries"). `nvml` is that module
everywhere here: it is imported when GPUs are to be watched, and not before.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

VISIBLE = "CUDA_VISIBLE_DEVICES"


def answer(nvml: Any, name: str, *arguments: Any) -> tuple[Any, str]:
    """What a function of NVML answers, and why it does not."""
    function: Callable[..., Any] | None = getattr(nvml, name, None)
    if function is None:
        return None, f"this nvidia-ml-py has no {name}"
    # The second is raised where the driver is older than what nvidia-ml-py calls by default.
    errors = (nvml.NVMLError, getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError))
    try:
        return function(*arguments), ""
    except errors as error:
        return None, str(error) or type(error).__name__


def handles_of(nvml: Any, wanted: int, notes: list[str], visible: str | None = None) -> list[Any]:
    """Handles of the GPUs to be watched, at most `wanted`."""
    count, why = answer(nvml, "nvmlDeviceGetCount")
    if why:
        notes.append(f"GPUs not watched: {why}")
        return []
    visible = os.environ.get(VISIBLE) if visible is None else visible
    if visible is None:
        return _found(nvml, "nvmlDeviceGetHandleByIndex", range(min(count, wanted)), notes)
    handles: list[Any] = []
    for word in [part.strip() for part in visible.split(",") if part.strip()][:wanted]:
        if word.startswith("MIG-"):
            notes.append(f"{word} not watched: NVML tells clocks and power of whole GPUs alone")
        elif word.isdigit():
            handles += _found(nvml, "nvmlDeviceGetHandleByIndex", [int(word)], notes)
        else:
            handles += _by_uuid(nvml, word, count, notes)
    return handles


def _found(nvml: Any, name: str, words: Iterable[int], notes: list[str]) -> list[Any]:
    handles = []
    for word in words:
        handle, why = answer(nvml, name, word)
        if why:
            notes.append(f"GPU {word} not watched: {why}")
        else:
            handles.append(handle)
    return handles


def _by_uuid(nvml: Any, beginning: str, count: int, notes: list[str]) -> list[Any]:
    """The GPU whose UUID begins so; CUDA takes an abbreviation, NVML does not."""
    for handle in _found(nvml, "nvmlDeviceGetHandleByIndex", range(count), notes):
        uuid, _ = answer(nvml, "nvmlDeviceGetUUID", handle)
        if str(uuid).startswith(beginning):
            return [handle]
    notes.append(f"{beginning} of {VISIBLE} not watched: no GPU of that name")
    return []
