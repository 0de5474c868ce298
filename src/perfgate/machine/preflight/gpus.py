"""GPUs: what each GPU must be like before it is measured on; asked through NVML, read once.

Names of functions and constants are NVML's (NVML API reference, "Device Queries"). "performance
guide" is TensorRT-LLM's page on `trtllm-bench`, section "Before Benchmarking".
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from perfgate.machine.hardware import counted, is_model
from perfgate.machine.leases.devices import FAKE, Device, Devices, nvml_gpu, visible_devices
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
    Check,
    Finding,
    Need,
    Outcome,
    checked,
    finding_of,
    gib,
    judged,
)

FREE = 0.97  # of all memory; the driver's own part is less than 1 %
CLOSE_C = 5  # °C before a GPU slows down
NEAR_MOST = 0.95  # of the highest clock
_ASKED = 0x2  # clock reason: what applications are given
_GRAPHICS = "NVML_CLOCK_GRAPHICS"


GpuAnswers = tuple[tuple[Check, ...], Mapping[str, str]]
"""All checks of the GPUs, and facts that change numbers and are not judged, by name."""


def judge_gpus(
    need: Need, lacking: str | None, leased: Sequence[Device] | None = None
) -> GpuAnswers:
    """Ask the first GPUs whose model will do, of those that this process may use.

    Args:
        need: how many there should be, and of what model; those that are there are judged.
        lacking: which of them nvidia-smi misses; None: none.
        leased: the GPUs that are to be used; None: those that CUDA_VISIBLE_DEVICES shows.

    Raises:
        InputError: CUDA_VISIBLE_DEVICES names a GPU that is not there.
    """
    devices = Devices(tuple(leased), True) if leased is not None else visible_devices(os.environ)

    def read(nvml: Nvml) -> GpuAnswers:
        gpus = [gpu for gpu in devices.gpus if is_model(gpu.name, need.gpu)][: need.gpus]
        present = Finding("failed", counted(gpu.name for gpu in devices.gpus) or "none")
        if len(gpus) == need.gpus:
            labels = ", ".join(gpu.label for gpu in gpus)
            present = Finding("ok", f"{len(gpus)}×{gpus[0].name}: {labels}")
        driver = nvml.ask(str, "nvmlSystemGetDriverVersion")
        cuda = nvml.ask(_cuda, "nvmlSystemGetCudaDriverVersion")
        by_label = {gpu.label: nvml_gpu(nvml, gpu) for gpu in gpus}
        of_each = _of_each(by_label, need) if gpus else ()
        return (*_of_all(present, driver, need), *of_each), {
            name: f"unknown: {fact.why}" if isinstance(fact, Unreadable) else fact
            for name, fact in (("driver", driver), ("cuda of the driver", cuda))
        }

    if devices.made_up:
        answers: GpuAnswers | Unreadable = Unreadable(f"the GPUs are simulated ({FAKE})")
    elif devices.hangs:
        answers = Unreadable(devices.note, "hangs")
    else:
        answers = read_nvml(read)
    if not isinstance(answers, Unreadable):
        return answers
    if answers.kind == "hangs":
        present = Finding("failed", answers.why, hint="look for Xid lines in dmesg; reboot")
    elif lacking:
        present = Finding("failed", f"{lacking}; NVML: {answers.why}")
    else:  # nvidia-smi's word alone is not enough to be sure
        present = Finding("unknown", f"NVML: {answers.why}; nvidia-smi shows them")
    return _of_all(present, Unreadable(f"NVML: {answers.why}"), need), {}


def _of_all(present: Finding, driver: str | Unreadable, need: Need) -> tuple[Check, ...]:
    """Name and number of the GPUs, and their driver."""
    presence = checked("gpus", present, gpus=need.gpus, gpu=need.gpu)
    rule = ("driver", need.driver is not None, partial(_driver, need.driver or 0, driver))
    return presence, *judged([rule], driver=need.driver)


def _of_each(gpus: Mapping[str, NvmlGpu], need: Need) -> tuple[Check, ...]:
    """What is asked of every GPU, in this order."""
    rules: tuple[tuple[str, bool, Callable[[NvmlGpu], Finding]], ...] = (
        ("gpu split", True, _split),
        ("gpu processes", True, _processes),
        ("gpu memory", True, partial(_memory, need)),
        ("gpu errors", True, _errors),
        ("gpu rows", True, _rows),
        ("gpu clocks", True, _clocks),
        ("gpu throttling", True, _throttling),
        ("gpu power limit", True, _power),
        ("gpu persistence", True, _persistence),
        ("gpu temperature", True, _temperature),
        ("nvlink", need.gpus > 1, _links),
    )
    of_all = [(name, applies, partial(_worst, judge, gpus)) for name, applies, judge in rules]
    return judged(of_all, free=FREE, close_c=CLOSE_C)


def _worst(judge: Callable[[NvmlGpu], Finding], gpus: Mapping[str, NvmlGpu]) -> Finding:
    """The worst answer of all GPUs, and which gave it; all that is not well is told."""
    findings = [(label, finding_of(partial(judge, gpu))) for label, gpu in gpus.items()]
    findings.sort(key=lambda one: WORST_FIRST.index(one[1].outcome))
    worst = findings[0][1].outcome
    labels_by_text: dict[str, list[str]] = {}
    for label, finding in findings:
        if finding.outcome != "ok" or worst == "ok":
            labels_by_text.setdefault(finding.text, []).append(label)
    texts = (f"GPU {', '.join(labels)}: {text}" for text, labels in labels_by_text.items())
    return Finding(worst, "; ".join(texts))


def _driver(oldest: int, driver: str | Unreadable) -> Finding:
    """The oldest driver that the scenario's document allows, where it names one."""
    text = known(driver)
    branch = text.partition(".")[0]
    if not branch.isdigit():
        return Finding("unknown", f"{text} is no version")
    return Finding("warning" if int(branch) < oldest else "ok", text)


def _split(gpu: NvmlGpu) -> Finding:
    """MIG: a part of a GPU is another machine than the whole that a scenario names."""
    is_split = known(gpu.is_split)
    return Finding("failed", "split (MIG)") if is_split else Finding("ok", "whole")


def _processes(gpu: NvmlGpu) -> Finding:
    """Anybody there before the start disturbs the measurement."""
    users = known(gpu.users)
    return Finding("failed", ", ".join(users)) if users else Finding("ok", "none")


def _memory(need: Need, gpu: NvmlGpu) -> Finding:
    """At least the GPU's part of the weights; and nobody who holds memory unseen."""
    sizes = gpu.ask(_free_of_all, "nvmlDeviceGetMemoryInfo")
    free, whole = known(sizes)
    text = f"{gib(free)} of {gib(whole)} free"
    if need.weights_bytes is not None and need.gpus_in_all:
        part = need.weights_bytes / need.gpus_in_all
        if free < part:
            return Finding("failed", f"{text}, the weights alone need {gib(part)}")
        text += f", the weights need {gib(part)}"
    return Finding("ok" if free >= FREE * whole else "warning", text)


def _errors(gpu: NvmlGpu) -> Finding:
    """Memory errors since the driver was loaded (NVML: volatile counters)."""
    kinds: tuple[tuple[str, Outcome], ...] = (("uncorrected", "failed"), ("corrected", "warning"))
    for kind, outcome in kinds:
        words = (f"NVML_MEMORY_ERROR_TYPE_{kind.upper()}", "NVML_VOLATILE_ECC")
        if count := known(gpu.ask(int, "nvmlDeviceGetTotalEccErrors", *words)):
            return Finding(outcome, f"{count} {kind}")
    return Finding("ok", "none")


def _rows(gpu: NvmlGpu) -> Finding:
    """Replaced rows; before Ampere, retired pages. A GPU tells one of the two."""
    found = gpu.ask(tuple, "nvmlDeviceGetRemappedRows")
    waits = gpu.ask(bool, "nvmlDeviceGetRetiredPagesPendingStatus")
    if isinstance(found, Unreadable) and not isinstance(waits, Unreadable):
        return Finding("warning", "pages wait to be retired") if waits else Finding("ok", "none")
    corrected, uncorrected, is_pending, has_failed = known(found)
    if has_failed:
        return Finding("failed", "a row could not be replaced")
    if is_pending:
        return Finding("warning", "rows wait to be replaced")
    replaced = corrected + uncorrected
    return Finding("ok", f"{replaced} replaced, none waits" if replaced else "none")


def _clocks(gpu: NvmlGpu) -> Finding:
    """A lower clock that somebody asked for; an idle GPU clocks down by itself."""
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


def _throttling(gpu: NvmlGpu) -> Finding:
    """Heat, power brake, hardware protection; a power cap is a GPU's normal life."""
    reasons = known(gpu.clock_reasons)
    names = reasons_in(reasons)
    if slows(reasons):
        by = " and ".join(culprits(dict.fromkeys(names, 1.0)))
        return Finding("failed", f"slowed down by {by} ({', '.join(names)})")
    return Finding("ok", ", ".join(names) or "by nothing")


def _power(gpu: NvmlGpu) -> Finding:
    """The limit in force against the one that the GPU comes with."""
    limit = known(gpu.ask(watts, "nvmlDeviceGetEnforcedPowerLimit"))
    usual = known(gpu.ask(watts, "nvmlDeviceGetPowerManagementDefaultLimit"))
    text = f"{limit:.0f} W, by default {usual:.0f} W"
    return Finding("warning" if limit < usual else "ok", text)


def _persistence(gpu: NvmlGpu) -> Finding:
    """Without it the driver lets go of an idle GPU, and its settings with it."""
    is_on = known(gpu.ask(bool, "nvmlDeviceGetPersistenceMode"))
    return Finding("ok", "on") if is_on else Finding("warning", "off")


def _temperature(gpu: NvmlGpu) -> Finding:
    """What is left until the GPU slows itself down, before any load of ours.

    GPUs since Hopper tell that, older ones where they begin to slow down.
    """
    degrees = gpu.temperature_c
    margin = gpu.ask(int, "nvmlDeviceGetMarginTemperature")
    if isinstance(margin, Unreadable):
        threshold = "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN"
        limit = gpu.ask(int, "nvmlDeviceGetTemperatureThreshold", threshold)
        margin = known(limit) - known(degrees)
    now = "" if isinstance(degrees, Unreadable) else f"{degrees} °C, "
    text = f"{now}{margin} °C before it slows down"
    if margin <= 0:
        return Finding("failed", text)
    return Finding("warning" if margin <= CLOSE_C else "ok", text)


def _links(gpu: NvmlGpu) -> Finding:
    """A link that is down leaves its traffic to the others. Without any link there is PCIe.

    NVML numbers a GPU's links from 0, and ends them by refusing the next.
    """
    ups: list[bool] = []
    for number in range(int(gpu.nvml.library.NVML_NVLINK_MAX_LINKS)):
        is_up = gpu.ask(bool, "nvmlDeviceGetNvLinkState", number)
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
