"""Scenarios as the public documents describe them, and what the documents show for each.

Typed off the documents by hand: the expected side of the tests, independent of `scenarios/`.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.tensorrt_llm import bench, examples, serve
from perfgate.scenarios.scenario import (
    AccuracyTask,
    CudaGraphs,
    EngineChoice,
    EngineSettings,
    GatePolicy,
    Hardware,
    Limits,
    Model,
    MoeLoadBalancer,
    Mtp,
    Scenario,
    Smoke,
    Source,
    Workload,
)

ON_PAPER = Locations(on_paper=True)
SERVED = Endpoint("0.0.0.0", 8000, "model")  # noqa: S104
DATASET = "dataset.txt"
SUBCOMMANDS = ("throughput", "prepare-dataset", "token-norm-dist")
EXAMPLE_GRAPHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 384)
FIRST_PROMPTS = (
    "Hello, my name is",
    "The president of the United States is",
    "The capital of France is",
    "The future of AI is",
)


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
        scenario: the scenario that it belongs to.
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


YAML_FILE = {"--extra_llm_api_options": "./extra-llm-api-config.yml"}
REPORT = {"--report_json": "the results are read from it"}
V3 = "deepseek-ai/DeepSeek-V3"
V3_GRAPHS = CudaGraphs(padding=True, batch_sizes=EXAMPLE_GRAPHS)
V3_YAML = {
    "pytorch_backend_config": {
        "use_cuda_graph": True,
        "cuda_graph_padding_enabled": True,
        "cuda_graph_batch_sizes": list(EXAMPLE_GRAPHS),
        "print_iter_log": True,
        "enable_overlap_scheduler": True,
    },
    "enable_attention_dp": True,
}
V3_SETTINGS = EngineSettings(
    backend="pytorch",
    attention_dp=True,
    iteration_log=True,
    overlap_scheduler=True,
    cuda_graphs=V3_GRAPHS,
    max_batch_size=161,
    max_num_tokens=1160,
    kv_cache_fraction=0.95,
)
R1_SERVE = EngineSettings(
    backend="pytorch",
    tp=8,
    ep=8,
    max_batch_size=1024,
    max_num_tokens=3200,
    max_seq_len=2048,
    kv_cache_fraction=0.8,
    trust_remote_code=True,
    attention_dp=True,
    cuda_graphs=CudaGraphs(padding=True, max_batch_size=128),
    kv_cache_dtype="fp8",
    stream_interval=10,
    mtp=Mtp(1),
)
R1_SERVE_OPTIONS = {
    "--host": "0.0.0.0",  # noqa: S104
    "--port": "8000",
    "--backend": "pytorch",
    "--max_batch_size": "1024",
    "--max_num_tokens": "3200",
    "--max_seq_len": "2048",
    "--kv_cache_free_gpu_memory_fraction": "0.8",
    "--tp_size": "8",
    "--ep_size": "8",
    "--trust_remote_code": None,
    **YAML_FILE,
}
R1_SERVE_YAML = {
    "enable_attention_dp": True,
    "cuda_graph_config": {"enable_padding": True, "max_batch_size": 128},
    "kv_cache_config": {"dtype": "fp8"},
    "stream_interval": 10,
    "speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 1},
}


def _gb200(name: str, isl: int, osl: int, tokens: int, fraction: float) -> Documented:
    """A row of the GB200 recipe's table of use cases."""
    return Documented(
        scenario(
            name,
            "1.0.0rc1",
            "nvidia/DeepSeek-R1-FP4",
            settings=EngineSettings(
                tp=4,
                ep=4,
                pp=1,
                attention_dp=True,
                max_batch_size=384,
                max_num_tokens=tokens,
                kv_cache_fraction=fraction,
            ),
            workload=offline(384, 7680, isl=isl, osl=osl, streaming=True, capped=False),
        ),
        {
            "--model": "nvidia/DeepSeek-R1-FP4",
            "--dataset": DATASET,
            "--num_requests": "7680",
            "--concurrency": "-1",
            "--streaming": None,
            "--max_batch_size": "384",
            "--max_num_tokens": str(tokens),
            "--kv_cache_free_gpu_mem_fraction": f"{fraction:g}",
            "--tp": "4",
            "--ep": "4",
            "--pp": "1",
            **YAML_FILE,
        },
        {"enable_attention_dp": True},
        beyond=REPORT,
    )


DOCUMENTED: tuple[Documented, ...] = (
    # 000, "B200 min-latency"
    Documented(
        scenario(
            "b200-min-latency",
            model="nvidia/DeepSeek-R1-FP4",
            settings=EngineSettings(
                tp=8, ep=2, max_batch_size=1, moe_backend="TRTLLM", mtp=Mtp(3), pdl=True
            ),
            workload=offline(1, 10, dataset="real"),
        ),
        {
            "--model": "nvidia/DeepSeek-R1-FP4",
            "--dataset": DATASET,
            "--num_requests": "10",
            "--concurrency": "1",
            "--max_batch_size": "1",
            "--tp": "8",
            "--ep": "2",
            **YAML_FILE,
        },
        {
            "moe_config": {"backend": "TRTLLM"},
            "speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 3},
        },
        {"TRTLLM_ENABLE_PDL": "1"},
        beyond=REPORT,
    ),
    # 000, "B200 max-throughput for R1-0528 with FP8 KV cache". The document's top-level
    # `kv_cache_dtype` is that of its commit; 1.0.0 reads kv_cache_config.dtype only (#5752).
    Documented(
        scenario(
            "b200-fp8-kv",
            model="nvidia/DeepSeek-R1-0528-FP4",
            settings=EngineSettings(
                tp=8,
                ep=8,
                max_batch_size=896,
                max_num_tokens=2048,
                kv_cache_fraction=0.93,
                kv_cache_dtype="fp8",
                attention_dp=True,
                iteration_log=True,
                cuda_graphs=CudaGraphs(
                    padding=True, batch_sizes=(896, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
                ),
            ),
            workload=offline(7168, 114688),
        ),
        {
            "--model": "nvidia/DeepSeek-R1-0528-FP4",
            "--dataset": DATASET,
            "--tp": "8",
            "--ep": "8",
            "--max_batch_size": "896",
            "--max_num_tokens": "2048",
            "--kv_cache_free_gpu_mem_fraction": "0.93",
            "--concurrency": "7168",
            "--num_requests": "114688",
            **YAML_FILE,
        },
        {
            "cuda_graph_config": {
                "enable_padding": True,
                "batch_sizes": [896, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1],
            },
            "print_iter_log": True,
            "kv_cache_config": {"dtype": "fp8"},
            "enable_attention_dp": True,
        },
        beyond=REPORT,
    ),
    # 000, "B200 max-throughput for R1 with FP16 KV cache"
    Documented(
        scenario(
            "b200-fp16-kv",
            model="nvidia/DeepSeek-R1-FP4",
            settings=EngineSettings(
                tp=8,
                ep=8,
                max_batch_size=384,
                max_num_tokens=1536,
                kv_cache_fraction=0.85,
                attention_dp=True,
                iteration_log=True,
                cuda_graphs=CudaGraphs(padding=True, batch_sizes=EXAMPLE_GRAPHS),
            ),
            workload=offline(3072, 49152, warmup_requests=0),
        ),
        {
            "--model": "nvidia/DeepSeek-R1-FP4",
            "--tp": "8",
            "--ep": "8",
            "--warmup": "0",
            "--dataset": DATASET,
            "--max_batch_size": "384",
            "--max_num_tokens": "1536",
            "--num_requests": "49152",
            "--concurrency": "3072",
            "--kv_cache_free_gpu_mem_fraction": "0.85",
            **YAML_FILE,
        },
        {
            "cuda_graph_config": {"enable_padding": True, "batch_sizes": list(EXAMPLE_GRAPHS)},
            "print_iter_log": True,
            "enable_attention_dp": True,
        },
        beyond=REPORT,
    ),
    # 000, "H200 min-latency"
    Documented(
        scenario(
            "h200-min-latency",
            settings=EngineSettings(tp=8, ep=4, max_batch_size=1, mtp=Mtp(3)),
            workload=offline(1, 10, dataset="real"),
        ),
        {
            "--model": "deepseek-ai/DeepSeek-R1",
            "--dataset": DATASET,
            "--num_requests": "10",
            "--max_batch_size": "1",
            "--tp": "8",
            "--ep": "4",
            "--concurrency": "1",
            **YAML_FILE,
        },
        {"speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 3}},
        beyond=REPORT,
    ),
    # 000, "H200 max-throughput"
    Documented(
        scenario(
            "h200-max-throughput",
            settings=EngineSettings(
                tp=8,
                ep=8,
                max_batch_size=128,
                max_num_tokens=1151,
                kv_cache_fraction=0.8,
                attention_dp=True,
                cuda_graphs=CudaGraphs(batch_sizes=(128,)),
            ),
            workload=offline(1024, 5120, warmup_requests=0),
            environment={"TRTLLM_DG_JIT_USE_NVCC": "1"},
        ),
        {
            "--model": "deepseek-ai/DeepSeek-R1",
            "--tp": "8",
            "--ep": "8",
            "--warmup": "0",
            "--dataset": DATASET,
            "--max_batch_size": "128",
            "--max_num_tokens": "1151",
            "--num_requests": "5120",
            "--concurrency": "1024",
            "--kv_cache_free_gpu_mem_fraction": "0.8",
            **YAML_FILE,
        },
        {"cuda_graph_config": {"batch_sizes": [128]}, "enable_attention_dp": True},
        {"TRTLLM_DG_JIT_USE_NVCC": "1"},
        beyond=REPORT,
    ),
    # 001, "Launch the TRT-LLM Server", FP4
    Documented(
        scenario(
            "r1-0528-fp4-serve",
            "1.0.0rc6",
            "nvidia/DeepSeek-R1-0528-FP4",
            settings=R1_SERVE,
            workload=served(),
        ),
        R1_SERVE_OPTIONS,
        R1_SERVE_YAML,
    ),
    # 001, the same for FP8 on Blackwell
    Documented(
        scenario(
            "r1-0528-fp8-serve",
            "1.0.0rc6",
            "deepseek-ai/DeepSeek-R1-0528",
            settings=replace(R1_SERVE, moe_backend="DEEPGEMM", moe_max_num_tokens=3200),
            workload=served(),
        ),
        R1_SERVE_OPTIONS,
        {**R1_SERVE_YAML, "moe_config": {"backend": "DEEPGEMM", "max_num_tokens": 3200}},
    ),
    # 001, "Wide Expert Parallelism"
    Documented(
        scenario(
            "r1-0528-wide-ep",
            "1.0.0rc6",
            "nvidia/DeepSeek-R1-0528-FP4",
            settings=replace(
                R1_SERVE,
                moe_backend="WIDEEP",
                moe_max_num_tokens=9216,
                moe_load_balancer=MoeLoadBalancer(288, 1),
            ),
            workload=served(),
        ),
        R1_SERVE_OPTIONS,
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
    Documented(
        scenario(
            "quickstart",
            "0.19.0",
            V3,
            settings=EngineSettings(tp=8),
            smoke=Smoke("trtllm-quickstart", FIRST_PROMPTS),
        ),
        {"--model_dir": V3, "--tp_size": "8"},
    ),
    # 002, "Multi-Token Prediction (MTP)": N = 0 and N = 3
    *(
        Documented(
            scenario(
                f"mtp-{layers}",
                "0.19.0",
                V3,
                settings=EngineSettings(tp=8, mtp=Mtp(layers)),
                smoke=Smoke("trtllm-quickstart", FIRST_PROMPTS),
            ),
            {"--model_dir": V3, "--spec_decode_algo": "MTP", "--spec_decode_nextn": str(layers)},
            beyond={"--tp_size": "the model does not fit on one GPU"},
        )
        for layers in (0, 3)
    ),
    # 002, "Run evaluation on GPQA dataset"
    Documented(
        scenario(
            "gpqa",
            "0.19.0",
            V3,
            settings=EngineSettings(
                tp=8,
                cuda_graphs=CudaGraphs(),
                overlap_scheduler=True,
                max_batch_size=32,
                max_num_tokens=4096,
            ),
            accuracy=(AccuracyTask("trtllm-gpqa", "gpqa_diamond", 0, concurrency=32),),
        ),
        {
            "--hf_model_dir": V3,
            "--data_dir": "gpqa_diamond.csv",
            "--tp_size": "8",
            "--use_cuda_graph": None,
            "--enable_overlap_scheduler": None,
            "--concurrency": "32",
            "--batch_size": "32",
            "--max_num_tokens": "4096",
        },
    ),
    # 002, "Serving"
    Documented(
        scenario(
            "v3-serve",
            "0.19.0",
            V3,
            settings=replace(V3_SETTINGS, tp=8, ep=8, pp=1),
            workload=served(isl=1000, osl=1000),
        ),
        {
            "--host": "0.0.0.0",  # noqa: S104
            "--port": "8000",
            "--backend": "pytorch",
            "--max_batch_size": "161",
            "--max_num_tokens": "1160",
            "--tp_size": "8",
            "--ep_size": "8",
            "--pp_size": "1",
            "--kv_cache_free_gpu_memory_fraction": "0.95",
            **YAML_FILE,
        },
        V3_YAML,
    ),
    # 002, "mpirun"
    Documented(
        scenario(
            "2node-mpirun",
            "0.19.0",
            V3,
            settings=replace(V3_SETTINGS, tp=16, ep=8),
            workload=offline(4096, 16384, isl=1000, osl=1000, streaming=True),
        ),
        {
            "--model": V3,
            "--backend": "pytorch",
            "--max_batch_size": "161",
            "--max_num_tokens": "1160",
            "--dataset": DATASET,
            "--tp": "16",
            "--ep": "8",
            "--kv_cache_free_gpu_mem_fraction": "0.95",
            "--concurrency": "4096",
            "--streaming": None,
            **YAML_FILE,
        },
        V3_YAML,
        beyond={**REPORT, "--num_requests": "the whole dataset, which the document does not count"},
    ),
    # 002, "Slurm"
    Documented(
        scenario(
            "2node-slurm",
            "0.19.0",
            V3,
            settings=replace(V3_SETTINGS, tp=16, ep=4),
            workload=offline(4096, 4096, isl=1000, osl=1000, capped=False),
        ),
        {
            "--model": V3,
            "--backend": "pytorch",
            "--max_batch_size": "161",
            "--max_num_tokens": "1160",
            "--dataset": DATASET,
            "--tp": "16",
            "--ep": "4",
            "--kv_cache_free_gpu_mem_fraction": "0.95",
            **YAML_FILE,
        },
        V3_YAML,
        beyond={
            **REPORT,
            "--num_requests": "the whole dataset, which the document does not count",
            "--concurrency": "-1 is the default",
        },
    ),
    # 002, "Example: Multi-node benchmark on GB200 Slurm cluster"
    Documented(
        scenario(
            "gb200-2node",
            "0.19.0",
            settings=replace(
                V3_SETTINGS,
                tp=8,
                ep=8,
                pp=1,
                max_batch_size=384,
                max_num_tokens=1536,
                kv_cache_fraction=0.85,
            ),
            workload=offline(3072, 49152, warmup_requests=0),
        ),
        {
            "--model": "deepseek-ai/DeepSeek-R1",
            "--backend": "pytorch",
            "--num_requests": "49152",
            "--max_batch_size": "384",
            "--max_num_tokens": "1536",
            "--concurrency": "3072",
            "--dataset": DATASET,
            "--tp": "8",
            "--pp": "1",
            "--ep": "8",
            "--kv_cache_free_gpu_mem_fraction": "0.85",
            "--warmup": "0",
            **YAML_FILE,
        },
        V3_YAML,
        beyond=REPORT,
    ),
    # 002, "DeepGEMM", one node; its batch, tokens, concurrency and requests are placeholders
    Documented(
        scenario(
            "deepgemm",
            "0.19.0",
            V3,
            settings=replace(V3_SETTINGS, tp=8, ep=8, kv_cache_fraction=0.9),
            workload=offline(1024, 5120, isl=1000, osl=1000, streaming=True),
            environment={"TRTLLM_DG_ENABLED": "1"},
        ),
        {
            "--model": V3,
            "--backend": "pytorch",
            "--max_batch_size": "161",
            "--max_num_tokens": "1160",
            "--dataset": DATASET,
            "--tp": "8",
            "--ep": "8",
            "--kv_cache_free_gpu_mem_fraction": "0.9",
            "--concurrency": "1024",
            "--num_requests": "5120",
            "--streaming": None,
            "--report_json": "report.json",
            **YAML_FILE,
        },
        V3_YAML,
        {"TRTLLM_DG_ENABLED": "1"},
    ),
    # 002, "FP8 KV Cache and MLA", option 2
    Documented(
        scenario(
            "fp8-kv",
            "0.19.0",
            V3,
            settings=EngineSettings(backend="pytorch", tp=8, kv_cache_dtype="fp8"),
            workload=served(),
        ),
        {
            "--host": "0.0.0.0",  # noqa: S104
            "--port": "8000",
            "--backend": "pytorch",
            "--tp_size": "8",
            **YAML_FILE,
        },
        {"pytorch_backend_config": {"kv_cache_dtype": "fp8"}},
    ),
    # 003, "Inference Use case configs"
    _gb200("reasoning", 1000, 1000, 6000, 0.85),
    _gb200("chat", 128, 128, 7000, 0.8),
    _gb200("summarization", 8000, 512, 9000, 0.85),
    _gb200("generation", 512, 8000, 3000, 0.85),
    # 004, "Choosing the Inference Engine"
    Documented(
        scenario(
            "sharegpt",
            "1.0.0",
            "deepseek-ai/DeepSeek-R1-0528",
            settings=EngineSettings(tp=8, ep=8),
            workload=served(),
        ),
        {"--tp_size": "8", "--ep_size": "8"},
        beyond={
            "--host": "the run chooses where the server listens",
            "--port": "the run chooses where the server listens",
        },
    ),
)
CASES = {case.scenario.id: case for case in DOCUMENTED}
