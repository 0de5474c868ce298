"""TensorRT-LLM 1.2: PDL on by default, `--config`, datasets by `trtllm-bench prepare-dataset`.

Sources: #9250 (prepare-dataset, November 2025: after 1.2.0rc3, so earlier candidates are read as
1.1), #16330 (PDL), `tensorrt_llm/commands/serve.py` and `bench.py` of 1.2.
"""

from dataclasses import replace

from perfgate.engines.tensorrt_llm.releases.table import (
    BENCH,
    LATENCY,
    PREPARE,
    PREPARE_NORMAL,
    PREPARE_SCRIPT,
    PREPARE_SCRIPT_NORMAL,
    QUICKSTART,
    SERVE,
    THROUGHPUT,
    DatasetTool,
    Defaults,
    Option,
    flag,
    options,
)
from perfgate.engines.tensorrt_llm.releases.v0_19 import BENCH_OPTIONS, NORMAL_OPTIONS
from perfgate.engines.tensorrt_llm.releases.v1_0 import SERVE_1_0
from perfgate.engines.tensorrt_llm.releases.v1_1 import V1_1

_YAML = Option("--extra_llm_api_options", ("--config",))

SERVE_1_2 = {
    **SERVE_1_0,
    **options(
        _YAML,
        Option("--kv_cache_free_gpu_memory_fraction", ("--free_gpu_memory_fraction",)),
        Option("--tp_size", ("--tensor_parallel_size",)),
        Option("--pp_size", ("--pipeline_parallel_size",)),
        Option("--ep_size", ("--moe_expert_parallel_size",)),
        Option("--cluster_size", ("--moe_cluster_parallel_size",)),
        Option("--cp_size", ("--context_parallel_size",)),
        flag("--enable_chunked_prefill"),
        "--custom_tokenizer",
        "--custom_module_dirs",
        "--revision",
        "--tool_parser",
        "--chat_template",
        "--otlp_traces_endpoint",
        "--disagg_cluster_uri",
        "--media_io_kwargs",
    ),
}

V1_2 = replace(
    V1_1,
    since="1.2.0rc4",
    programs={
        **{
            name: table
            for name, table in V1_1.programs.items()
            if name not in (PREPARE_SCRIPT, PREPARE_SCRIPT_NORMAL)
        },
        BENCH: {**BENCH_OPTIONS, **options("--revision")},
        THROUGHPUT: {**V1_1.programs[THROUGHPUT], **options(_YAML)},
        LATENCY: {**V1_1.programs[LATENCY], **options(_YAML, "--sampler_options")},
        SERVE: SERVE_1_2,
        PREPARE: options(
            "--output",
            "--random-seed",
            "--task-id",
            "--rand-task-id",
            "--lora-dir",
            "--log-level",
            flag("--trust-remote-code"),
        ),
        PREPARE_NORMAL: NORMAL_OPTIONS,
    },
    defaults={
        THROUGHPUT: Defaults("pytorch", True, "padded", True, True, "trtllm"),
        SERVE: Defaults("pytorch", True, "on", False, True, "trtllm"),
        QUICKSTART: Defaults("pytorch", True, "off", False, True, "trtllm"),
    },
    dataset_tool=DatasetTool(PREPARE, None),
    serve_backends=frozenset({"pytorch", "tensorrt", "trt", "_autodeploy"}),
)
