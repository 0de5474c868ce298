"""Rules from TensorRT-LLM's documents: MoE backends, fewest GPUs, MTP's prompts, tokens a step.

They hold for scenarios whose engine is TensorRT-LLM, the first two for DeepSeek-V3 and R1 only;
the tables are in `deepseek_tables`.
"""

from collections.abc import Iterator

from perfgate.scenarios.deepseek_tables import (
    AMPERE,
    CHECKPOINTS,
    DEFAULT_MOE_BACKEND,
    FEWEST_GPUS,
    MOE_MATRIX,
    WIDE_FROM_EP,
    WIDE_MOE_BACKEND,
    is_deepseek,
    moe_row,
)
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import Scenario


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
    found, row = f"{gpu}, {checkpoint}, ep {ep}", moe_row(gpu, checkpoint, ep)
    backend = named or DEFAULT_MOE_BACKEND
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


def tensorrt_llm_rules(scenario: Scenario) -> Iterator[Problem]:
    """All that breaks a rule of the documents."""
    if scenario.engine.name == "tensorrt-llm":
        yield from _deepseek_is_as_documented(scenario)
        yield from _steps_and_experts_are_as_documented(scenario)
    yield from _drafts_are_measured_on_real_prompts(scenario)
