"""TensorRT-LLM 0.20: overlap scheduler on by default, its key says `disable`; no GPQA example.

Sources: release notes of 0.20; #3875 (`trtllm-bench` pads its CUDA graphs up to the batch size);
#3483 (`examples/gpqa_llmapi.py` gave way to `trtllm-eval`).
"""

from dataclasses import replace

from perfgate.engines.tensorrt_llm.releases.table import (
    GPQA,
    QUICKSTART,
    SERVE,
    THROUGHPUT,
    Defaults,
    flag,
    options,
)
from perfgate.engines.tensorrt_llm.releases.v0_19 import (
    COMMON_YAML,
    QUICKSTART_OPTIONS,
    V0_19,
)

_NESTED = "pytorch_backend_config"

QUICKSTART_0_20 = {
    **{
        name: option
        for name, option in QUICKSTART_OPTIONS.items()
        if name != "--enable_overlap_scheduler"
    },
    **options(flag("--disable_overlap_scheduler"), "--moe_cluster_size"),
}

V0_20 = replace(
    V0_19,
    since="0.20.0rc0",
    programs={
        **{name: table for name, table in V0_19.programs.items() if name != GPQA},
        QUICKSTART: QUICKSTART_0_20,
    },
    spelling=replace(
        V0_19.spelling, overlap=(_NESTED, "disable_overlap_scheduler"), overlap_inverted=True
    ),
    yaml_keys={
        **COMMON_YAML,
        _NESTED: {
            "use_cuda_graph": None,
            "cuda_graph_padding_enabled": None,
            "cuda_graph_batch_sizes": None,
            "cuda_graph_max_batch_size": None,
            "print_iter_log": None,
            "disable_overlap_scheduler": None,
            "kv_cache_dtype": None,
            "moe_backend": None,
            "attn_backend": None,
            "torch_compile_enabled": None,
            "enable_iter_perf_stats": None,
        },
    },
    defaults={
        THROUGHPUT: Defaults("tensorrt", True, "padded", False, False),
        SERVE: Defaults("tensorrt", True, "off", False, False),
        QUICKSTART: Defaults("pytorch", True, "off", False, False),
    },
)
