"""GPUs that exist only here: as facts for the rules, and behind pynvml's names for the probe."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pynvml
from fake_pynvml import GIB, FakeGpu

from perfgate.machine.preflight.facts import GpuFacts, Rows
from perfgate.machine.reading import Unreadable

REFUSED = str(pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED))

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


def h200(number: int, answers: Mapping[str, Any]) -> FakeGpu:
    """The same GPU behind NVML; well but for these answers."""
    older = {"nvmlDeviceGetTemperature": 31}  # so that it can be told which function was asked
    return FakeGpu(
        f"GPU-{number}",
        "NVIDIA H200",
        mhz=(345,),
        degrees=(30,),
        reasons=(0x1,),
        answers={**older, **answers},
    )
