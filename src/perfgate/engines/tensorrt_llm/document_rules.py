"""Rules from TensorRT-LLM's documents: MoE backends, fewest GPUs, MTP's prompts, tokens a step.

They hold for scenarios whose engine is TensorRT-LLM, the first two for DeepSeek-V3 and R1 only, by
the tables of two documents: "Quick Start Recipe for DeepSeek R1 on TensorRT-LLM" (the recipe) and
``examples/deepseek_v3/README.md`` (the example). Where they differ, the newer one, the recipe,
holds; a comment says so.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from perfgate.engines.weights import CHECKPOINTS
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import Problem

# The kernels of the experts when none are named (recipe, "MoE Backend Support Matrix").
DEFAULT_MOE_BACKEND = "CUTLASS"

# The kernels that balance experts online over many GPUs (recipe, "Wide Expert Parallelism").
WIDE_MOE_BACKEND = "WIDEEP"

# Expert parallelism above this many GPUs has rows of its own in the matrix.
WIDE_FROM_EP = 8

# The 671B models and their checkpoints, none of the small ones that share the name.
_MODEL = re.compile(r"DeepSeek-(V3|R1)(?!.*(Distill|Lite))(-.*)?")


def is_deepseek(model: str) -> bool:
    """Whether the tables speak of the model of that public name or folder."""
    return _MODEL.fullmatch(model.rpartition("/")[2]) is not None


class MoeRow(NamedTuple):
    """One row of the MoE backend support matrix.

    Attributes:
        device: the row's first column, as documented.
        gpus: the GPU names that it means.
        wide: expert parallelism above `WIDE_FROM_EP` (True), up to it (False) or any (None).
        checkpoint: precision of the weights, as documented.
        backends: what it allows; empty: nothing yet.
    """

    device: str
    gpus: tuple[str, ...]
    wide: bool | None
    checkpoint: str
    backends: tuple[str, ...]

    def __str__(self) -> str:
        return f"| {self.device} | {self.checkpoint} | {', '.join(self.backends) or 'N/A (WIP)'} |"


# Recipe, "MoE Backend Support Matrix", row by row.
MOE_MATRIX = (
    MoeRow("H100/H200", ("H100", "H200"), None, "FP8", ("CUTLASS",)),
    MoeRow("B200/GB200 EP<=8", ("B200", "GB200"), False, "NVFP4", ("CUTLASS", "TRTLLM")),
    MoeRow("B200/GB200 EP<=8", ("B200", "GB200"), False, "FP8", ("DEEPGEMM",)),
    MoeRow("GB200 NVL72 EP>8", ("GB200",), True, "NVFP4", (WIDE_MOE_BACKEND,)),
    MoeRow("GB200 NVL72 EP>8", ("GB200",), True, "FP8", ()),
)


# Example, "Hardware Requirements": fewest GPUs by checkpoint and GPU; no GPU: not available. Both
# kinds of H20 need 8. For FP8 on Blackwell the example says "Not supported yet, WIP"; the newer
# recipe serves it on eight B200 and its matrix names DEEPGEMM for B200/GB200, so 8 stands here.
FEWEST_GPUS: Mapping[str, Mapping[str, int]] = {
    "FP8": {"H100": 16, "H20": 8, "H200": 8, "B200": 8, "GB200": 8},
    "NVFP4": {"B200": 4, "GB200": 4},
}

# Example, "Hardware Requirements": Ampere (SM80 and SM86) is not supported.
AMPERE = frozenset({"A100"})


def _deepseek_is_as_documented(scenario: Scenario) -> Iterator[Problem]:
    hardware, checkpoint = scenario.hardware, CHECKPOINTS.get(scenario.model.precision.lower())
    if not hardware.gpus or hardware.gpu == "none" or not is_deepseek(scenario.model.name):
        return
    if checkpoint is not None:
        yield from _moe_backend_is_supported(scenario, checkpoint)
    if hardware.gpu in AMPERE:
        problem = "Ampere (SM80, SM86) cannot run DeepSeek-V3 and R1"
        expected = "one of " + ", ".join(sorted(FEWEST_GPUS["FP8"]))
        yield Problem(("hardware", "gpu"), problem, hardware.gpu, expected)
    elif checkpoint is not None:
        yield from _gpus_hold_the_model(scenario, checkpoint)


def _moe_backend_is_supported(scenario: Scenario, checkpoint: str) -> Iterator[Problem]:
    """The support matrix of the quick start recipe, with its default."""
    gpu, settings = scenario.hardware.gpu, scenario.engine.settings
    ep, named = settings.ep or 1, settings.moe_backend
    found, backend = f"{gpu}, {checkpoint}, ep {ep}", named or DEFAULT_MOE_BACKEND
    rows = [row for row in MOE_MATRIX if gpu in row.gpus and checkpoint == row.checkpoint]
    row = next((row for row in rows if row.wide in (None, ep > WIDE_FROM_EP)), None)
    if settings.tp % ep:
        return  # no such parallelism, which another rule tells
    if row is None:
        if ep > WIDE_FROM_EP:  # else the GPU itself is wrong, which another rule tells
            problem = f"no MoE backend for expert parallelism above {WIDE_FROM_EP} on this GPU"
            expected = "; ".join(str(row) for row in MOE_MATRIX if row.wide)
            path = ("engine", "settings", "ep")
            yield Problem(path, problem, found, f"by the support matrix: {expected}")
    elif backend not in row.backends:
        called = "MoE backend" if named else "the default MoE backend is"
        problem, path = f"{called} not supported", ("engine", "settings", "moe_backend")
        expected = f"by the support matrix: {row}"
        hint = f"set moe_backend to {' or '.join(row.backends)}" if row.backends else None
        yield Problem(path, problem, f"{backend} for {found}", expected, hint)


def _gpus_hold_the_model(scenario: Scenario, checkpoint: str) -> Iterator[Problem]:
    """The hardware requirements of the DeepSeek-V3 example."""
    gpu, gpus = scenario.hardware.gpu, scenario.hardware.gpus
    fewest = FEWEST_GPUS[checkpoint]
    if gpu not in fewest:
        path, expected = ("model", "precision"), f"fp8 weights, or a GPU of {', '.join(fewest)}"
        yield Problem(path, f"{gpu} has no {checkpoint}", scenario.model.precision, expected)
    elif gpus < fewest[gpu]:
        problem = f"too few {gpu} for DeepSeek-V3 and R1 in {checkpoint}"
        yield Problem(("hardware", "gpus"), problem, gpus, f"at least {fewest[gpu]}")


def _steps_and_experts_are_as_documented(scenario: Scenario) -> Iterator[Problem]:
    """Best-practice blog, "WIP: Enable more features by default": max_num_tokens covers the ISL."""
    load, settings = scenario.workload, scenario.engine.settings
    if settings.moe_load_balancer is not None and settings.moe_backend != WIDE_MOE_BACKEND:
        path = ("engine", "settings", "moe_load_balancer")
        problem = "online balancing of experts belongs to wide expert parallelism"
        found = f"moe_backend {settings.moe_backend or 'left out'}"
        yield Problem(path, problem, found, f"moe_backend {WIDE_MOE_BACKEND}")
    tokens, longest = settings.max_num_tokens, load.isl if load else None
    is_short = tokens is not None and longest is not None and tokens < longest
    if is_short and not settings.chunked_context:
        path = ("engine", "settings", "max_num_tokens")
        found = f"max_num_tokens {tokens}, isl {longest}"
        expected = f"at least {longest}, or chunked_context"
        yield Problem(path, "a step does not take a whole prompt", found, expected)


def _drafts_are_measured_on_real_prompts(scenario: Scenario) -> Iterator[Problem]:
    """MTP's acceptance rate depends on the prompts (best-practice blog, "Dataset preparation").

    Only offline: the quick start recipe itself serves with MTP and loads the server with random
    prompts.
    """
    load, mtp = scenario.workload, scenario.engine.settings.mtp
    if load is None or load.client != "trtllm-bench" or load.dataset == "real":
        return
    if mtp is not None and mtp.layers:
        path, problem = ("workload", "dataset"), "MTP's acceptance rate depends on the prompts"
        hint = "name a dataset of your own in PERFGATE_DATASETS, or set mtp.layers to 0"
        yield Problem(path, problem, load.dataset, "real", hint)


def broken_document_rules(scenario: Scenario) -> Iterator[Problem]:
    """All that breaks a rule of the documents."""
    if scenario.engine.name == "tensorrt-llm":
        yield from _deepseek_is_as_documented(scenario)
        yield from _steps_and_experts_are_as_documented(scenario)
    yield from _drafts_are_measured_on_real_prompts(scenario)
