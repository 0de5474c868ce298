"""Healthy log lines of TensorRT-LLM, some of them with scary words: free memory, OOM, errors.

Lines as in public issue reports (#6294, #7104) and in the sources of 1.0 and newer.
"""

import time
from pathlib import Path

_START = Path(__file__).with_name("healthy_start.txt")


def stamp() -> str:
    """Time as TensorRT-LLM's logger writes it."""
    return time.strftime("[%m/%d/%Y-%H:%M:%S]")


def info(message: str) -> None:
    """A line of TensorRT-LLM's own logger, which writes to standard output."""
    print(f"{stamp()} [TRT-LLM] [I] {message}")


def banner(version: str) -> None:
    """What every program prints that imports tensorrt_llm."""
    print(f"[TensorRT-LLM] TensorRT-LLM version: {version}", flush=True)


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


def engine_starts(model: str, world_size: int, fraction: float) -> None:
    """From the first line to the ready engine.

    Args:
        model: name or folder of the model.
        world_size: ranks.
        fraction: of the free GPU memory that the KV cache takes.
    """
    told = _START.read_text().format(model=model, world_size=world_size, fraction=fraction)
    for line in told.splitlines():
        print(f"{stamp()} {line}" if line.startswith("[TRT-LLM]") else line)
