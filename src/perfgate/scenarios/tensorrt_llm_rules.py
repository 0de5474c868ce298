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
from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.scenario import Scenario

_MOE_BACKEND: Keys = ("engine", "settings", "moe_backend")


def _is_deepseek_on_tensorrt_llm(scenario: Scenario) -> bool:
    return (
        scenario.engine.name == "tensorrt-llm"
        and scenario.hardware.gpus > 0
        and is_deepseek(scenario.model.name)
    )


def _moe_backend_is_supported(scenario: Scenario) -> Iterator[Problem]:
    """The support matrix of the quick start recipe, with its default."""
    checkpoint = CHECKPOINTS.get(scenario.model.precision.lower())
    if checkpoint is None or not _is_deepseek_on_tensorrt_llm(scenario):
        return
    gpu, ep = scenario.hardware.gpu, scenario.engine.settings.ep or 1
    if scenario.engine.settings.tp % ep:
        return  # no such parallelism, which another rule tells
    found = f"{gpu}, {checkpoint}, ep {ep}"
    row = moe_row(gpu, checkpoint, ep)
    if row is None:
        if ep > WIDE_FROM_EP:  # else the GPU itself is wrong, which another rule tells
            rows = "; ".join(str(row) for row in MOE_MATRIX if row.wide)
            yield Problem(
                ("engine", "settings", "ep"),
                f"no MoE backend for expert parallelism above {WIDE_FROM_EP} on this GPU",
                found,
                f"by the support matrix: {rows}",
            )
        return
    named = scenario.engine.settings.moe_backend
    backend = named or DEFAULT_MOE_BACKEND
    if backend in row.backends:
        return
    problem = "MoE backend not supported" if named else "the default MoE backend is not supported"
    hint = f"set moe_backend to {' or '.join(row.backends)}" if row.backends else None
    yield Problem(
        _MOE_BACKEND,
        problem,
        f"{backend} for {found}",
        f"by the support matrix: {row}",
        hint,
    )


def _experts_are_balanced_where_they_are_wide(scenario: Scenario) -> Iterator[Problem]:
    settings = scenario.engine.settings
    if scenario.engine.name != "tensorrt-llm" or settings.moe_load_balancer is None:
        return
    if settings.moe_backend != WIDE_MOE_BACKEND:
        yield Problem(
            ("engine", "settings", "moe_load_balancer"),
            "online balancing of experts belongs to wide expert parallelism",
            f"moe_backend {settings.moe_backend or 'left out'}",
            f"moe_backend {WIDE_MOE_BACKEND}",
        )


def _gpus_hold_the_model(scenario: Scenario) -> Iterator[Problem]:
    """The hardware requirements of the DeepSeek-V3 example."""
    if not _is_deepseek_on_tensorrt_llm(scenario):
        return
    hardware = scenario.hardware
    if hardware.gpu in AMPERE:
        yield Problem(
            ("hardware", "gpu"),
            "Ampere (SM80, SM86) cannot run DeepSeek-V3 and R1",
            hardware.gpu,
            "one of " + ", ".join(sorted({gpu for gpu, _ in FEWEST_GPUS})),
        )
        return
    checkpoint = CHECKPOINTS.get(scenario.model.precision.lower(), "")
    if (hardware.gpu, checkpoint) not in FEWEST_GPUS:
        return
    fewest = FEWEST_GPUS[hardware.gpu, checkpoint]
    if fewest is None:
        able = [gpu for (gpu, other), least in FEWEST_GPUS.items() if other == checkpoint and least]
        yield Problem(
            ("model", "precision"),
            f"{hardware.gpu} has no {checkpoint}",
            scenario.model.precision,
            f"fp8 weights, or a GPU of {', '.join(able)}",
        )
    elif hardware.gpus < fewest:
        yield Problem(
            ("hardware", "gpus"),
            f"too few {hardware.gpu} for DeepSeek-V3 and R1 in {checkpoint}",
            hardware.gpus,
            f"at least {fewest}",
        )


def _drafts_are_measured_on_real_prompts(scenario: Scenario) -> Iterator[Problem]:
    """MTP's acceptance rate depends on the prompts (best-practice blog, "Dataset preparation").

    Only offline: the quick start recipe itself serves with MTP and loads the server with random
    prompts.
    """
    load, mtp = scenario.workload, scenario.engine.settings.mtp
    if load is None or mtp is None or mtp.layers == 0 or load.client != "trtllm-bench":
        return
    if load.dataset != "real":
        yield Problem(
            ("workload", "dataset"),
            "MTP's acceptance rate depends on the prompts",
            load.dataset,
            "real",
            "name a dataset of your own in PERFGATE_DATASETS, or set mtp.layers to 0",
        )


def _a_step_takes_a_whole_prompt(scenario: Scenario) -> Iterator[Problem]:
    """Best-practice blog, "WIP: Enable more features by default": max_num_tokens covers the ISL."""
    load, settings = scenario.workload, scenario.engine.settings
    if scenario.engine.name != "tensorrt-llm" or load is None or settings.chunked_context:
        return
    tokens = settings.max_num_tokens
    if tokens is not None and load.isl is not None and tokens < load.isl:
        yield Problem(
            ("engine", "settings", "max_num_tokens"),
            "a step does not take a whole prompt",
            f"max_num_tokens {tokens}, isl {load.isl}",
            f"at least {load.isl}, or chunked_context",
        )


TENSORRT_LLM_RULES = (
    _moe_backend_is_supported,
    _experts_are_balanced_where_they_are_wide,
    _gpus_hold_the_model,
    _drafts_are_measured_on_real_prompts,
    _a_step_takes_a_whole_prompt,
)
