"""How SGLang's server changes the settings that it is given, without a word about most of it.

As `ServerArgs.__post_init__` of 0.4.2 to 0.5.23 does with DeepSeek-V3 on GPUs of one kind: what
becomes of attention DP, of the limit of requests and of the share of memory.
"""

from typing import Any

from perfgate.rehearsal.options import GivenOptions
from perfgate.rehearsal.playbook import crash, release_numbers
from perfgate.rehearsal.programs.report_format import option_values

# MiB of a GPU, as nvidia-smi tells it.
_GPU_MEMORY = {"H200": 143_771, "H100": 81_559, "B200": 183_359}
_LARGE = 160 * 1024  # MiB
_FEWEST_RESERVED = 10 * 1024  # MiB
_KV_TOKENS = 700_000  # made up
_UNDER_UNLIMITED = (  # by 0
    *("max_running_requests", "context_length", "speculative_num_steps"),
    *("speculative_num_draft_tokens", "speculative_eagle_topk"),
)
_UNDER_SPECULATION = 48
_UNLIMITED = (  # by 0
    *("max_running_requests", "context_length", "speculative_num_steps"),
    *("speculative_num_draft_tokens", "speculative_eagle_topk"),
)
_SIZES = ("--cuda-graph-bs", "--cuda-graph-bs-decode")
_LARGEST = ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode")


def resolved(given: GivenOptions, version: str, gpu: str) -> dict[str, Any]:
    """What ``/get_server_info`` tells.

    Args:
        given: the command line.
        version: the release that is played.
        gpu: name of the GPUs.
    """
    release = release_numbers(version)
    large = _GPU_MEMORY.get(gpu, 0) >= _LARGE
    settings: dict[str, Any] = {
        **option_values(__file__, "settings", given),
        "version": version,
        "max_total_num_tokens": _KV_TOKENS,
        "chunked_prefill_size": given.get("--chunked-prefill-size", 16384 if large else 8192),
    }
    settings["served_model_name"] = settings["served_model_name"] or settings["model_path"]
    if settings["speculative_algorithm"]:
        settings["max_running_requests"] = settings["max_running_requests"] or _UNDER_SPECULATION
        settings["disable_overlap_schedule"] |= release < (0, 5, 11)
    for name in _UNLIMITED:
        settings[name] = settings[name] or None
    if given.has("--enable-ep-moe"):
        settings["ep_size"] = settings["tp_size"]
    graphs = _graphs(given, settings, release)
    # Of the flag as it is given: the share is worked out before the flag is looked at.
    settings["mem_fraction_static"] = _fraction(given, settings, gpu, graphs)
    _divide_attention(given, settings, release)
    return settings


def _divide_attention(
    given: GivenOptions, settings: dict[str, Any], release: tuple[int, ...]
) -> None:
    if release >= (0, 5, 22):
        settings["attn_dp_size"] = given.get("--attn-dp-size", 1)
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
        told = "You can use 1 < dp-size <= tp-size to enable dp attention"
        crash(f"AssertionError: Please set a dp-size > 1. {told}")
    else:
        parts = settings["dp_size"]
        settings["enable_dp_attention"] = parts > 1  # without a word
    settings["chunked_prefill_size"] //= parts


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


def _fraction(given: GivenOptions, settings: dict[str, Any], gpu: str, graphs: int) -> float:
    """The share of memory: what is not reserved for chunks, graphs, ranks, parts and drafts."""
    asked = given.get("--mem-fraction-static", 0.0)
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
