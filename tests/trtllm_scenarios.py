"""The documents' commands, typed off by hand, each with the suite's scenario that renders it.

What they ask beyond a command is held by test_documented_scenarios.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from documented_set import documented_suite

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.tensorrt_llm import bench, examples, serve
from perfgate.scenarios.scenario import (
    EngineChoice,
    EngineSettings,
    GatePolicy,
    Hardware,
    Limits,
    Model,
    Scenario,
    Source,
    Workload,
)

ON_PAPER = Locations(on_paper=True)
SERVED = Endpoint("0.0.0.0", 8000, "model")  # noqa: S104
DATASET = "dataset.txt"
SUBCOMMANDS = ("throughput", "prepare-dataset", "token-norm-dist")
UNSET = EngineSettings()


def build(version: str) -> EngineBuild:
    return EngineBuild("tensorrt-llm", version, version)


def scenario(
    name: str = "case",
    release: str | None = "1.0.0",
    model: str = "deepseek-ai/DeepSeek-R1",
    *,
    settings: EngineSettings = UNSET,
    workload: Workload | None = None,
    environment: dict[str, str] | None = None,
    **more: Any,
) -> Scenario:
    """A valid scenario with what a test is about."""
    return Scenario(
        id=name,
        title=name,
        source=Source("document.md", "section", engine_version=release),
        hardware=Hardware("B200", 8),
        model=Model(model, "fp8"),
        engine=EngineChoice("tensorrt-llm", settings),
        workload=workload,
        accuracy=more.pop("accuracy", ()),
        gate=GatePolicy(("output_throughput",)),
        limits=Limits(60.0, 60.0, 60.0),
        environment=environment or {},
        **more,
    )


def offline(concurrency: int = 1024, requests: int = 1024, **more: Any) -> Workload:
    """A load of trtllm-bench; its own number of warm-up requests unless told."""
    values: dict[str, Any] = {
        "dataset": "synthetic",
        "isl": 1024,
        "osl": 2048,
        "warmup_requests": 2,
        "streaming": False,
        **more,
    }
    return Workload(client="trtllm-bench", concurrency=(concurrency,), requests=requests, **values)


def served(**more: Any) -> Workload:
    values: dict[str, Any] = {"isl": 1024, "osl": 1024, **more}
    return Workload(
        client="benchmark_serving",
        dataset="synthetic",
        concurrency=(32,),
        requests_per_concurrency=5,
        **values,
    )


def options(words: tuple[str, ...]) -> dict[str, str | None]:
    """Option → value of a command line; None for a flag. Positions and order do not matter."""
    found: dict[str, str | None] = {}
    last = None
    for word in (word for word in words if word not in SUBCOMMANDS):
        if word.startswith("--"):
            found[last := word] = None
        elif last is not None:
            found[last] = word if found[last] is None else f"{found[last]} {word}"
    return found


def render(case: Scenario, version: str, locations: Locations = ON_PAPER) -> Command:
    """The measuring or serving command of the case at a release."""
    if case.smoke is not None:
        return examples.quickstart(case, build(version), case.smoke, locations)
    if case.accuracy and case.workload is None:
        return examples.gpqa(case, build(version), case.accuracy[0], "gpqa_diamond.csv", locations)
    if case.workload is not None and case.workload.client == "trtllm-bench":
        return bench.throughput(case, build(version), case.points()[0], DATASET, locations)
    return serve.serve(case, build(version), SERVED, locations)


@dataclass(frozen=True)
class Documented:
    """One documented command.

    Attributes:
        scenario: the scenario that it belongs to, without what is not this command's.
        options: its options as the document shows them.
        yaml: its YAML file.
        env: its environment.
        beyond: options that are rendered and not in the document, each with the reason.
    """

    scenario: Scenario
    options: dict[str, str | None]
    yaml: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    beyond: dict[str, str] = field(default_factory=dict)


YAML_FILE = "./extra-llm-api-config.yml"
SUITE = {one.id: one for one in documented_suite().scenarios}
REPORT = {"--report_json": "the results are read from it"}
COUNTED = {"--num_requests": "the whole dataset, which the document does not count"}
LISTENING = dict.fromkeys(("--host", "--port"), "the run chooses where the server listens")
UNCAPPED = {"--concurrency": "-1 is the default"}
V3 = "deepseek-ai/DeepSeek-V3"
GRAPHS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384]
V3_YAML = {
    "pytorch_backend_config": {
        "use_cuda_graph": True,
        "cuda_graph_padding_enabled": True,
        "cuda_graph_batch_sizes": GRAPHS,
        "print_iter_log": True,
        "enable_overlap_scheduler": True,
    },
    "enable_attention_dp": True,
}
GB200_YAML = {  # config.yml of its setup.sh
    "kv_cache_dtype": "fp8",
    "cuda_graph_padding_enabled": True,
    "print_iter_log": True,
    "stream_interval": 4,
    "enable_attention_dp": True,
    "use_cuda_graph": True,
    "cuda_graph_batch_sizes": [*GRAPHS[:-1], 512, 816, 1024, 2048, 3600],
}
R1_SERVE_YAML = {
    "enable_attention_dp": True,
    "cuda_graph_config": {"enable_padding": True, "max_batch_size": 128},
    "kv_cache_config": {"dtype": "fp8"},
    "stream_interval": 10,
    "speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 1},
}
R1_SERVED = (
    "--host 0.0.0.0 --port 8000 --backend pytorch --max_batch_size 1024 --max_num_tokens 3200 "
    "--max_seq_len 2048 --kv_cache_free_gpu_memory_fraction 0.8 --trust_remote_code"
)
V3_BENCH = f"--model {V3} --backend pytorch --max_batch_size 161 --max_num_tokens 1160"


def of(
    name: str,
    command: str,
    yaml: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    beyond: dict[str, str] | None = None,
) -> Documented:
    """The suite's scenario, and the options of the document's command."""
    one = SUITE[name]
    if one.workload is not None:
        one = replace(one, smoke=None, accuracy=())
    file = f" --extra_llm_api_options {YAML_FILE}" if yaml else ""
    if one.workload is not None and one.workload.client == "trtllm-bench":
        file += f" --dataset {DATASET}"
    return Documented(
        one, options(tuple((command + file).split())), yaml or {}, env or {}, beyond or {}
    )


def _gb200(use: str, tokens: int, fraction: float) -> Documented:
    """A row of the GB200 recipe's table of use cases, in the command of its launch.sh."""
    command = (
        "--model nvidia/DeepSeek-R1-FP4 --num_requests 7680 --concurrency -1 --warmup 0 "
        f"--backend pytorch --streaming --max_batch_size 384 --max_num_tokens {tokens} "
        f"--tp 4 --ep 4 --pp 1 --kv_cache_free_gpu_mem_fraction {fraction}"
    )
    name = f"gb200-r1-fp4-{use}-streaming"
    return of(name, command, GB200_YAML, beyond=REPORT)


def _quickstart(layers: int) -> Documented:
    command = f"--model_dir {V3} --spec_decode_algo MTP --spec_decode_nextn {layers}"
    beyond = {"--tp_size": "the model does not fit on one GPU"}
    return of(f"h200-v3-fp8-mtp-{layers}", command, beyond=beyond)


CASES = {
    # 000, "B200 min-latency"
    "b200-min-latency": of(
        "b200-r1-fp4-min-latency",
        "--model nvidia/DeepSeek-R1-FP4 --num_requests 10 --concurrency 1 --max_batch_size 1 "
        "--tp 8 --ep 2",
        {
            "moe_config": {"backend": "TRTLLM"},
            "speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 3},
        },
        {"TRTLLM_ENABLE_PDL": "1"},
        beyond=REPORT,
    ),
    # 000, "B200 max-throughput for R1-0528 with FP8 KV cache". The document's top-level
    # `kv_cache_dtype` is that of its commit; 1.0.0 reads kv_cache_config.dtype only (#5752), a
    # mapping that would take the command line's 0.93 away, and no block reuse.
    "b200-fp8-kv": of(
        "b200-r1-0528-fp4-fp8kv-max-throughput",
        "--model nvidia/DeepSeek-R1-0528-FP4 --tp 8 --ep 8 --max_batch_size 896 "
        "--max_num_tokens 2048 --kv_cache_free_gpu_mem_fraction 0.93 --concurrency 7168 "
        "--num_requests 114688",
        {
            "cuda_graph_config": {
                "enable_padding": True,
                "batch_sizes": [896, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1],
            },
            "print_iter_log": True,
            "kv_cache_config": {
                "dtype": "fp8",
                "free_gpu_memory_fraction": 0.93,
                "enable_block_reuse": False,
            },
            "enable_attention_dp": True,
        },
        beyond=REPORT,
    ),
    # 000, "B200 max-throughput for R1 with FP16 KV cache"
    "b200-fp16-kv": of(
        "b200-r1-fp4-fp16kv-max-throughput",
        "--model nvidia/DeepSeek-R1-FP4 --tp 8 --ep 8 --warmup 0 --max_batch_size 384 "
        "--max_num_tokens 1536 --num_requests 49152 --concurrency 3072 "
        "--kv_cache_free_gpu_mem_fraction 0.85",
        {
            "cuda_graph_config": {"enable_padding": True, "batch_sizes": GRAPHS},
            "print_iter_log": True,
            "enable_attention_dp": True,
        },
        beyond=REPORT,
    ),
    # 000, "H200 min-latency"
    "h200-min-latency": of(
        "h200-r1-fp8-min-latency",
        "--model deepseek-ai/DeepSeek-R1 --num_requests 10 --max_batch_size 1 --tp 8 --ep 4 "
        "--concurrency 1",
        {"speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 3}},
        beyond=REPORT,
    ),
    # 000, "H200 max-throughput"
    "h200-max-throughput": of(
        "h200-r1-fp8-max-throughput",
        "--model deepseek-ai/DeepSeek-R1 --tp 8 --ep 8 --warmup 0 --max_batch_size 128 "
        "--max_num_tokens 1151 --num_requests 5120 --concurrency 1024 "
        "--kv_cache_free_gpu_mem_fraction 0.8",
        {"cuda_graph_config": {"batch_sizes": [128]}, "enable_attention_dp": True},
        {"TRTLLM_DG_JIT_USE_NVCC": "1"},
        beyond=REPORT,
    ),
    # 001, "Launch the TRT-LLM Server", FP4
    "r1-0528-fp4-serve": of(
        "b200-r1-0528-fp4-serve", f"{R1_SERVED} --tp_size 8 --ep_size 8", R1_SERVE_YAML
    ),
    # 001, the same for FP8 on Blackwell
    "r1-0528-fp8-serve": of(
        "b200-r1-0528-fp8-serve",
        f"{R1_SERVED} --tp_size 8 --ep_size 8",
        {**R1_SERVE_YAML, "moe_config": {"backend": "DEEPGEMM", "max_num_tokens": 3200}},
    ),
    # 001, "Wide Expert Parallelism", for more GPUs than the section's command has
    "r1-0528-wide-ep": of(
        "gb200-r1-0528-fp4-wide-ep-serve",
        f"{R1_SERVED} --tp_size 16 --ep_size 16",
        {
            **R1_SERVE_YAML,
            "moe_config": {
                "backend": "WIDEEP",
                "max_num_tokens": 9216,
                "load_balancer": {"num_slots": 288, "layer_updates_per_iter": 1},
            },
        },
    ),
    # 002, "Run a single inference"
    "quickstart": of("h200-v3-fp8-quickstart", f"--model_dir {V3} --tp_size 8"),
    # 002, "Multi-Token Prediction (MTP)"
    "mtp-0": _quickstart(0),
    "mtp-3": _quickstart(3),
    # 002, "Run evaluation on GPQA dataset"
    "gpqa": of(
        "h200-v3-fp8-gpqa",
        f"--hf_model_dir {V3} --data_dir gpqa_diamond.csv --tp_size 8 --use_cuda_graph "
        "--enable_overlap_scheduler --concurrency 32 --batch_size 32 --max_num_tokens 4096",
    ),
    # 002, "Serving"
    "v3-serve": of(
        "h200-v3-fp8-serve",
        "--host 0.0.0.0 --port 8000 --backend pytorch --max_batch_size 161 --max_num_tokens 1160 "
        "--tp_size 8 --ep_size 8 --pp_size 1 --kv_cache_free_gpu_memory_fraction 0.95",
        V3_YAML,
    ),
    # 002, "mpirun"
    "2node-mpirun": of(
        "h200-v3-fp8-2node-mpirun",
        f"{V3_BENCH} --tp 16 --ep 8 --kv_cache_free_gpu_mem_fraction 0.95 --concurrency 4096 "
        "--streaming",
        V3_YAML,
        beyond={**REPORT, **COUNTED},
    ),
    # 002, "Slurm"
    "2node-slurm": of(
        "h200-v3-fp8-2node-slurm",
        f"{V3_BENCH} --tp 16 --ep 4 --kv_cache_free_gpu_mem_fraction 0.95",
        V3_YAML,
        beyond={**REPORT, **COUNTED, **UNCAPPED},
    ),
    # 002, "Example: Multi-node benchmark on GB200 Slurm cluster"
    "gb200-2node": of(
        "gb200-r1-fp4-2node-slurm",
        "--model deepseek-ai/DeepSeek-R1 --model_path <MODELS>/DeepSeek-R1-FP4 --backend pytorch "
        "--num_requests 49152 --max_batch_size 384 --max_num_tokens 1536 --concurrency 3072 "
        "--tp 8 --pp 1 --ep 8 --kv_cache_free_gpu_mem_fraction 0.85 --warmup 0",
        V3_YAML,
        beyond=REPORT,
    ),
    # 002, "DeepGEMM", one node; its batch, tokens, concurrency and requests are placeholders
    "deepgemm": of(
        "h200-v3-fp8-deepgemm-on",
        f"{V3_BENCH} --tp 8 --ep 8 --kv_cache_free_gpu_mem_fraction 0.9 --concurrency 1024 "
        "--num_requests 5120 --streaming --report_json report.json",
        V3_YAML,
        {"TRTLLM_DG_ENABLED": "1"},
    ),
    # 002, "FP8 KV Cache and MLA", option 2, which the suite asks of a server with more settings
    "fp8-kv": Documented(
        scenario(
            "fp8-kv",
            "0.19.0",
            V3,
            settings=EngineSettings(backend="pytorch", tp=8, kv_cache_dtype="fp8"),
            workload=served(),
        ),
        {"--backend": "pytorch", "--tp_size": "8", "--extra_llm_api_options": YAML_FILE},
        {"pytorch_backend_config": {"kv_cache_dtype": "fp8"}},
        beyond=LISTENING,
    ),
    # 003, "Inference Use case configs"
    "reasoning": _gb200("reasoning", 6000, 0.85),
    "chat": _gb200("chat", 7000, 0.8),
    "summarization": _gb200("summarization", 9000, 0.85),
    "generation": _gb200("generation", 3000, 0.85),
    # 004, "Choosing the Inference Engine"
    "sharegpt": of("h200-r1-0528-fp8-sharegpt", "--tp_size 8 --ep_size 8", beyond=LISTENING),
}
DOCUMENTED = tuple(CASES.values())
R1_SERVE = CASES["r1-0528-fp4-serve"].scenario.engine.settings
V3_SETTINGS = CASES["deepgemm"].scenario.engine.settings
