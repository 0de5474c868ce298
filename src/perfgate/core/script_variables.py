"""Variables in a script: which are written with their values, and which the script asks for.

No value of a variable stands in an argv, where `ps` shows it to everybody. A script, which is kept
and handed on, holds the values of those alone that are known to say nothing but how an engine is
set; any other has to be in the environment of whoever runs it.
"""

import re
import shlex

from perfgate.core.errors import InputError
from perfgate.core.redaction import holds_secret

# Families that say nothing but how an engine, or a library below it, works. They shape numbers and
# identify nobody; a secret among them (VLLM_API_KEY) is known by its own name.
FAMILIES = (
    *("CUBLAS_", "CUDA_", "CUDNN_", "DG_", "GGML_", "GLOO_", "KMP_", "LLAMA_", "MALLOC_", "MKL_"),
    *("NCCL_", "NIXL_", "NVIDIA_", "NVSHMEM_", "OMP_", "OPENBLAS_", "PYTORCH_", "SGL_", "SGLANG_"),
    *("TLLM_", "TORCH_", "TRITON_", "TRTLLM_", "UCX_", "VLLM_"),
)
# What perfgate marks its own processes with, and settings of no family.
_NAMES = {
    *("PERFGATE_SCENARIO", "PERFGATE_PROBE", "PERFGATE_START", "PERFGATE_ROLE"),
    "PERFGATE_PLACE",
    *("DO_NOT_TRACK", "HF_HOME", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM"),
    *("TRANSFORMERS_OFFLINE",),
    *("PYTHONHASHSEED", "PYTHONUNBUFFERED"),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASKED = "its value is not written down, set it yourself"


def is_written(name: str, value: str) -> bool:
    """Whether the variable stands in scripts with its value."""
    known = name in _NAMES or name.startswith(FAMILIES) or not value
    return known and not holds_secret(name, value)


def export_line(name: str, value: str) -> str:
    """The line of a shell script that sets the variable, or ends the script where it is not set.

    Raises:
        InputError: no shell has a variable of that name.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            "not a variable's name",
            found=repr(name),
            expected="letters, digits and underscores",
        )
    if is_written(name, value):
        return f"export {name}={shlex.quote(value)}"
    return f'export {name}="${{{name}:?{ASKED}}}"'
