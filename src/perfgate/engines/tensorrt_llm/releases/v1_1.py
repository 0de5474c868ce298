"""TensorRT-LLM 1.1: chunked context on by default in `trtllm-bench`, TRTLLM sampler by default.

Sources: `tensorrt_llm/bench/benchmark/throughput.py` of 1.1; the documentation page of 1.1.0; the
GB200 recipe with image 1.1.0rc5.
"""

from dataclasses import replace

from perfgate.engines.tensorrt_llm.releases.table import (
    QUICKSTART,
    SERVE,
    THROUGHPUT,
    Defaults,
    flag,
    options,
)
from perfgate.engines.tensorrt_llm.releases.v1_0 import V1_0

THROUGHPUT_1_1 = {
    **V1_0.programs[THROUGHPUT],
    **options(
        flag("--enable_chunked_context", negation="--disable_chunked_context"),
        "--sampler_options",
        "--custom_module_dirs",
        flag("--no_skip_tokenizer_init"),
        "--image_data_format",
        "--data_device",
    ),
}

V1_1 = replace(
    V1_0,
    since="1.1.0rc0",
    programs={**V1_0.programs, THROUGHPUT: THROUGHPUT_1_1},
    yaml_keys={**V1_0.yaml_keys, "sampler_type": None, "attention_dp_config": None},
    defaults={
        THROUGHPUT: Defaults("pytorch", True, "padded", True, False, "trtllm"),
        SERVE: Defaults("pytorch", True, "on", False, False, "trtllm"),
        QUICKSTART: Defaults("pytorch", True, "off", False, False, "trtllm"),
    },
    moe_backends=None,
)
