"""How SGLang's server changes the settings that it is given, without a word about most of it.

As `ServerArgs.__post_init__` of 0.4.2 to 0.5.23 does with DeepSeek-V3 on GPUs of one kind: what
becomes of attention DP, of the limit of requests and of the share of memory.
"""

from pathlib import Path
from typing import Any

from msgspec import toml

from perfgate.rehearsal.options import GivenOptions
from perfgate.rehearsal.playbook import release_numbers

# MiB of a GPU, as nvidia-smi tells it.
_GPU_MEMORY = {"H200": 143_771, "H100": 81_559, "B200": 183_359}
_LARGE = 160 * 1024  # MiB
_FEWEST_RESERVED = 10 * 1024  # MiB
_KV_TOKENS = 700_000  # made up
_UNDER_SPECULATION = 48
_NO_SPECULATION = {"speculative_num_steps": None, "speculative_num_draft_tokens": None}
_SIZES = ("--cuda-graph-bs", "--cuda-graph-bs-decode")
_LARGEST = ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode")


class RefusedSettings(Exception):
    """The server ends with this message."""


def resolved(given: GivenOptions, version: str, gpu: str) -> dict[str, Any]:
    """What ``/get_server_info`` tells.

    Args:
        given: the command line.
        version: the release that is played.
        gpu: name of the GPUs.

    Raises:
        RefusedSettings: the release ends with an error.
    """
    release = release_numbers(version)
    model = given.text("--model-path")
    settings: dict[str, Any] = {
        "model_path": model,
        "served_model_name": given.text("--served-model-name", model),
        "version": version,
        "max_total_num_tokens": _KV_TOKENS,
        "chunked_prefill_size": given.integer(
            "--chunked-prefill-size", 16384 if _GPU_MEMORY.get(gpu, 0) >= _LARGE else 8192
        ),
    }
    table = toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
    for name in table["flags"]:
        settings[name] = given.has(_option(name))
    for name, default in table["texts"].items():
        settings[name] = given.text(_option(name)) or default or None
    for name, default in table["numbers"].items():
        number = _number(given, name)
        settings[name] = (default or None) if number is None else number
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
    for name in (*_NO_SPECULATION, "speculative_eagle_topk"):
        settings[name] = _number(given, name)
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


def _number(given: GivenOptions, name: str) -> int | None:
    text = given.text(_option(name))
    return int(text) if text else None


def _option(name: str) -> str:
    """The option that a setting is called like."""
    return f"--{name.replace('_', '-')}"
