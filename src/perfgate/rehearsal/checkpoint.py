"""What a mock program reads of a model's folder: how weights and KV cache are quantized."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def weight_quantization(folder: str) -> str | None:
    """Algorithm of the weights, as the checkpoint says; None: it does not."""
    return _quantization(folder).get("quant_algo")


def kv_cache_quantization(options: Mapping[str, Any], folder: str) -> str | None:
    """Type of the KV cache: as the YAML says, in any release's spelling, else the checkpoint.

    Args:
        options: the YAML file's content.
        folder: the model's; empty: there is none.
    """
    locations = (
        options.get("kv_cache_config") or {},
        options.get("pytorch_backend_config") or {},
        options,
    )
    for place in locations:
        for name in ("dtype", "kv_cache_dtype"):
            said = place.get(name)
            if isinstance(said, str) and said != "auto":
                return said.upper()
    return _quantization(folder).get("kv_cache_quant_algo")


def _quantization(folder: str) -> dict[str, str]:
    path = Path(folder) / "hf_quant_config.json"
    if not folder or not path.is_file():
        return {}
    found: dict[str, str] = json.loads(path.read_text()).get("quantization", {})
    return found
