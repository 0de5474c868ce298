"""GPU rules: what each GPU must be like before it is measured on. Pure; one function a question.

Documents named here: "performance guide" is TensorRT-LLM's page on `trtllm-bench`, section "Before
Benchmarking"; "NVML" is the NVML API reference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfgate.machine.conditions.clock_reasons import IDLE, culprits, reasons_in, slows
from perfgate.machine.preflight.check import WORST_FIRST, Check, Finding, gib
from perfgate.machine.preflight.facts import GpuFacts
from perfgate.machine.preflight.need import Need
from perfgate.machine.reading import Unreadable

FREE = 0.97  # of all memory; the driver's own part is less than 1 %
CLOSE_C = 5  # °C before a GPU slows down
NEAR_MOST = 0.95  # of the highest clock
_ASKED = 0x2  # clock reason: what applications are given


@dataclass(frozen=True)
class GpuRule:
    """One question that is asked of every GPU.

    Attributes:
        name: what is looked at.
        judge: one GPU's answer.
        expected: what is well.
        hint: how to mend it.
        of_several: whether it is only asked where several GPUs work together.
    """

    name: str
    judge: Callable[[GpuFacts, Need], Finding]
    expected: str
    hint: str
    of_several: bool = False


def judge_gpus(gpus: Sequence[GpuFacts], need: Need) -> tuple[Check, ...]:
    """All questions, each asked of all GPUs."""
    asked = [rule for rule in GPU_RULES if need.gpus > 1 or not rule.of_several]
    return tuple(_summed(rule, gpus, need) for rule in asked) if gpus else ()


def _summed(rule: GpuRule, gpus: Sequence[GpuFacts], need: Need) -> Check:
    """The worst answer, and which GPUs gave it; all that is not well is told."""
    answers = [(gpu.label, rule.judge(gpu, need)) for gpu in gpus]
    worst = next(one for one in WORST_FIRST if any(two.outcome == one for _, two in answers))
    told: dict[str, list[str]] = {}
    for outcome in WORST_FIRST:
        for label, finding in answers:
            if finding.outcome == outcome and (outcome != "ok" or worst == "ok"):
                told.setdefault(finding.text, []).append(label)
    found = "; ".join(f"GPU {', '.join(labels)}: {text}" for text, labels in told.items())
    if worst == "ok":
        return Check(rule.name, worst, found, rule.expected)
    return Check(rule.name, worst, found, rule.expected, "" if worst == "unknown" else rule.hint)


def split(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001 - all rules are called alike
    """MIG: a part of a GPU is another machine than the whole that a scenario names."""
    if isinstance(gpu.is_split, Unreadable):
        return _unknown(gpu.is_split)
    return Finding("failed", "split (MIG)") if gpu.is_split else Finding("ok", "whole")


def processes(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """Anybody there before the start disturbs the measurement."""
    if isinstance(gpu.processes, Unreadable):
        return _unknown(gpu.processes)
    if gpu.processes:
        return Finding("failed", ", ".join(gpu.processes))
    return Finding("ok", "none")


def memory(gpu: GpuFacts, need: Need) -> Finding:
    """At least the GPU's part of the weights; and nobody who holds memory unseen."""
    free, whole = gpu.free_bytes, gpu.memory_bytes
    if isinstance(free, Unreadable):
        return _unknown(free)
    if isinstance(whole, Unreadable):
        return _unknown(whole)
    text = f"{gib(free)} of {gib(whole)} free"
    if need.weights_bytes is not None and need.gpus_in_all:
        part = need.weights_bytes / need.gpus_in_all
        if free < part:
            return Finding("failed", f"{text}, the weights alone need {gib(part)}")
        text += f", the weights need {gib(part)}"
    return Finding("ok" if free >= FREE * whole else "warning", text)


def errors(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """Memory errors since the driver was loaded (NVML: volatile counters)."""
    if isinstance(gpu.uncorrected, Unreadable):
        return _unknown(gpu.uncorrected)
    if gpu.uncorrected:
        return Finding("failed", f"{gpu.uncorrected} uncorrected")
    if isinstance(gpu.corrected, Unreadable):
        return _unknown(gpu.corrected)
    if gpu.corrected:
        return Finding("warning", f"{gpu.corrected} corrected")
    return Finding("ok", "none")


def rows(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """Replaced rows; before Ampere, retired pages. A GPU tells one of the two."""
    if isinstance(gpu.rows, Unreadable):
        if isinstance(gpu.retired_pending, Unreadable):
            return _unknown(gpu.rows)
        waits = gpu.retired_pending
        return Finding("warning", "pages wait to be retired") if waits else Finding("ok", "none")
    if gpu.rows.failed:
        return Finding("failed", "a row could not be replaced")
    if gpu.rows.pending:
        return Finding("warning", "rows wait to be replaced")
    if gpu.rows.replaced:
        return Finding("ok", f"{gpu.rows.replaced} replaced, none waits")
    return Finding("ok", "none")


def clocks(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """A lower clock that somebody asked for; an idle GPU clocks down by itself."""
    now, most = gpu.sm_mhz, gpu.sm_mhz_most
    if isinstance(now, Unreadable):
        return _unknown(now)
    if isinstance(most, Unreadable):
        return _unknown(most)
    asked, usual = gpu.asked_mhz, gpu.asked_mhz_default
    if isinstance(asked, int) and isinstance(usual, int) and asked < usual:
        return Finding("warning", f"applications are given {asked} MHz, by default {usual} MHz")
    if isinstance(gpu.reasons, Unreadable):
        return _unknown(gpu.reasons)
    text = f"{now} of {most} MHz"
    if gpu.reasons & _ASKED:
        return Finding("warning", f"{text}, held by what applications are given")
    if gpu.reasons & IDLE:
        return Finding("ok", f"at most {most} MHz, idle now")
    if not gpu.reasons and now < NEAR_MOST * most:
        return Finding("warning", f"{text}, not idle, and NVML gives no reason: locked?")
    return Finding("ok", text)


def throttling(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """Heat, power brake, hardware protection; a power cap is a GPU's normal life."""
    if isinstance(gpu.reasons, Unreadable):
        return _unknown(gpu.reasons)
    names = reasons_in(gpu.reasons)
    if slows(gpu.reasons):
        by = " and ".join(culprits(dict.fromkeys(names, 1.0)))
        return Finding("failed", f"slowed down by {by} ({', '.join(names)})")
    return Finding("ok", ", ".join(names) or "by nothing")


def power(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """The limit in force against the one that the GPU comes with."""
    limit, usual = gpu.power_w, gpu.power_w_default
    if isinstance(limit, Unreadable):
        return _unknown(limit)
    if isinstance(usual, Unreadable):
        return _unknown(usual)
    text = f"{limit:.0f} W, by default {usual:.0f} W"
    return Finding("warning" if limit < usual else "ok", text)


def persistence(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """Without it the driver lets go of an idle GPU, and its settings with it."""
    if isinstance(gpu.is_persistent, Unreadable):
        return _unknown(gpu.is_persistent)
    return Finding("ok", "on") if gpu.is_persistent else Finding("warning", "off")


def temperature(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """What is left until the GPU slows itself down, before any load of ours."""
    if isinstance(gpu.margin, Unreadable):
        return _unknown(gpu.margin)
    now = "" if isinstance(gpu.degrees, Unreadable) else f"{gpu.degrees} °C, "
    text = f"{now}{gpu.margin} °C before it slows down"
    if gpu.margin <= 0:
        return Finding("failed", text)
    return Finding("warning" if gpu.margin <= CLOSE_C else "ok", text)


def links(gpu: GpuFacts, need: Need) -> Finding:  # noqa: ARG001
    """A link that is down leaves its traffic to the others. Without any link there is PCIe."""
    if isinstance(gpu.links, Unreadable):
        return _unknown(gpu.links)
    if not gpu.links:
        return Finding("unknown", "NVML tells of no NVLink")
    down = [str(number) for number, is_up in enumerate(gpu.links) if not is_up]
    if not down:
        return Finding("ok", f"{len(gpu.links)} up")
    text = f"{len(down)} of {len(gpu.links)} down ({', '.join(down)})"
    # Boards that have a bridge leave some of their links unused.
    return Finding("failed" if len(down) == len(gpu.links) else "warning", text)


def _unknown(fact: Unreadable) -> Finding:
    return Finding("unknown", fact.why)


GPU_RULES: tuple[GpuRule, ...] = (
    GpuRule(
        "gpu split",
        split,
        "whole GPUs",
        "nvidia-smi -i N -mig 0 as root, or use another machine",
    ),
    GpuRule(
        "gpu processes",
        processes,
        "nobody else",
        "wait until they end, or ask their owners",
    ),
    GpuRule(
        "gpu memory",
        memory,
        f"room for the weights, and {FREE:.0%} free",
        "look for a process in another container that holds memory; reset the GPU if there is none",
    ),
    GpuRule(
        "gpu errors",
        errors,
        "no memory errors since the driver was loaded",
        "look for Xid lines in dmesg; after uncorrected errors reset the GPU and test it before "
        "it is used",
    ),
    GpuRule(
        "gpu rows",
        rows,
        "no row of memory waits to be replaced",
        "reset the GPU; where a row could not be replaced, have the GPU replaced",
    ),
    GpuRule(
        "gpu clocks",
        clocks,
        "clocks as the driver chooses them",
        "nvidia-smi -rgc and nvidia-smi -rac as root undo what was set",
    ),
    GpuRule(
        "gpu throttling",
        throttling,
        "not slowed down",
        "let it cool; look at cooling and power supply (nvidia-smi -q -d PERFORMANCE)",
    ),
    GpuRule(
        "gpu power limit",
        power,
        "at least the default limit",
        "nvidia-smi -pl WATTS as root",
    ),
    GpuRule(
        "gpu persistence",
        persistence,
        "persistence mode on",
        "nvidia-smi -pm 1 as root",
    ),
    GpuRule(
        "gpu temperature",
        temperature,
        f"more than {CLOSE_C} °C before it slows down",
        "let it cool; look at fans and neighbours",
    ),
    GpuRule(
        "nvlink",
        links,
        "all links up",
        "compare with nvidia-smi nvlink --status and nvidia-smi topo -m",
        of_several=True,
    ),
)
