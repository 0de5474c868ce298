"""Rules from TensorRT-LLM's documents, each broken and each kept; the tables row by row."""

from dataclasses import replace
from typing import Any

from building import SCENARIO
from tables import each

from perfgate.engines.tensorrt_llm.document_rules import FEWEST_GPUS, MOE_MATRIX, is_deepseek
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.scenarios.rules.scenario_rules import broken_rules
from perfgate.scenarios.scenario import (
    EngineChoice,
    EngineSettings,
    Hardware,
    Model,
    MoeLoadBalancer,
    Mtp,
    Scenario,
    Workload,
)

FP4 = Model("nvidia/DeepSeek-R1-0528-FP4", "nvfp4")
FP8 = Model("deepseek-ai/DeepSeek-R1-0528", "fp8")
LOAD = Workload("trtllm-bench", "synthetic", 1024, 2048, (8,), requests=8)


def on(
    gpu: str, gpus: int, model: Model, engine: str = "tensorrt-llm", **settings: Any
) -> Scenario:
    """DeepSeek on that hardware; settings beyond tensor parallelism over all GPUs as given."""
    return replace(
        SCENARIO,
        hardware=Hardware(gpu, gpus),
        model=model,
        engine=EngineChoice(engine, EngineSettings(tp=gpus, **settings)),
        workload=LOAD,
        accuracy=(),
        gate=replace(SCENARIO.gate, metrics=("output_throughput",)),
        markers=(),
    )


def with_load(scenario: Scenario, **changes: Any) -> Scenario:
    return replace(scenario, workload=replace(LOAD, **changes))


def told(scenario: Scenario) -> list[str]:
    """What is wrong, each as ``path: problem, found, expected, hint``."""
    return [
        f"{'.'.join(map(str, p.path))}: {p.problem}, {p.found}, {p.expected}, {p.hint}"
        for p in broken_rules(scenario, TensorRTLLM.rules)
    ]


BALANCED = {"moe_load_balancer": MoeLoadBalancer(288, 1)}

# Scenarios that break a rule, and what is said.
MATRIX = "by the support matrix: "
BROKEN = [
    (on("B200", 8, FP8, ep=8),
     "engine.settings.moe_backend: the default MoE backend is not supported, CUTLASS for B200, "
     f"FP8, ep 8, {MATRIX}| B200/GB200 EP<=8 | FP8 | DEEPGEMM |, set moe_backend to DEEPGEMM"),
    (on("H200", 8, FP8, ep=8, moe_backend="DEEPGEMM"),
     "engine.settings.moe_backend: MoE backend not supported, DEEPGEMM for H200, FP8, ep 8, "
     f"{MATRIX}| H100/H200 | FP8 | CUTLASS |, set moe_backend to CUTLASS"),
    (on("GB200", 16, FP4, ep=16),
     "engine.settings.moe_backend: the default MoE backend is not supported, CUTLASS for GB200, "
     f"NVFP4, ep 16, {MATRIX}| GB200 NVL72 EP>8 | NVFP4 | WIDEEP |, set moe_backend to WIDEEP"),
    (on("GB200", 16, FP8, ep=16, moe_backend="WIDEEP"),
     "engine.settings.moe_backend: MoE backend not supported, WIDEEP for GB200, FP8, ep 16, "
     f"{MATRIX}| GB200 NVL72 EP>8 | FP8 | N/A (WIP) |, None"),
    (on("B200", 16, FP4, ep=16, moe_backend="WIDEEP"),
     "engine.settings.ep: no MoE backend for expert parallelism above 8 on this GPU, B200, NVFP4, "
     f"ep 16, {MATRIX}| GB200 NVL72 EP>8 | NVFP4 | WIDEEP |; | GB200 NVL72 EP>8 | FP8 | N/A (WIP) "
     "|, None"),
    (on("GB200", 8, FP4, ep=8, **BALANCED),
     "engine.settings.moe_load_balancer: online balancing of experts belongs to wide expert "
     "parallelism, moe_backend left out, moe_backend WIDEEP, None"),
    (on("H100", 8, FP8),
     "hardware.gpus: too few H100 for DeepSeek-V3 and R1 in FP8, 8, at least 16, None"),
    (on("B200", 2, FP4),
     "hardware.gpus: too few B200 for DeepSeek-V3 and R1 in NVFP4, 2, at least 4, None"),
    (on("H200", 8, FP4),
     "model.precision: H200 has no NVFP4, nvfp4, fp8 weights, or a GPU of B200, GB200, None"),
    (on("A100", 16, FP8),
     "hardware.gpu: Ampere (SM80, SM86) cannot run DeepSeek-V3 and R1, A100, one of B200, GB200, "
     "H100, H20, H200, None"),
    (on("H200", 8, FP8, mtp=Mtp(3)),
     "workload.dataset: MTP's acceptance rate depends on the prompts, synthetic, real, name a "
     "dataset of your own in PERFGATE_DATASETS, or set mtp.layers to 0"),
    (on("H200", 8, FP8, max_num_tokens=1023),
     "engine.settings.max_num_tokens: a step does not take a whole prompt, max_num_tokens 1023, "
     "isl 1024, at least 1024, or chunked_context, None"),
]  # fmt: skip


@each(("scenario", "words"), BROKEN)
def test_a_broken_rule_says_what_the_document_has(scenario: Scenario, words: str) -> None:
    assert told(scenario) == [words]


KEPT = {
    "FP4 on B200 by default": on("B200", 8, FP4, ep=8),
    "FP4 on B200 by TRTLLM": on("B200", 8, FP4, ep=2, moe_backend="TRTLLM"),
    "FP8 on B200 by DEEPGEMM": on("B200", 8, FP8, ep=8, moe_backend="DEEPGEMM"),
    "FP8 on H200 by default, wide": on("H200", 16, FP8, ep=16),
    "wide EP with its balancer": on("GB200", 16, FP4, ep=16, moe_backend="WIDEEP", **BALANCED),
    "FP4 on four": on("GB200", 4, FP4, ep=4),
    "FP8 on sixteen H100": on("H100", 16, FP8),
    "FP8 on eight H20": on("H20", 8, FP8),
    "no expert parallelism": on("B200", 8, FP4),
    "MTP off": on("H200", 8, FP8, mtp=Mtp(0)),
    "MTP on real prompts": with_load(on("H200", 8, FP8, mtp=Mtp(3)), dataset="real"),
    "MTP served, as the recipe does": with_load(
        on("H200", 8, FP8, mtp=Mtp(1)), client="benchmark_serving"
    ),
    "a step of exactly a prompt": on("H200", 8, FP8, max_num_tokens=1024),
    "chunks": on("H200", 8, FP8, max_num_tokens=512, chunked_context=True),
    "prompts of unknown length": with_load(
        on("H200", 8, FP8, max_num_tokens=512), dataset="sharegpt", isl=None, osl=None
    ),
    "another engine": on("H100", 8, FP8, engine="vllm", max_num_tokens=512, **BALANCED),
    "another model": on("A100", 1, Model("meta-llama/Llama-3.1-8B", "fp8")),
    "a precision the tables do not have": on("H200", 4, Model(FP8.name, "int4")),
    "no GPU": replace(SCENARIO, model=FP8),
}


@each("name", KEPT)
def test_what_the_documents_allow_is_let_through(name: str) -> None:
    assert told(KEPT[name]) == []


# The tables. --------------------------------------------------------------------------------


def test_the_matrix_is_the_documents() -> None:
    assert [str(row) for row in MOE_MATRIX] == [
        "| H100/H200 | FP8 | CUTLASS |",
        "| B200/GB200 EP<=8 | NVFP4 | CUTLASS, TRTLLM |",
        "| B200/GB200 EP<=8 | FP8 | DEEPGEMM |",
        "| GB200 NVL72 EP>8 | NVFP4 | WIDEEP |",
        "| GB200 NVL72 EP>8 | FP8 | N/A (WIP) |",
    ]


def test_the_requirements_are_the_documents() -> None:
    """All but FP8 on Blackwell, which the newer recipe serves on eight."""
    assert FEWEST_GPUS == {
        "FP8": {"H100": 16, "H20": 8, "H200": 8, "B200": 8, "GB200": 8},
        "NVFP4": {"B200": 4, "GB200": 4},
    }


MODELS = {
    **dict.fromkeys(["deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3-0324"], True),
    **dict.fromkeys(["DeepSeek-R1", "nvidia/DeepSeek-R1-0528-FP4"], True),
    **dict.fromkeys(["deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "DeepSeek-V3-Lite"], False),
    **dict.fromkeys(["deepseek-ai/DeepSeek-V2", "deepseek-ai/DeepSeek-V3.1"], False),
    "my/NotDeepSeek-R1": False,
}


@each(("model", "is_told"), MODELS.items())
def test_the_tables_speak_of_the_671b_models_alone(model: str, is_told: bool) -> None:
    assert is_deepseek(model) == is_told
