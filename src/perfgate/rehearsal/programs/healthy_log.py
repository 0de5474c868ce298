"""Healthy log lines of TensorRT-LLM, by what the played release runs with."""

import time
from collections.abc import Mapping
from typing import Any

from perfgate.rehearsal.playbook import Playbook
from perfgate.rehearsal.programs.llm_api import kv_cache_quantization
from perfgate.rehearsal.programs.report_format import printed

_LARGEST_GRAPH = 128
_DRAFTED_FROM = (1, 1)
_HYPHENED_FROM = (1, 2)


def stamp() -> str:
    """Time as TensorRT-LLM's logger writes it."""
    return time.strftime("[%m/%d/%Y-%H:%M:%S]")


def info(message: str) -> None:
    """A line of TensorRT-LLM's own logger, which writes to standard output."""
    print(f"{stamp()} [TRT-LLM] [I] {message}")


def iterations(requests: int) -> None:
    """The iteration log, as `py_executor.py` of 1.0 writes it for rank 0: some of its lines."""
    for number in range(1, 4):
        info(
            f"iter = {number}, global_rank = 0, rank = 0, "
            f"currank_total_requests = 0/{requests}, elapsed_time = 0.0231s, "
            f"timestamp = {time.strftime('%Y-%m-%d %H:%M:%S')}, num_scheduled_requests: {number}, "
            f"states = {{'num_ctx_requests': 0, 'num_ctx_tokens': 0, "
            f"'num_generation_tokens': {number}}}"
        )


def start_log(
    model: str, world_size: int, fraction: float, said: Mapping[str, Any] | None = None
) -> list[str]:
    """From the first line to the ready engine.

    Args:
        model: name or folder of the model.
        world_size: ranks.
        fraction: of the free GPU memory that the KV cache takes.
        said: what the engine runs with, from `resolved`; None: nothing of it is printed.
    """
    values = {"model": model, "world_size": world_size, "fraction": fraction, **(said or {})}
    return printed(__file__, "start", values.get("release", (0,)), values).splitlines()


def engine_starts(
    model: str, world_size: int, fraction: float, said: Mapping[str, Any] | None = None
) -> None:
    """Print `start_log`."""
    for line in start_log(model, world_size, fraction, said):
        print(f"{stamp()} {line}" if line.startswith("[TRT-LLM]") else line)


def resolved(
    playbook: Playbook, options: Mapping[str, Any], *, graphs_by_default: bool
) -> dict[str, Any]:
    """What the played release runs with, by the YAML file of its options, for `start_log`.

    Args:
        playbook: of this program; with its fault ``ignored_options`` the file has no effect.
        options: the file's content, in any release's spelling.
        graphs_by_default: whether this program captures graphs where the file is silent.
    """
    if playbook.fault_at("options"):
        options = {}
    flat, release = flattened(options), playbook.numbers
    config = options.get("cuda_graph_config", {})
    is_on = flat.get("use_cuda_graph", graphs_by_default or bool(config)) and config is not None
    config = config or {}
    padding = [config.get(name) for name in ("enable_padding", "padding_enabled")]
    padding.append(flat.get("cuda_graph_padding_enabled"))
    largest = config.get("max_batch_size") or flat.get("cuda_graph_max_batch_size")
    largest = largest or _LARGEST_GRAPH
    sizes = config.get("batch_sizes") or flat.get("cuda_graph_batch_sizes")
    sizes = list(sizes or (1, 2, 4, *range(8, largest, 8), largest)) if is_on else []
    dtype = (kv_cache_quantization(options, "") or "auto").lower()
    kind = "generation-only" if release >= _HYPHENED_FROM else "generation only"
    drafted = f", draft_len={draft_tokens(options)}" if release >= _DRAFTED_FROM else ""
    captures = (
        f"[TRT-LLM] [I] Run {kind} CUDA graph warmup for batch size={size}{drafted}"
        for size in sorted(sizes, reverse=True)
    )
    return {
        "release": release,
        "kv_cache_dtype": dtype,
        "is_auto": dtype == "auto",
        "is_captured": bool(sizes),
        "sizes": sizes,
        "count": len(sizes),
        "largest": max(sizes, default=0),
        "padding": any(padding),
        "captures": "\n".join(captures),
    }


def flattened(options: Mapping[str, Any]) -> dict[str, Any]:
    """The YAML file without the mapping that 0.20 and older have most of it in."""
    return {**options, **(options.get("pytorch_backend_config") or {})}


def draft_tokens(options: Mapping[str, Any]) -> int:
    """Tokens that are drafted at once, by the YAML file; 0: speculation is off."""
    speculative = options.get("speculative_config") or {}
    name = "num_nextn_predict_layers"
    return int(speculative.get(name, speculative.get("max_draft_len", 0)))
