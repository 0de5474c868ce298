"""Healthy log lines of TensorRT-LLM, some of them with scary words: free memory, OOM, errors.

Lines as in public issue reports (#6294, #7104) and in the sources of 1.0 and newer.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.rehearsal.llm_api import kv_cache_quantization
from perfgate.rehearsal.playbook import Playbook

_START = Path(__file__).with_name("healthy_start.txt")
_LARGEST_GRAPH = 128
# Read at 1.1.0rc3, where it has all of them; gone with that class; not in a log of 0.20.0.
_CONFIG_FROM, _CONFIG_UNTIL = (1, 0), (1, 2)
_END_FROM = (1, 0)
_DRAFTED_FROM = (1, 1)
_HYPHENED_FROM = (1, 2)


def stamp() -> str:
    """Time as TensorRT-LLM's logger writes it."""
    return time.strftime("[%m/%d/%Y-%H:%M:%S]")


def info(message: str) -> None:
    """A line of TensorRT-LLM's own logger, which writes to standard output."""
    print(f"{stamp()} [TRT-LLM] [I] {message}")


@dataclass(frozen=True)
class Resolved:
    """What an engine runs with, and prints of it while it starts.

    Attributes:
        release: its numbers.
        kv_cache_dtype: as the options name it.
        graphs: sizes of the batches that CUDA graphs are captured for; none: they are off.
        padding: whether other batches are padded to one of these.
        draft_tokens: that are drafted at once; 0: speculation is off.
    """

    release: tuple[int, ...]
    kv_cache_dtype: str = "auto"
    graphs: tuple[int, ...] = ()
    padding: bool = False
    draft_tokens: int = 0

    def lines(self) -> dict[str, str]:
        """Name in ``healthy_start.txt`` → what stands there; the configuration's is shortened."""
        head, release = "[TRT-LLM] [I]", self.release
        dtype = f'{head} Validating KV Cache config against kv_cache_dtype="{self.kv_cache_dtype}"'
        if self.kv_cache_dtype == "auto":
            dtype += (
                f'\n{head} KV cache quantization set to "auto". Using checkpoint KV quantization.'
            )
        found = {"kv_cache": dtype, "graphs": "\n".join(self._graph_lines(head))}
        if _CONFIG_FROM <= release < _CONFIG_UNTIL:
            found["config"] = (
                f"{head} PyTorchConfig(extra_resource_managers={{}}, "
                f"use_cuda_graph={bool(self.graphs)}, cuda_graph_batch_sizes={[*self.graphs]}, "
                f"cuda_graph_max_batch_size={max(self.graphs, default=0)}, "
                f"cuda_graph_padding_enabled={self.padding}, attn_backend='TRTLLM', "
                f"kv_cache_dtype='{self.kv_cache_dtype}')"
            )
        if release >= _END_FROM:
            found["end"] = f"{head} Setting PyTorch memory fraction to 0.598 (71.62 GiB)"
        return found

    def _graph_lines(self, head: str) -> Iterator[str]:
        if not self.graphs:
            return
        yield f"{head} Creating CUDA graph instances for {len(self.graphs)} batch sizes."
        kind = "generation-only" if self.release >= _HYPHENED_FROM else "generation only"
        drafted = f", draft_len={self.draft_tokens}" if self.release >= _DRAFTED_FROM else ""
        for size in sorted(self.graphs, reverse=True):
            yield f"{head} Run {kind} CUDA graph warmup for batch size={size}{drafted}"


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


def engine_starts(
    model: str, world_size: int, fraction: float, said: Resolved | None = None
) -> None:
    """From the first line to the ready engine.

    Args:
        model: name or folder of the model.
        world_size: ranks.
        fraction: of the free GPU memory that the KV cache takes.
        said: what the engine runs with; None: nothing of it is printed.
    """
    lines = dict.fromkeys(("config", "kv_cache", "graphs", "end"), "")
    lines |= said.lines() if said else {}
    start = _START.read_text().format(
        model=model, world_size=world_size, fraction=fraction, **lines
    )
    for line in filter(None, start.splitlines()):
        print(f"{stamp()} {line}" if line.startswith("[TRT-LLM]") else line)


def resolved(
    playbook: Playbook, options: Mapping[str, Any], *, graphs_by_default: bool
) -> Resolved:
    """What the played release runs with, by the YAML file of its options.

    Args:
        playbook: of this program; with its fault ``ignored_options`` the file has no effect.
        options: the file's content, in any release's spelling.
        graphs_by_default: whether this program captures graphs where the file is silent.
    """
    if playbook.fault_at("options"):
        options = {}
    flat = flattened(options)
    config = options.get("cuda_graph_config", {})
    is_on = flat.get("use_cuda_graph", graphs_by_default or bool(config)) and config is not None
    config = config or {}
    padding = [config.get(name) for name in ("enable_padding", "padding_enabled")]
    padding.append(flat.get("cuda_graph_padding_enabled"))
    largest = config.get("max_batch_size") or flat.get("cuda_graph_max_batch_size")
    largest = largest or _LARGEST_GRAPH
    sizes = config.get("batch_sizes") or flat.get("cuda_graph_batch_sizes")
    return Resolved(
        playbook.numbers,
        (kv_cache_quantization(options, "") or "auto").lower(),
        tuple(sizes or (1, 2, 4, *range(8, largest, 8), largest)) if is_on else (),
        any(padding),
        draft_tokens(options),
    )


def flattened(options: Mapping[str, Any]) -> dict[str, Any]:
    """The YAML file without the mapping that 0.20 and older have most of it in."""
    return {**options, **(options.get("pytorch_backend_config") or {})}


def draft_tokens(options: Mapping[str, Any]) -> int:
    """Tokens that are drafted at once, by the YAML file; 0: speculation is off."""
    speculative = options.get("speculative_config") or {}
    name = "num_nextn_predict_layers"
    return int(speculative.get(name, speculative.get("max_draft_len", 0)))
