"""GPUs: what each GPU must be like before it is measured on; asked through NVML, read once.

Names of functions and constants are NVML's (NVML API reference, "Device Queries"). "performance
guide" is TensorRT-LLM's page on `trtllm-bench`, section "Before Benchmarking".
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfgate.machine.hardware import is_model
from perfgate.machine.leases.devices import Device, Devices, nvml_gpu, visible_devices
from perfgate.machine.nvml import (
    IDLE,
    Nvml,
    NvmlGpu,
    Unreadable,
    culprits,
    known,
    read_nvml,
    reasons_in,
    slows,
    watts,
)
from perfgate.machine.preflight.check import (
    WORST_FIRST,
    Case,
    Check,
    Finding,
    Judge,
    Need,
    Outcome,
    checked,
    finding_of,
    gib,
)

FREE = 0.97  # of all memory; the driver's own part is less than 1 %
CLOSE_C = 5  # °C before a GPU slows down
NEAR_MOST = 0.95  # of the highest clock
_ASKED = 0x2  # clock reason: what applications are given
_GRAPHICS = "NVML_CLOCK_GRAPHICS"


@dataclass(frozen=True)
class GpuLook:
    """The GPUs that a scenario would use here.

    Attributes:
        gpus: those of its model, in the order in which programs see them, at most as many as asked.
        names: models of all GPUs that may be used here.
        driver: version of the driver.
        cuda: newest CUDA that the driver can serve.
        checks: all questions that apply, each asked of all `gpus`.
    """

    gpus: tuple[Device, ...]
    names: tuple[str, ...]
    driver: str | Unreadable
    cuda: str | Unreadable
    checks: tuple[Check, ...] = ()


def look_at_gpus(need: Need, leased: Sequence[Device] | None = None) -> GpuLook | Unreadable:
    """The first GPUs whose model will do, of those that this process may use.

    Args:
        need: how many there should be, and of what model; fewer may be found.
        leased: the GPUs that are to be used; None: those that CUDA_VISIBLE_DEVICES shows.

    Raises:
        InputError: CUDA_VISIBLE_DEVICES names a GPU that is not there.
    """
    devices = Devices(tuple(leased), True) if leased is not None else visible_devices(os.environ)
    if devices.made_up:
        return Unreadable("the GPUs are simulated (PERFGATE_FAKE_GPUS)")
    if devices.hangs:
        return Unreadable(devices.note, "hangs")
    chosen = [gpu for gpu in devices.gpus if is_model(gpu.name, need.gpu)][: need.gpus]

    def read(nvml: Nvml) -> GpuLook:
        return GpuLook(
            tuple(chosen),
            tuple(gpu.name for gpu in devices.gpus),
            driver=nvml.ask(str, "nvmlSystemGetDriverVersion"),
            cuda=nvml.ask(_cuda, "nvmlSystemGetCudaDriverVersion"),
            checks=_checks({gpu.label: nvml_gpu(nvml, gpu) for gpu in chosen}, need),
        )

    return read_nvml(read)


def _checks(gpus: dict[str, NvmlGpu], need: Need) -> tuple[Check, ...]:
    checks = []
    for question, judge in GPU_RULES.items():
        findings = [(label, finding_of(judge, Case(gpu, need))) for label, gpu in gpus.items()]
        answers = [(label, finding) for label, finding in findings if finding is not None]
        if answers:
            checks.append(checked(question, _summed(answers), free=FREE, close_c=CLOSE_C))
    return tuple(checks)


def _summed(answers: Sequence[tuple[str, Finding]]) -> Finding:
    """The worst answer, and which GPUs gave it; all that is not well is told."""
    worst = next(one for one in WORST_FIRST if any(two.outcome == one for _, two in answers))
    gpus_by_text: dict[str, list[str]] = {}
    for outcome in WORST_FIRST:
        for label, finding in answers:
            if finding.outcome == outcome and (outcome != "ok" or worst == "ok"):
                gpus_by_text.setdefault(finding.text, []).append(label)
    texts = (f"GPU {', '.join(labels)}: {text}" for text, labels in gpus_by_text.items())
    return Finding(worst, "; ".join(texts))


def _split(case: Case[NvmlGpu]) -> Finding:
    """MIG: a part of a GPU is another machine than the whole that a scenario names."""
    is_split = known(case.subject.is_split)
    return Finding("failed", "split (MIG)") if is_split else Finding("ok", "whole")


def _processes(case: Case[NvmlGpu]) -> Finding:
    """Anybody there before the start disturbs the measurement."""
    users = known(case.subject.users)
    return Finding("failed", ", ".join(users)) if users else Finding("ok", "none")


def _memory(case: Case[NvmlGpu]) -> Finding:
    """At least the GPU's part of the weights; and nobody who holds memory unseen."""
    sizes = case.subject.ask(_free_of_all, "nvmlDeviceGetMemoryInfo")
    free, whole = known(sizes)
    text = f"{gib(free)} of {gib(whole)} free"
    if case.need.weights_bytes is not None and case.need.gpus_in_all:
        part = case.need.weights_bytes / case.need.gpus_in_all
        if free < part:
            return Finding("failed", f"{text}, the weights alone need {gib(part)}")
        text += f", the weights need {gib(part)}"
    return Finding("ok" if free >= FREE * whole else "warning", text)


def _errors(case: Case[NvmlGpu]) -> Finding:
    """Memory errors since the driver was loaded (NVML: volatile counters)."""
    kinds: tuple[tuple[str, Outcome], ...] = (("uncorrected", "failed"), ("corrected", "warning"))
    for kind, outcome in kinds:
        words = (f"NVML_MEMORY_ERROR_TYPE_{kind.upper()}", "NVML_VOLATILE_ECC")
        if count := known(case.subject.ask(int, "nvmlDeviceGetTotalEccErrors", *words)):
            return Finding(outcome, f"{count} {kind}")
    return Finding("ok", "none")


def _rows(case: Case[NvmlGpu]) -> Finding:
    """Replaced rows; before Ampere, retired pages. A GPU tells one of the two."""
    found = case.subject.ask(tuple, "nvmlDeviceGetRemappedRows")
    waits = case.subject.ask(bool, "nvmlDeviceGetRetiredPagesPendingStatus")
    if isinstance(found, Unreadable) and not isinstance(waits, Unreadable):
        return Finding("warning", "pages wait to be retired") if waits else Finding("ok", "none")
    corrected, uncorrected, is_pending, has_failed = known(found)
    if has_failed:
        return Finding("failed", "a row could not be replaced")
    if is_pending:
        return Finding("warning", "rows wait to be replaced")
    replaced = corrected + uncorrected
    return Finding("ok", f"{replaced} replaced, none waits" if replaced else "none")


def _clocks(case: Case[NvmlGpu]) -> Finding:
    """A lower clock that somebody asked for; an idle GPU clocks down by itself."""
    gpu = case.subject
    now = known(gpu.sm_mhz)
    most = known(gpu.ask(int, "nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"))
    asked = gpu.ask(int, "nvmlDeviceGetApplicationsClock", _GRAPHICS)
    usual = gpu.ask(int, "nvmlDeviceGetDefaultApplicationsClock", _GRAPHICS)
    if isinstance(asked, int) and isinstance(usual, int) and asked < usual:
        return Finding("warning", f"the applications clock is {asked} MHz, by default {usual} MHz")
    reasons = known(gpu.clock_reasons)
    text = f"{now} of {most} MHz"
    if reasons & _ASKED:
        return Finding("warning", f"{text}, limited by the applications clock")
    if reasons & IDLE:
        return Finding("ok", f"at most {most} MHz, idle now")
    if not reasons and now < NEAR_MOST * most:
        return Finding("warning", f"{text}, not idle, and NVML gives no reason: locked?")
    return Finding("ok", text)


def _throttling(case: Case[NvmlGpu]) -> Finding:
    """Heat, power brake, hardware protection; a power cap is a GPU's normal life."""
    reasons = known(case.subject.clock_reasons)
    names = reasons_in(reasons)
    if slows(reasons):
        by = " and ".join(culprits(dict.fromkeys(names, 1.0)))
        return Finding("failed", f"slowed down by {by} ({', '.join(names)})")
    return Finding("ok", ", ".join(names) or "by nothing")


def _power(case: Case[NvmlGpu]) -> Finding:
    """The limit in force against the one that the GPU comes with."""
    limit = known(case.subject.ask(watts, "nvmlDeviceGetEnforcedPowerLimit"))
    usual = known(case.subject.ask(watts, "nvmlDeviceGetPowerManagementDefaultLimit"))
    text = f"{limit:.0f} W, by default {usual:.0f} W"
    return Finding("warning" if limit < usual else "ok", text)


def _persistence(case: Case[NvmlGpu]) -> Finding:
    """Without it the driver lets go of an idle GPU, and its settings with it."""
    is_on = known(case.subject.ask(bool, "nvmlDeviceGetPersistenceMode"))
    return Finding("ok", "on") if is_on else Finding("warning", "off")


def _temperature(case: Case[NvmlGpu]) -> Finding:
    """What is left until the GPU slows itself down, before any load of ours.

    GPUs since Hopper tell that, older ones where they begin to slow down.
    """
    degrees = case.subject.temperature_c
    margin = case.subject.ask(int, "nvmlDeviceGetMarginTemperature")
    if isinstance(margin, Unreadable):
        threshold = "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN"
        limit = case.subject.ask(int, "nvmlDeviceGetTemperatureThreshold", threshold)
        margin = known(limit) - known(degrees)
    now = "" if isinstance(degrees, Unreadable) else f"{degrees} °C, "
    text = f"{now}{margin} °C before it slows down"
    if margin <= 0:
        return Finding("failed", text)
    return Finding("warning" if margin <= CLOSE_C else "ok", text)


def _links(case: Case[NvmlGpu]) -> Finding | None:
    """A link that is down leaves its traffic to the others. Without any link there is PCIe.

    NVML numbers a GPU's links from 0, and ends them by refusing the next.
    """
    if case.need.gpus < 2:
        return None
    ups: list[bool] = []
    for number in range(int(case.subject.nvml.library.NVML_NVLINK_MAX_LINKS)):
        is_up = case.subject.ask(bool, "nvmlDeviceGetNvLinkState", number)
        if isinstance(is_up, Unreadable):
            if not ups and is_up.kind != "unsupported":
                known(is_up)
            break
        ups.append(is_up)
    if not ups:
        return Finding("unknown", "NVML reports no NVLink")
    down = [str(number) for number, is_up in enumerate(ups) if not is_up]
    if not down:
        return Finding("ok", f"{len(ups)} up")
    text = f"{len(down)} of {len(ups)} down ({', '.join(down)})"
    # Boards that have a bridge leave some of their links unused.
    return Finding("failed" if len(down) == len(ups) else "warning", text)


def _free_of_all(memory: Any) -> tuple[int, int]:
    return int(memory.free), int(memory.total)


def _cuda(version: int) -> str:
    """12080 → 12.8."""
    return f"{version // 1000}.{version % 1000 // 10}"


# Each is asked of every GPU, in this order.
GPU_RULES: Mapping[str, Judge[NvmlGpu]] = {
    "gpu split": _split,
    "gpu processes": _processes,
    "gpu memory": _memory,
    "gpu errors": _errors,
    "gpu rows": _rows,
    "gpu clocks": _clocks,
    "gpu throttling": _throttling,
    "gpu power limit": _power,
    "gpu persistence": _persistence,
    "gpu temperature": _temperature,
    "nvlink": _links,
}
