"""Words: what settings of TensorRT-LLM can be called, in any release.

A word that none of them has is a typing error, found where a scenario file is read.
"""

from collections.abc import Mapping

from perfgate.engines.tensorrt_llm.releases import all_releases
from perfgate.engines.tensorrt_llm.releases.table import QUICKSTART, SERVE, THROUGHPUT

# Beside those that the tables name. Sources, up to 1.3: for the kernels of the experts
# `MoeConfig.backend` in `tensorrt_llm/llmapi/llm_args.py`, for those of the attention
# `get_attention_backend` in `tensorrt_llm/_torch/attention_backend/utils.py`, which takes TRTLLM
# for any word that it does not know.
_ANY_RELEASE: Mapping[str, frozenset[str]] = {
    "backend": frozenset({"tensorrt"}),
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


def words() -> Mapping[str, frozenset[str]]:
    """Setting → what any release takes for it.

    Raises:
        InputError: a table of releases cannot be read.
    """
    found = {setting: set(known) for setting, known in _ANY_RELEASE.items()}
    for table in all_releases():
        found["moe_backend"] |= table.moe_backends or frozenset()
        for setting in found:
            for program in (THROUGHPUT, SERVE, QUICKSTART):
                found[setting].update(table.choices(program, setting))
    return {setting: frozenset(known) for setting, known in found.items()}
