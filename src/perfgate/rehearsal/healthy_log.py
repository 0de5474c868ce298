"""Healthy log lines of TensorRT-LLM, some of them with scary words: free memory, OOM, errors.

Lines as in public issue reports (#6294, #7104) and in the sources of 1.0 and newer.
"""

import time


def stamp() -> str:
    """Time as TensorRT-LLM's logger writes it."""
    return time.strftime("[%m/%d/%Y-%H:%M:%S]")


def info(message: str) -> None:
    """A line of TensorRT-LLM's own logger, which writes to standard output."""
    print(f"{stamp()} [TRT-LLM] [I] {message}")


def warning(message: str) -> None:
    """Likewise, a warning."""
    print(f"{stamp()} [TRT-LLM] [W] {message}")


def banner(version: str) -> None:
    """What every program prints that imports tensorrt_llm."""
    print(f"[TensorRT-LLM] TensorRT-LLM version: {version}", flush=True)


def engine_starts(model: str, world_size: int, fraction: float) -> None:
    """From the first line to the ready engine.

    Args:
        model: name or folder of the model.
        world_size: ranks.
        fraction: of the free GPU memory that the KV cache takes.
    """
    info(f"Using LLM with PyTorch backend, {world_size} ranks")
    info(f"Loading weights of {model} concurrently: 100%|##########| 80/80")
    warning("Fallback to regular model init: no CUDA error, meta init is not supported for it")
    info("Use 83.44 GiB for model weights.")
    info(
        "Peak memory during memory usage profiling (torch + non-torch): 88.10 GiB, available KV "
        "cache memory when calculating max tokens: 81.66 GiB, fraction is set "
        f"{fraction}, kv size is 35136. device total memory 178.35 GiB"
    )
    info("Estimated max memory in KV cache : 81.6600 GiB")
    warning(
        f"Both free_gpu_memory_fraction and max_tokens are set (to {fraction} and 2495488, "
        "respectively). The smaller value will be used."
    )
    print("[TensorRT-LLM][INFO] Max KV cache pages per sequence: 65 [window size=2049]")
    print("[TensorRT-LLM][INFO] Number of tokens per block: 32.")
    print(
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 81.66 GiB for max tokens in paged KV "
        "cache (2495488)."
    )
    info("[Autotuner]: Autotuning process starts ...")
    warning("[Autotuner] Failed when profiling runner 2, tactic 11: skipped, others are used.")
    info("[Autotuner]: Autotuning process ends")
    info("Creating CUDA graph instances for 10 batch sizes.")
    info("Run generation only CUDA graph warmup for batch size=384, free memory 1.63 of 5.87 GiB")
