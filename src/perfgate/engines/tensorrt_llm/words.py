"""Words: what settings of TensorRT-LLM can be called, in any release; which has what, tables say.

A word that none of them has is a typing error, found where a scenario file is read.
"""

from collections.abc import Mapping

# Sources, up to 1.3: for `backend` the tables in `releases`, for the kernels of the experts
# `MoeConfig.backend` in `tensorrt_llm/llmapi/llm_args.py`, for those of the attention
# `get_attention_backend` in `tensorrt_llm/_torch/attention_backend/utils.py`, which takes TRTLLM
# for any word that it does not know.
WORDS: Mapping[str, frozenset[str]] = {
    "backend": frozenset({"_autodeploy", "autodeploy", "pytorch", "tensorrt", "trt"}),
    "moe_backend": frozenset(
        {
            "AUTO",
            "CUTEDSL",
            "CUTLASS",
            "DEEPGEMM",
            "DENSEGEMM",
            "MARLIN",
            "MEGAMOE_DEEPGEMM",
            "TRITON",
            "TRTLLM",
            "VANILLA",
            "WIDEEP",
        }
    ),
    "attention_backend": frozenset(
        {"FLASHINFER", "FLASHINFER_STAR_ATTENTION", "TRTLLM", "VANILLA"}
    ),
}
