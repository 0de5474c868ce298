"""What the documents tabulate about DeepSeek-V3 and R1 in TensorRT-LLM: data, no rules.

Two documents: "Quick Start Recipe for DeepSeek R1 on TensorRT-LLM" (the recipe) and
``examples/deepseek_v3/README.md`` (the example). Where they differ, the newer one, the recipe,
holds; a comment says so.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

# The kernels of the experts when none are named (recipe, "MoE Backend Support Matrix").
DEFAULT_MOE_BACKEND = "CUTLASS"

# The kernels that balance experts online over many GPUs (recipe, "Wide Expert Parallelism").
WIDE_MOE_BACKEND = "WIDEEP"

# Expert parallelism above this many GPUs has rows of its own in the matrix.
WIDE_FROM_EP = 8

# Our names of precisions → those of the documents' tables.
CHECKPOINTS: Mapping[str, str] = {"fp8": "FP8", "nvfp4": "NVFP4", "fp4": "NVFP4"}

# The 671B models and their checkpoints, none of the small ones that share the name.
_MODEL = re.compile(r"DeepSeek-(V3|R1)(?!.*(Distill|Lite))(-.*)?")


def is_deepseek(model: str) -> bool:
    """Whether the tables speak of the model of that public name or folder."""
    return _MODEL.fullmatch(model.rpartition("/")[2]) is not None


class MoeRow(NamedTuple):
    """One row of the MoE backend support matrix.

    Attributes:
        device: the row's first column, as documented.
        gpus: the GPU names that it means.
        wide: expert parallelism above `WIDE_FROM_EP` (True), up to it (False) or any (None).
        checkpoint: precision of the weights, as documented.
        backends: what it allows; empty: nothing yet.
    """

    device: str
    gpus: tuple[str, ...]
    wide: bool | None
    checkpoint: str
    backends: tuple[str, ...]

    def __str__(self) -> str:
        return f"| {self.device} | {self.checkpoint} | {', '.join(self.backends) or 'N/A (WIP)'} |"


# Recipe, "MoE Backend Support Matrix", row by row.
MOE_MATRIX = (
    MoeRow("H100/H200", ("H100", "H200"), None, "FP8", ("CUTLASS",)),
    MoeRow("B200/GB200 EP<=8", ("B200", "GB200"), False, "NVFP4", ("CUTLASS", "TRTLLM")),
    MoeRow("B200/GB200 EP<=8", ("B200", "GB200"), False, "FP8", ("DEEPGEMM",)),
    MoeRow("GB200 NVL72 EP>8", ("GB200",), True, "NVFP4", (WIDE_MOE_BACKEND,)),
    MoeRow("GB200 NVL72 EP>8", ("GB200",), True, "FP8", ()),
)


def moe_row(gpu: str, checkpoint: str, ep: int) -> MoeRow | None:
    """The matrix row of a GPU, a checkpoint (`CHECKPOINTS`) and expert parallelism."""
    widths = (None, ep > WIDE_FROM_EP)
    for row in MOE_MATRIX:
        if gpu in row.gpus and checkpoint == row.checkpoint and row.wide in widths:
            return row
    return None


# Example, "Hardware Requirements": fewest GPUs by checkpoint and GPU; no GPU: not available. Both
# kinds of H20 need 8. For FP8 on Blackwell the example says "Not supported yet, WIP"; the newer
# recipe serves it on eight B200 and its matrix names DEEPGEMM for B200/GB200, so 8 stands here.
FEWEST_GPUS: Mapping[str, Mapping[str, int]] = {
    "FP8": {"H100": 16, "H20": 8, "H200": 8, "B200": 8, "GB200": 8},
    "NVFP4": {"B200": 4, "GB200": 4},
}

# Example, "Hardware Requirements": Ampere (SM80 and SM86) is not supported.
AMPERE = frozenset({"A100"})
