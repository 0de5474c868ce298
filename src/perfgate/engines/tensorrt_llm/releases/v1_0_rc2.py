"""TensorRT-LLM 1.0.0rc2 and rc3: CUDA graphs in one mapping, padding spelled `padding_enabled`.

Sources: #5014; #5950 (rc1 takes no notice of the mapping that rc2 reads); the quickstart example of
that time. That exactly these two candidates spell it so is inferred from dates.
"""

from dataclasses import replace

from perfgate.engines.tensorrt_llm.releases.table import (
    QUICKSTART,
    SERVE,
    THROUGHPUT,
    Defaults,
    GraphKeys,
    options,
)
from perfgate.engines.tensorrt_llm.releases.v0_21 import QUICKSTART_0_21, V0_21

_GRAPH_KEYS = frozenset(
    {
        "use_cuda_graph",
        "cuda_graph_padding_enabled",
        "cuda_graph_batch_sizes",
        "cuda_graph_max_batch_size",
    }
)

V1_0_RC2 = replace(
    V0_21,
    since="1.0.0rc2",
    programs={
        **V0_21.programs,
        QUICKSTART: {**QUICKSTART_0_21, **options("--max_beam_width")},
    },
    spelling=replace(
        V0_21.spelling,
        graphs=GraphKeys(
            at=("cuda_graph_config",),
            switch=None,
            padding="padding_enabled",
            batch_sizes="batch_sizes",
            max_batch_size="max_batch_size",
        ),
        torch_compile=("torch_compile_config",),
        torch_compile_on={"enable_fullgraph": True},
        torch_compile_off=None,
    ),
    yaml_keys={
        **{key: below for key, below in V0_21.yaml_keys.items() if key not in _GRAPH_KEYS},
        "cuda_graph_config": {"padding_enabled": None, "batch_sizes": None, "max_batch_size": None},
        "torch_compile_config": {"enable_fullgraph": None, "enable_inductor": None},
    },
    defaults={
        THROUGHPUT: Defaults("pytorch", True, "padded", False, False),
        SERVE: Defaults("pytorch", True, "off", False, False),
        QUICKSTART: Defaults("pytorch", True, "off", False, False),
    },
    moe_backends=frozenset({"CUTLASS", "TRTLLM", "VANILLA", "DEEPGEMM", "CUTEDSL", "WIDEEP"}),
    bench_backends=frozenset({"pytorch", "_autodeploy", "tensorrt"}),
    serve_backends=frozenset({"pytorch", "trt"}),
    examples="examples/llm-api",
    example_prompts=None,
    mtp_zero=False,  # later releases want a positive number; leaving it out is off in all
)
