"""How SGLang's server changes the settings that it is given, without a word about most of it.

As `ServerArgs.__post_init__` of 0.4.2 to 0.5.23 does with DeepSeek-V3 on GPUs of one kind: what
becomes of attention DP, of the limit of requests and of the share of memory.
"""

import re
from typing import Any

from perfgate.rehearsal.options import GivenOptions

# MiB of a GPU, as nvidia-smi tells it.
_GPU_MEMORY = {"H200": 143_771, "H100": 81_559, "B200": 183_359}
_LARGE = 160 * 1024  # MiB
_FEWEST_RESERVED = 10 * 1024  # MiB
_KV_TOKENS = 700_000  # made up
_UNDER_SPECULATION = 48
_NO_SPECULATION = {"speculative_num_steps": None, "speculative_num_draft_tokens": None}


class RefusedSettings(Exception):
    """The server ends with this message."""


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a release, e.g. (0, 5, 3)."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def resolved(given: GivenOptions, version: str, gpu: str) -> dict[str, Any]:
    """What ``/get_server_info`` tells.

    Args:
        given: the command line.
        version: the release that is played.
        gpu: name of the GPUs.

    Raises:
        RefusedSettings: the release ends with an error.
    """
    release = numbers(version)
    model = given.text("--model-path")
    settings: dict[str, Any] = {
        "model_path": model,
        "served_model_name": given.text("--served-model-name", model),
        "api_key": given.text("--api-key") or None,
        "version": version,
        "tp_size": given.integer("--tp-size", 1),
        "pp_size": given.integer("--pp-size", 1),
        "ep_size": given.integer("--ep-size", 1),
        "dp_size": given.integer("--dp-size", 1),
        "enable_dp_attention": given.has("--enable-dp-attention"),
        "max_running_requests": _number(given, "--max-running-requests"),
        "chunked_prefill_size": _chunk(given, gpu),
        "max_prefill_tokens": given.integer("--max-prefill-tokens", 16384),
        "context_length": _number(given, "--context-length"),
        "kv_cache_dtype": given.text("--kv-cache-dtype", "auto"),
        "disable_radix_cache": given.has("--disable-radix-cache"),
        "disable_overlap_schedule": given.has("--disable-overlap-schedule"),
        "disable_cuda_graph": given.has("--disable-cuda-graph"),
        "enable_torch_compile": given.has("--enable-torch-compile"),
        "torch_compile_max_bs": given.integer("--torch-compile-max-bs", 32),
        "quantization": given.text("--quantization") or None,
        "attention_backend": given.text("--attention-backend") or "fa3",
        "moe_runner_backend": given.text("--moe-runner-backend", "auto"),
        "stream_interval": given.integer("--stream-interval", 1),
        "trust_remote_code": given.has("--trust-remote-code"),
        "random_seed": given.integer("--random-seed", 859701050),
        "max_total_num_tokens": _KV_TOKENS,
    }
    if given.has("--enable-ep-moe"):
        settings["ep_size"] = settings["tp_size"]
    _speculate(given, settings, release)
    graphs = _graphs(given, settings, release)
    # Of the flag as it is given: the share is worked out before the flag is looked at.
    settings["mem_fraction_static"] = _fraction(given, settings, gpu, graphs)
    _divide_attention(given, settings, release)
    return settings


def _divide_attention(
    given: GivenOptions, settings: dict[str, Any], release: tuple[int, ...]
) -> None:
    if release >= (0, 5, 22):
        settings["attn_dp_size"] = given.integer("--attn-dp-size", 1)
        if settings["enable_dp_attention"] and settings["attn_dp_size"] == 1:
            settings |= {"attn_dp_size": settings["dp_size"], "dp_size": 1}
        parts = settings["attn_dp_size"]
        settings["enable_dp_attention"] = parts > 1
    elif not settings["enable_dp_attention"]:
        return
    elif release <= (0, 4, 2):
        settings["dp_size"] = settings["tp_size"]
        settings["chunked_prefill_size"] //= 2
        return
    elif settings["dp_size"] == 1 and release < (0, 5, 2):
        raise RefusedSettings(
            "Please set a dp-size > 1. You can use 1 < dp-size <= tp-size to enable dp attention"
        )
    else:
        parts = settings["dp_size"]
        settings["enable_dp_attention"] = parts > 1  # without a word
    settings["chunked_prefill_size"] //= parts


def _speculate(given: GivenOptions, settings: dict[str, Any], release: tuple[int, ...]) -> None:
    algorithm = given.text("--speculative-algorithm") or None
    settings |= {"speculative_algorithm": algorithm, **_NO_SPECULATION}
    if algorithm is None:
        return
    settings["speculative_num_steps"] = _number(given, "--speculative-num-steps")
    settings["speculative_eagle_topk"] = _number(given, "--speculative-eagle-topk")
    settings["speculative_num_draft_tokens"] = _number(given, "--speculative-num-draft-tokens")
    settings["max_running_requests"] = settings["max_running_requests"] or _UNDER_SPECULATION
    if release < (0, 5, 11):
        settings["disable_overlap_schedule"] = True


def _graphs(given: GivenOptions, settings: dict[str, Any], release: tuple[int, ...]) -> int:
    """The largest batch of CUDA graphs, told under the release's own names."""
    sizes = [int(one) for name in _SIZES for one in given.all(name)]
    asked = next((int(one) for name in _LARGEST for one in given.all(name)), None)
    largest = max(sizes) if sizes else asked or (512 if settings["tp_size"] >= 4 else 256)
    if release >= (0, 5, 14):
        off = settings["disable_cuda_graph"]
        settings["cuda_graph_config"] = {
            "decode": {"backend": "disabled" if off else "full", "max_bs": largest, "bs": sizes}
        }
    else:
        settings |= {"cuda_graph_max_bs": largest, "cuda_graph_bs": sizes or None}
    return largest


_SIZES = ("--cuda-graph-bs", "--cuda-graph-bs-decode")
_LARGEST = ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode")


def _fraction(given: GivenOptions, settings: dict[str, Any], gpu: str, graphs: int) -> float:
    """The share of memory: what is not reserved for chunks, graphs, ranks, parts and drafts."""
    asked = given.number("--mem-fraction-static", 0.0)
    memory = _GPU_MEMORY.get(gpu)
    if asked or memory is None:
        return asked or 0.88
    chunk, parts = settings["chunked_prefill_size"], settings["dp_size"]
    tokens = chunk if chunk > 0 else settings["max_prefill_tokens"]
    reserved = 512 + max(tokens, 2048) * 1.5 + graphs * 2
    reserved += settings["tp_size"] * settings["pp_size"] / 8 * 1024
    if settings["enable_dp_attention"]:
        reserved += graphs * parts * 3
        reserved += graphs * parts * 1.5 if graphs > 300 else 0
    reserved = max(reserved, _FEWEST_RESERVED)
    reserved += 2 * 1024 if settings["speculative_algorithm"] else 0
    return float(round((memory - reserved) / memory, 3))


def _chunk(given: GivenOptions, gpu: str) -> int:
    default = 16384 if _GPU_MEMORY.get(gpu, 0) >= _LARGE else 8192
    return given.integer("--chunked-prefill-size", default)


def _number(given: GivenOptions, spelling: str) -> int | None:
    found = given.text(spelling)
    return int(found) if found else None
