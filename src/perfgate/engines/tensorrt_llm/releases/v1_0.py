"""TensorRT-LLM 1.0.0rc4 to 1.0: mappings for graphs, experts and KV cache; unknown keys refused.

Sources: #5795, #5752, #6003 (renames), #5480 (CUDA graphs on by default), the documentation page of
`trtllm-bench` 1.0.0 (PyTorch backend by default, `--enable_chunked_context`), the GB200 recipe with
image 1.0.0rc4, `tensorrt_llm/llmapi/llm_args.py` of 1.0.
"""

from dataclasses import replace

from perfgate.engines.tensorrt_llm.releases.table import (
    QUICKSTART,
    SERVE,
    THROUGHPUT,
    Defaults,
    GraphKeys,
    flag,
    options,
)
from perfgate.engines.tensorrt_llm.releases.v0_19 import (
    COMMON_YAML,
    SERVE_OPTIONS,
    THROUGHPUT_OPTIONS,
)
from perfgate.engines.tensorrt_llm.releases.v1_0_rc2 import V1_0_RC2

SERVE_1_0 = {
    **SERVE_OPTIONS,
    **options(
        "--reasoning_parser",
        "--metadata_server_config_file",
        "--server_role",
        flag("--fail_fast_on_attention_window_too_large"),
    ),
}

V1_0 = replace(
    V1_0_RC2,
    since="1.0.0rc4",
    programs={
        **V1_0_RC2.programs,
        THROUGHPUT: {
            **THROUGHPUT_OPTIONS,
            **options(
                "--cluster_size",
                flag("--enable_chunked_context"),
                "--request_json",
                "--eos_id",
                "--scheduler_policy",
            ),
        },
        SERVE: SERVE_1_0,
    },
    spelling=replace(
        V1_0_RC2.spelling,
        graphs=GraphKeys(
            at=("cuda_graph_config",),
            switch=None,
            padding="enable_padding",
            batch_sizes="batch_sizes",
            max_batch_size="max_batch_size",
        ),
        kv_cache_dtype=("kv_cache_config", "dtype"),
        moe_backend=("moe_config", "backend"),
        moe_max_num_tokens=("moe_config", "max_num_tokens"),
        moe_load_balancer=("moe_config", "load_balancer"),
    ),
    yaml_keys={
        **COMMON_YAML,
        "cuda_graph_config": {"enable_padding": None, "batch_sizes": None, "max_batch_size": None},
        "moe_config": {
            "backend": None,
            "max_num_tokens": None,
            "load_balancer": {"num_slots": None, "layer_updates_per_iter": None},
        },
        "kv_cache_config": {
            "dtype": None,
            "enable_block_reuse": None,
            "free_gpu_memory_fraction": None,
        },
        "torch_compile_config": {
            "enable_fullgraph": None,
            "enable_inductor": None,
            "enable_piecewise_cuda_graph": None,
            "enable_userbuffers": None,
            "max_num_streams": None,
        },
        "attn_backend": None,
        "disable_overlap_scheduler": None,
        "enable_autotuner": None,
        "enable_iter_perf_stats": None,
        "enable_iter_req_stats": None,
        "enable_min_latency": None,
        "enable_mixed_sampler": None,
        "enable_trtllm_sampler": None,
        "allreduce_strategy": None,
        "num_postprocess_workers": None,
        "print_iter_log": None,
        "scheduler_config": None,
        "stream_interval": None,
    },
    unknown_yaml="refused",
    defaults={
        THROUGHPUT: Defaults("pytorch", True, "padded", False, False),
        SERVE: Defaults("pytorch", True, "on", False, False),
        # The example passes None for graphs unless --use_cuda_graph is given.
        QUICKSTART: Defaults("pytorch", True, "off", False, False),
    },
)
