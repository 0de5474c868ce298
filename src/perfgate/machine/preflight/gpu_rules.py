"""GPU rules: what each GPU must be like before it is measured on. Pure; one function a question.

Documents named here: "performance guide" is TensorRT-LLM's page on `trtllm-bench`, section "Before
Benchmarking"; "NVML" is the NVML API reference.
"""

from collections.abc import Sequence

from perfgate.machine.conditions.clock_reasons import IDLE, culprits, reasons_in, slows
from perfgate.machine.preflight.check import WORST_FIRST, Case, Check, Finding, Rule, gib, rule
from perfgate.machine.preflight.facts import GpuFacts
from perfgate.machine.preflight.need import Need
from perfgate.machine.reading import Unreadable, known

FREE = 0.97  # of all memory; the driver's own part is less than 1 %
CLOSE_C = 5  # °C before a GPU slows down
NEAR_MOST = 0.95  # of the highest clock
_ASKED = 0x2  # clock reason: what applications are given

GPU_RULES: list[Rule[GpuFacts]] = []  # each is asked of every GPU, in this order


def judge_gpus(gpus: Sequence[GpuFacts], need: Need) -> tuple[Check, ...]:
    """All questions that apply, each asked of all GPUs."""
    checks = []
    for question in GPU_RULES:
        findings = [(gpu.label, question.judge(Case(gpu, need))) for gpu in gpus]
        answers = [(label, finding) for label, finding in findings if finding is not None]
        if answers:
            checks.append(question.check(_summed(answers)))
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


@rule(
    GPU_RULES,
    "gpu split",
    "whole GPUs",
    "nvidia-smi -i N -mig 0 as root, or use another machine",
)
def split(case: Case[GpuFacts]) -> Finding:
    """MIG: a part of a GPU is another machine than the whole that a scenario names."""
    return (
        Finding("failed", "split (MIG)") if known(case.facts.is_split) else Finding("ok", "whole")
    )


@rule(
    GPU_RULES, "gpu processes", "no other process", "wait until they end, or contact their owners"
)
def processes(case: Case[GpuFacts]) -> Finding:
    """Anybody there before the start disturbs the measurement."""
    users = known(case.facts.processes)
    return Finding("failed", ", ".join(users)) if users else Finding("ok", "none")


@rule(
    GPU_RULES,
    "gpu memory",
    f"room for the weights, and {FREE:.0%} free",
    "look for a process in another container that holds memory; reset the GPU if there is none",
)
def memory(case: Case[GpuFacts]) -> Finding:
    """At least the GPU's part of the weights; and nobody who holds memory unseen."""
    free, whole = known(case.facts.free_bytes), known(case.facts.memory_bytes)
    text = f"{gib(free)} of {gib(whole)} free"
    if case.need.weights_bytes is not None and case.need.gpus_in_all:
        part = case.need.weights_bytes / case.need.gpus_in_all
        if free < part:
            return Finding("failed", f"{text}, the weights alone need {gib(part)}")
        text += f", the weights need {gib(part)}"
    return Finding("ok" if free >= FREE * whole else "warning", text)


@rule(
    GPU_RULES,
    "gpu errors",
    "no memory errors since the driver was loaded",
    "look for Xid lines in dmesg; after uncorrected errors reset the GPU and test it before it is "
    "used",
)
def errors(case: Case[GpuFacts]) -> Finding:
    """Memory errors since the driver was loaded (NVML: volatile counters)."""
    if known(case.facts.uncorrected):
        return Finding("failed", f"{case.facts.uncorrected} uncorrected")
    if known(case.facts.corrected):
        return Finding("warning", f"{case.facts.corrected} corrected")
    return Finding("ok", "none")


@rule(
    GPU_RULES,
    "gpu rows",
    "no row of memory waits to be replaced",
    "reset the GPU; where a row could not be replaced, have the GPU replaced",
)
def rows(case: Case[GpuFacts]) -> Finding:
    """Replaced rows; before Ampere, retired pages. A GPU tells one of the two."""
    if isinstance(case.facts.rows, Unreadable) and not isinstance(
        case.facts.retired_pending, Unreadable
    ):
        waits = case.facts.retired_pending
        return Finding("warning", "pages wait to be retired") if waits else Finding("ok", "none")
    found = known(case.facts.rows)
    if found.failed:
        return Finding("failed", "a row could not be replaced")
    if found.pending:
        return Finding("warning", "rows wait to be replaced")
    return Finding("ok", f"{found.replaced} replaced, none waits" if found.replaced else "none")


@rule(
    GPU_RULES,
    "gpu clocks",
    "clocks as the driver chooses them",
    "nvidia-smi -rgc and nvidia-smi -rac as root undo what was set",
)
def clocks(case: Case[GpuFacts]) -> Finding:
    """A lower clock that somebody asked for; an idle GPU clocks down by itself."""
    now, most = known(case.facts.sm_mhz), known(case.facts.sm_mhz_most)
    asked, usual = case.facts.asked_mhz, case.facts.asked_mhz_default
    if isinstance(asked, int) and isinstance(usual, int) and asked < usual:
        return Finding("warning", f"the applications clock is {asked} MHz, by default {usual} MHz")
    reasons = known(case.facts.reasons)
    text = f"{now} of {most} MHz"
    if reasons & _ASKED:
        return Finding("warning", f"{text}, limited by the applications clock")
    if reasons & IDLE:
        return Finding("ok", f"at most {most} MHz, idle now")
    if not reasons and now < NEAR_MOST * most:
        return Finding("warning", f"{text}, not idle, and NVML gives no reason: locked?")
    return Finding("ok", text)


@rule(
    GPU_RULES,
    "gpu throttling",
    "not slowed down",
    "let it cool; check cooling and power supply (nvidia-smi -q -d PERFORMANCE)",
)
def throttling(case: Case[GpuFacts]) -> Finding:
    """Heat, power brake, hardware protection; a power cap is a GPU's normal life."""
    reasons = known(case.facts.reasons)
    names = reasons_in(reasons)
    if slows(reasons):
        by = " and ".join(culprits(dict.fromkeys(names, 1.0)))
        return Finding("failed", f"slowed down by {by} ({', '.join(names)})")
    return Finding("ok", ", ".join(names) or "by nothing")


@rule(GPU_RULES, "gpu power limit", "at least the default limit", "nvidia-smi -pl WATTS as root")
def power(case: Case[GpuFacts]) -> Finding:
    """The limit in force against the one that the GPU comes with."""
    limit, usual = known(case.facts.power_w), known(case.facts.power_w_default)
    text = f"{limit:.0f} W, by default {usual:.0f} W"
    return Finding("warning" if limit < usual else "ok", text)


@rule(GPU_RULES, "gpu persistence", "persistence mode on", "nvidia-smi -pm 1 as root")
def persistence(case: Case[GpuFacts]) -> Finding:
    """Without it the driver lets go of an idle GPU, and its settings with it."""
    return Finding("ok", "on") if known(case.facts.is_persistent) else Finding("warning", "off")


@rule(
    GPU_RULES,
    "gpu temperature",
    f"more than {CLOSE_C} °C before it slows down",
    "let it cool; check fans and neighbours",
)
def temperature(case: Case[GpuFacts]) -> Finding:
    """What is left until the GPU slows itself down, before any load of ours."""
    margin = known(case.facts.margin)
    now = "" if isinstance(case.facts.degrees, Unreadable) else f"{case.facts.degrees} °C, "
    text = f"{now}{margin} °C before it slows down"
    if margin <= 0:
        return Finding("failed", text)
    return Finding("warning" if margin <= CLOSE_C else "ok", text)


@rule(
    GPU_RULES,
    "nvlink",
    "all links up",
    "compare with nvidia-smi nvlink --status and nvidia-smi topo -m",
)
def links(case: Case[GpuFacts]) -> Finding | None:
    """A link that is down leaves its traffic to the others. Without any link there is PCIe."""
    if case.need.gpus < 2:
        return None
    ups = known(case.facts.links)
    if not ups:
        return Finding("unknown", "NVML reports no NVLink")
    down = [str(number) for number, is_up in enumerate(ups) if not is_up]
    if not down:
        return Finding("ok", f"{len(ups)} up")
    text = f"{len(down)} of {len(ups)} down ({', '.join(down)})"
    # Boards that have a bridge leave some of their links unused.
    return Finding("failed" if len(down) == len(ups) else "warning", text)
