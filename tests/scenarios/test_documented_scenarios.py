"""The documented scenarios: every number of the documents, written down here a second time.

But for settings that commands of the documents hold: those of documented_commands.
"""

from typing import Any

from documented_commands import COMMANDS
from documented_set import BLOG, EXAMPLE, GB200_RECIPE, LAB, RECIPE, documented_suite
from tables import each

from perfgate.scenarios.scenario import (
    AccuracyTask,
    Container,
    DocumentedAnswer,
    Launch,
    Listen,
    Scenario,
    Smoke,
    scenario_to_plain,
)

SCENARIOS = {scenario.id: scenario for scenario in documented_suite().scenarios}

POWERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384]
FP16KV = {
    "tp": 8, "ep": 8, "attention_dp": True, "max_batch_size": 384, "max_num_tokens": 1536,
    "kv_cache_fraction": 0.85, "iteration_log": True,
    "cuda_graphs": {"padding": True, "batch_sizes": POWERS},
}  # fmt: skip
H200_MAX = {
    "tp": 8, "ep": 8, "attention_dp": True, "max_batch_size": 128, "max_num_tokens": 1151,
    "kv_cache_fraction": 0.8, "cuda_graphs": {"batch_sizes": [128]},
}  # fmt: skip
SERVE = {
    "backend": "pytorch", "tp": 8, "ep": 8, "attention_dp": True, "max_batch_size": 1024,
    "max_num_tokens": 3200, "max_seq_len": 2048, "kv_cache_fraction": 0.8, "kv_cache_dtype": "fp8",
    "trust_remote_code": True, "stream_interval": 10, "mtp": {"layers": 1},
    "cuda_graphs": {"padding": True, "max_batch_size": 128},
}  # fmt: skip
V3 = {
    "backend": "pytorch", "attention_dp": True, "max_batch_size": 161, "max_num_tokens": 1160,
    "kv_cache_fraction": 0.95, "iteration_log": True, "overlap_scheduler": True,
    "cuda_graphs": {"padding": True, "batch_sizes": POWERS},
}  # fmt: skip
V3_SERVE = {**V3, "tp": 8, "ep": 8}
V3_KV = {
    **V3_SERVE, "pp": 1, "max_batch_size": 384, "max_num_tokens": 3200, "kv_cache_fraction": 0.8
}  # fmt: skip
B200_KV = {name: value for name, value in SERVE.items() if name not in {
    "kv_cache_dtype", "mtp", "stream_interval"
}}  # fmt: skip
GB200 = {
    "backend": "pytorch", "tp": 4, "pp": 1, "ep": 4, "attention_dp": True, "max_batch_size": 384,
    "kv_cache_fraction": 0.85, "kv_cache_dtype": "fp8", "stream_interval": 4,
    "iteration_log": True,
    "cuda_graphs": {"padding": True, "batch_sizes": [*POWERS[:-1], 512, 816, 1024, 2048, 3600]},
}  # fmt: skip

# Lengths → requests, all at once.
LENGTHS = {"32000-100": 100, "4000-200": 500, "2000-100": 500, "128-4": 1000}
SETTINGS: dict[str, dict[str, Any]] = {
    "b200-r1-fp4-chunked-context-off": {**FP16KV, "chunked_context": False},
    "b200-r1-fp4-chunked-context-on": {**FP16KV, "chunked_context": True},
    "b200-r1-fp4-chunked-context-small": {**FP16KV, "chunked_context": True, "max_num_tokens": 768},
    "h200-r1-fp8-chunked-context-off": {**H200_MAX, "chunked_context": False},
    "h200-r1-fp8-chunked-context-on": {**H200_MAX, "chunked_context": True},
    "h200-r1-fp8-chunked-context-small": {
        **H200_MAX, "chunked_context": True, "max_num_tokens": 576
    },
    "b200-r1-fp4-explore": FP16KV,
    "h200-r1-fp8-explore": H200_MAX,
    "b200-r1-0528-fp4-serve-no-padding": {
        **SERVE, "cuda_graphs": {"padding": False, "max_batch_size": 128}
    },
    "b200-r1-0528-fp4-serve-graphs-1024": {
        **SERVE, "cuda_graphs": {"padding": True, "max_batch_size": 1024}
    },
    "b200-r1-0528-fp4-gsm8k-bos": SERVE,
    "b200-r1-fp4-kv-fp16": B200_KV,
    "b200-r1-fp4-kv-fp8": {**B200_KV, "kv_cache_dtype": "fp8"},
    "h200-r1-0528-fp8-serve-8k1k": {**SERVE, "max_num_tokens": 9216, "max_seq_len": 9216},
    "h200-v3-fp8-gpqa-eval": {
        "tp": 8, "backend": "pytorch", "max_batch_size": 32, "max_num_tokens": 4096,
        "kv_cache_fraction": 0.95, "moe_backend": "CUTLASS", "overlap_scheduler": True,
        "chunked_context": False, "pdl": False, "cuda_graphs": {},
    },
    "h200-v3-fp8-deepgemm-off": {**V3_SERVE, "kv_cache_fraction": 0.9},
    "h200-v3-fp8-deepgemm-nvcc": {**V3_SERVE, "kv_cache_fraction": 0.9},
    "h200-v3-fp8-2node-deepgemm-off": {**V3, "tp": 16, "ep": 16, "kv_cache_fraction": 0.9},
    "h200-v3-fp8-kv-bf16": V3_KV,
    "h200-v3-fp8-kv-fp8": {**V3_KV, "kv_cache_dtype": "fp8"},
    "h200-v3-fp8-kv-fp8-checkpoint": V3_KV,
    **{
        f"gb200-r1-fp4-{use}-no-streaming": {**GB200, **changes}
        for use, changes in {
            "reasoning": {"max_num_tokens": 6000},
            "chat": {"max_num_tokens": 7000, "kv_cache_fraction": 0.80},
            "summarization": {"max_num_tokens": 9000},
            "generation": {"max_num_tokens": 3000},
        }.items()
    },
}  # fmt: skip

SWEEP = (32, 64, 128, 256, 512, 1024, 2048, 4096)
# Dataset, ISL, OSL, concurrency → requests, streamed, capped.
Load = tuple[str, int | None, int | None, dict[int, int], bool, bool]
SERVED: Load = ("synthetic", 1024, 1024, {c: 5 * c for c in SWEEP}, True, True)
V3_KV_LOAD: Load = ("synthetic", 1024, 2048, {3072: 6144}, True, True)
DEEPGEMM: Load = ("synthetic", 1000, 1000, {1024: 5120}, True, True)
TWO_NODE_DEEPGEMM: Load = ("synthetic", 1000, 1000, {4096: 20480}, True, True)
LOADS: dict[str, Load] = {
    "b200-r1-fp4-min-latency": ("real", 1024, 2048, {1: 10}, False, True),
    "b200-r1-0528-fp4-fp8kv-max-throughput": (
        "synthetic", 1024, 2048, {7168: 114_688}, False, True
    ),
    "b200-r1-fp4-fp16kv-max-throughput": ("synthetic", 1024, 2048, {3072: 49_152}, False, True),
    "h200-r1-fp8-min-latency": ("real", 1024, 2048, {1: 10}, False, True),
    "h200-r1-fp8-max-throughput": ("synthetic", 1024, 2048, {1024: 5120}, False, True),
    **{
        f"{model}-chunked-context-{kind}": ("synthetic", 1024, 2048, {c: 5 * c}, True, True)
        for model, c in (("b200-r1-fp4", 3072), ("h200-r1-fp8", 1024))
        for kind in ("off", "on", "small")
    },
    "b200-r1-fp4-explore": ("synthetic", 1024, 1024, {3072: 15_360}, False, True),
    "h200-r1-fp8-explore": ("synthetic", 1024, 1024, {1024: 5120}, False, True),
    "b200-r1-0528-fp4-serve": SERVED,
    "b200-r1-0528-fp4-serve-no-padding": (
        *SERVED[:3], {c: 5 * c for c in SWEEP if c <= 512}, True, True
    ),
    "b200-r1-0528-fp4-serve-graphs-1024": (
        *SERVED[:3], {512: 2560, 1024: 5120, 2048: 10_240}, True, True
    ),
    "h200-v3-fp8-kv-bf16": V3_KV_LOAD,
    "h200-v3-fp8-kv-fp8": V3_KV_LOAD,
    "b200-r1-0528-fp8-serve": SERVED,
    "h200-r1-0528-fp8-serve": SERVED,
    "h200-r1-0528-fp8-serve-8k1k": (SERVED[0], 8192, *SERVED[2:]),
    "gb200-r1-0528-fp4-wide-ep-serve": SERVED,
    "h200-v3-fp8-serve": ("synthetic", 1000, 1000, {32: 160, 128: 640, 512: 2560}, True, True),
    "h200-v3-fp8-2node-mpirun": ("synthetic", 1000, 1000, {4096: 16_384}, True, True),
    "h200-v3-fp8-2node-slurm": ("synthetic", 1000, 1000, {4096: 4096}, False, False),
    "gb200-r1-fp4-2node-slurm": ("synthetic", 1024, 2048, {3072: 49_152}, False, True),
    "h200-v3-fp8-deepgemm-on": DEEPGEMM,
    "h200-v3-fp8-deepgemm-off": DEEPGEMM,
    "h200-v3-fp8-deepgemm-nvcc": DEEPGEMM,
    "h200-v3-fp8-2node-deepgemm-on": TWO_NODE_DEEPGEMM,
    "h200-v3-fp8-2node-deepgemm-off": TWO_NODE_DEEPGEMM,
    **{
        f"gb200-r1-fp4-{use}-{'' if streaming else 'no-'}streaming": (
            "synthetic", isl, osl, {7680: 7680}, streaming, False
        )
        for use, isl, osl in [
            ("reasoning", 1000, 1000), ("chat", 128, 128), ("summarization", 8000, 512),
            ("generation", 512, 8000),
        ]
        for streaming in (True, False)
    },
    **{
        name: ("sharegpt", None, None, {1000: 1000}, True, False)
        for name in SCENARIOS if name.endswith("-sharegpt")
    },
    "h200-r1-0528-lab-vllm-sharegpt-c4": ("sharegpt", None, None, {4: 100}, True, True),
    **{
        f"h200-r1-0528-lab-{engine}-random-{lengths}": (
            "synthetic", *map(int, lengths.split("-")), {requests: requests}, True, False
        )
        for lengths, requests in LENGTHS.items() for engine in ("vllm", "sglang-dp", "sglang-dp8")
    },
}  # fmt: skip


def told_settings(scenario: Scenario) -> dict[str, Any]:
    """What a scenario sets, without what is so by default."""
    plain: Any = scenario_to_plain(scenario)["engine"]
    told = {**plain["settings"]}
    if "cuda_graphs" in told:
        graphs = {k: v for k, v in told["cuda_graphs"].items() if v != []}
        assert graphs.pop("enabled") is True
        told["cuda_graphs"] = graphs
    return told


def test_every_documented_scenario_is_there_and_no_other() -> None:
    by_command = {name for one in COMMANDS if one.words is not None for name in one.runs_in}
    assert {name for name in SCENARIOS if "-dp8-" not in name} == {*SETTINGS, *by_command}
    assert not by_command & set(SETTINGS)
    assert set(LOADS) == {name for name, s in SCENARIOS.items() if s.workload is not None}


@each("name", SETTINGS)
def test_the_settings_are_the_documents(name: str) -> None:
    assert told_settings(SCENARIOS[name]) == SETTINGS[name]


@each("name", LOADS)
def test_the_load_is_the_documents(name: str) -> None:
    dataset, isl, osl, points, streaming, capped = LOADS[name]
    load = SCENARIOS[name].workload
    assert load is not None
    assert (load.dataset, load.isl, load.osl) == (dataset, isl, osl)
    assert {p.concurrency: p.requests for p in SCENARIOS[name].points()} == points
    assert (load.streaming, load.capped) == (streaming, capped)


PLACES = {
    "b200-r1-": ("8xB200", None),
    "h200-r1-": ("8xH200", None),
    "h200-v3-": ("8xH200", "0.19.0"),
    "h200-v3-fp8-2node-": ("2x8xH200", "0.19.0"),
    "gb200-r1-fp4-": ("4xGB200", "1.0.0rc1"),
    "gb200-r1-fp4-2node-slurm": ("2x4xGB200", "0.19.0"),
    "gb200-r1-0528-fp4-wide-ep-serve": ("4x4xGB200", "1.0.0rc6"),
}
VERSIONS = {
    BLOG: "1.0.0",
    RECIPE: "1.0.0rc6",
    EXAMPLE: "0.19.0",
    GB200_RECIPE: "1.0.0rc1",
    LAB: "1.0.0",
}
OF_OTHER_ENGINES = {"vllm": "0.11.0", "sglang": "0.5.3"}
# The program of the document's release is gone: the first one that has the program it gave way to.
OTHER_VERSIONS = {"h200-v3-fp8-gpqa-eval": "0.20.0"}


@each("name", SCENARIOS)
def test_hardware_model_and_source_follow_from_the_name(name: str) -> None:
    scenario = SCENARIOS[name]
    prefix = max((p for p in PLACES if name.startswith(p)), key=len)
    label, version = PLACES[prefix]
    assert scenario.hardware.label == label
    documented = VERSIONS[scenario.source.document]
    documented = OF_OTHER_ENGINES.get(scenario.engine.name, documented)
    assert scenario.source.engine_version == OTHER_VERSIONS.get(name, documented)
    assert version in (None, documented)
    if "-lab-" in name:  # named by the engine: there is one checkpoint
        assert scenario.model.name == "deepseek-ai/DeepSeek-R1-0528"
        assert scenario.model.precision == "fp8"
        return
    assert (
        scenario.model.precision
        == {"fp4": "nvfp4", "fp8": "fp8"}[
            next(part for part in name.split("-") if part in ("fp4", "fp8"))
        ]
    )
    r1 = "DeepSeek-R1-0528" if "-0528-" in name else "DeepSeek-R1"
    base = "DeepSeek-V3" if "-v3-" in name else r1
    public = f"nvidia/{base}-FP4" if scenario.model.precision == "nvfp4" else f"deepseek-ai/{base}"
    if name == "gb200-r1-fp4-2node-slurm":  # named with a folder of other weights
        public = f"deepseek-ai/{base}"
        assert scenario.model.folder == f"{base}-FP4"
        assert scenario.model.quantization == {"quant_algo": "NVFP4"}
    assert scenario.model.name == public


def test_what_takes_several_nodes_says_how_they_are_reached() -> None:
    launched = {name: s.launch for name, s in SCENARIOS.items() if s.launch is not None}
    several = {name for name, s in SCENARIOS.items() if s.hardware.nodes > 1}
    recipe = {s.id for s in SCENARIOS.values() if s.source.document == GB200_RECIPE}
    assert set(launched) == several | recipe
    assert {name for name, s in SCENARIOS.items() if "multinode" in s.markers} == several
    log = "bench_log_2node_ep8_tp16_attndp_on_sl1000"
    assert launched["h200-v3-fp8-2node-mpirun"] == Launch("mpirun", log, 2233)
    assert launched["h200-v3-fp8-2node-slurm"] == Launch("srun", "benchmark_2node.log")
    job = Launch("sbatch", "bench_%j_%t.srun.out", time_limit="02:00:00")
    assert launched["gb200-r1-fp4-2node-slurm"] == job
    for switch, value in (("on", "1"), ("off", "0")):
        two_node = SCENARIOS[f"h200-v3-fp8-2node-deepgemm-{switch}"]
        assert two_node.environment == {"TRTLLM_DG_ENABLED": value}
        assert launched[two_node.id].pass_on == {
            "TRTLLM_DG_ENABLED": value,
            "CUDA_HOME": "/usr/local/cuda",
        }
        assert SCENARIOS[f"h200-v3-fp8-deepgemm-{switch}"].environment == two_node.environment
    assert SCENARIOS["h200-v3-fp8-deepgemm-nvcc"].environment == {
        "TRTLLM_DG_ENABLED": "1",
        "TRTLLM_DG_JIT_USE_NVCC": "1",
    }


def test_environments_beyond_deepgemms_switch() -> None:
    told = {
        name: s.environment
        for name, s in SCENARIOS.items()
        if s.environment and "deepgemm" not in name
    }
    nvcc = {"TRTLLM_DG_JIT_USE_NVCC": "1"}
    assert told == {
        "h200-r1-fp8-max-throughput": nvcc,
        "h200-r1-fp8-chunked-context-off": nvcc,
        "h200-r1-fp8-chunked-context-on": nvcc,
        "h200-r1-fp8-chunked-context-small": nvcc,
        "h200-r1-fp8-explore": nvcc,
        "h200-r1-0528-fp8-serve-8k1k": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:8192"},
    }


NEW_YORK = (
    "/ by Megan Stine ; illustrated by John Hinderliter. Book | Gross",
    "New York is a state located in the northeastern United States. It is bordered by",
)


def test_the_recipes_container_and_first_request() -> None:
    for scenario in SCENARIOS.values():
        if scenario.source.document == RECIPE:
            image = "nvcr.io/nvidia/tensorrt-llm/release:1.0.0rc6"
            assert scenario.container == Container(image, "tensorrt_llm")
            assert scenario.listen == Listen("0.0.0.0", 8000)  # noqa: S104
            # What is printed is the answer of this one model.
            printed = scenario.model.name == "deepseek-ai/DeepSeek-R1-0528"
            prompt, texts = "Where is New York?", NEW_YORK if printed else ()
            answer = DocumentedAnswer(prompt, (), texts, "length", 6, 16)
            assert scenario.smoke == Smoke("completion", (prompt,), 16, (answer,))


@each(
    "name",
    [name for name, s in SCENARIOS.items() if any(task.task == "gsm8k" for task in s.accuracy)],
)
def test_gsm8k_is_asked_as_the_recipe_asks_it(name: str) -> None:
    bos = name == "b200-r1-0528-fp4-gsm8k-bos"  # the other side of the claim that it costs
    asked = {"concurrency": 32, "batch_size": 256, "temperature": 0, "add_special_tokens": bos}
    assert SCENARIOS[name].accuracy == (AccuracyTask("lm_eval", "gsm8k", 5, **asked),)
    assert {metric for metric in SCENARIOS[name].gate.metrics if "gsm8k" in metric} == {
        "accuracy:gsm8k:exact_match:strict-match",
        "accuracy:gsm8k:exact_match:flexible-extract",
    }


def test_gpqa_is_asked_as_the_example_asks_it() -> None:
    asked = AccuracyTask("trtllm-gpqa", "gpqa_diamond", 0, concurrency=32, batch_size=32)
    assert SCENARIOS["h200-v3-fp8-gpqa"].accuracy == (asked,)


def test_the_quick_starts_prompts() -> None:
    president, capital = "The president of the United States is", "The capital of France is"
    prompts = ("Hello, my name is", president, capital, "The future of AI is")
    answers = (DocumentedAnswer(capital, ("Paris",)),)
    for name in ("quickstart", "mtp-0", "mtp-1", "mtp-2", "mtp-3"):
        scenario = SCENARIOS[f"h200-v3-fp8-{name}"]
        assert scenario.smoke == Smoke("trtllm-quickstart", prompts, answers=answers)
        assert scenario.gate.metrics == ()


def test_the_checkpoints_that_are_checked() -> None:
    fp8 = SCENARIOS["h200-v3-fp8-kv-fp8-checkpoint"].model
    assert fp8.folder == "DeepSeek-V3-FP8-KV"
    assert fp8.quantization == {"quant_algo": "FP8_BLOCK_SCALES", "kv_cache_quant_algo": "FP8"}
    fp4 = SCENARIOS["b200-r1-0528-fp4-fp8kv-max-throughput"].model
    assert fp4.quantization == {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}
    for fp16 in ("b200-r1-fp4-fp16kv-max-throughput", "b200-r1-fp4-kv-fp16"):
        asked = SCENARIOS[fp16].model.quantization
        assert asked == {"quant_algo": "NVFP4", "kv_cache_quant_algo": "none"}
    weighed = {name: s.model.weights for name, s in SCENARIOS.items() if s.model.weights}
    assert set(weighed) == {
        name
        for name, s in SCENARIOS.items()
        if (s.model.folder or s.model.name.rpartition("/")[2]) == "DeepSeek-R1-FP4"
    }
    assert {(weights.shards, weights.gib) for weights in weighed.values()} == {(80, 395)}


def test_a_documented_duration_fits_its_limit_with_the_loading() -> None:
    for name, documented_s in {
        "b200-r1-0528-fp4-fp8kv-max-throughput": 5443.8,
        "b200-r1-fp4-fp16kv-max-throughput": 2766.7,
        "h200-r1-fp8-max-throughput": 912.7,
    }.items():
        limits = SCENARIOS[name].limits
        assert limits.total_s >= 45 * 60 + 1.3 * documented_s
