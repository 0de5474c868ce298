"""TensorRT-LLM 0.21 to 1.0.0rc1: what was below ``pytorch_backend_config`` is at the top.

The old nested form is ignored without a word here (#4811). Sources: #4603, #4890, #5154; the GB200
recipe with image 1.0.0rc1; `examples/pytorch/quickstart_advanced.py` of that time.
"""

from dataclasses import replace

from perfgate.engines.tensorrt_llm.releases.table import (
    QUICKSTART,
    GraphKeys,
    Option,
    Spelling,
    flag,
    options,
)
from perfgate.engines.tensorrt_llm.releases.v0_19 import COMMON_YAML
from perfgate.engines.tensorrt_llm.releases.v0_20 import QUICKSTART_0_20, V0_20

QUICKSTART_0_21 = {
    **{name: option for name, option in QUICKSTART_0_20.items() if name != "--eagle_model_dir"},
    **options(
        flag("--cuda_graph_padding_enabled"),
        "--cuda_graph_batch_sizes",
        flag("--use_piecewise_cuda_graph"),
        Option("--draft_model_dir", ("--eagle_model_dir",)),
        flag("--use_one_model"),
        flag("--trust_remote_code"),
    ),
}

V0_21 = replace(
    V0_20,
    since="0.21.0rc0",
    programs={**V0_20.programs, QUICKSTART: QUICKSTART_0_21},
    spelling=Spelling(
        graphs=GraphKeys(
            at=(),
            switch="use_cuda_graph",
            padding="cuda_graph_padding_enabled",
            batch_sizes="cuda_graph_batch_sizes",
            max_batch_size="cuda_graph_max_batch_size",
        ),
        overlap=("disable_overlap_scheduler",),
        overlap_inverted=True,
        kv_cache_dtype=("kv_cache_dtype",),
        moe_backend=("moe_backend",),
        moe_max_num_tokens=("moe_max_num_tokens",),
        moe_load_balancer=("moe_load_balancer",),
        iteration_log=("print_iter_log",),
        attention_backend=("attn_backend",),
        stream_interval=("stream_interval",),
        # torch.compile: its keys moved inside this range, in a way that is not established.
    ),
    yaml_keys={
        **COMMON_YAML,
        "use_cuda_graph": None,
        "cuda_graph_padding_enabled": None,
        "cuda_graph_batch_sizes": None,
        "cuda_graph_max_batch_size": None,
        "disable_overlap_scheduler": None,
        "kv_cache_dtype": None,
        "moe_backend": None,
        "moe_max_num_tokens": None,
        "moe_load_balancer": {"num_slots": None, "layer_updates_per_iter": None},
        "print_iter_log": None,
        "attn_backend": None,
        "stream_interval": None,
        "enable_iter_perf_stats": None,
        "num_postprocess_workers": None,
    },
    moe_backends=frozenset({"CUTLASS", "TRTLLM", "VANILLA"}),
)
