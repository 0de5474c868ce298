"""Resolved settings: what TensorRT-LLM prints of itself while it starts, in the scenario's words.

Neither trtllm-serve nor trtllm-bench answers for its settings; both print the same lines on the
PyTorch backend. Sources: `validate_and_set_kv_cache_quant` (from about 0.19 on), the warm-up of
`PyTorchModelEngine` (likewise; drafted tokens from 1.1 on), `update_executor_config`
(``PyTorchConfig``, read in a log of 1.1.0rc3), and whole logs of 0.20.0 and 1.1.0rc3. No release
prints whether its attention is data parallel.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from math import inf

from perfgate.core.measurement import Json
from perfgate.engines.effective_settings import EffectiveSettings
from perfgate.scenarios.scenario import EngineSettings, Scenario

WORDS = (
    "pytorchconfig(",
    "validating kv cache config",
    "fraction is set",
    "creating cuda graph instances",
    "cuda graph warmup for batch size=",
    "setting pytorch memory fraction",
)

# Each needs what stands behind its value, so that a line which is cut tells nothing.
_KV_CACHE_DTYPE = re.compile(r'Validating KV Cache config against kv_cache_dtype="(\w+)"')
_FRACTION = re.compile(r"fraction is set ([\d.]+),")
_GRAPHS = re.compile(r"Creating CUDA graph instances for \d+ batch sizes\.")
_CAPTURED = re.compile(r"CUDA graph warmup for batch size=(\d+)(?:, draft_len=(\d+))?(?:,|\s*$)")
_END = re.compile(r"Setting PyTorch memory fraction to [\d.]+ \(")
_CONFIG = re.compile(
    r"PyTorchConfig\(.*\buse_cuda_graph=(?P<enabled>True|False), "
    r"cuda_graph_batch_sizes=(?P<batch_sizes>None|\[[\d, ]*\]), "
    r"cuda_graph_max_batch_size=(?P<max_batch_size>\d+), "
    r"cuda_graph_padding_enabled=(?P<padding>True|False),"
)


def effective_settings(
    scenario: Scenario, report: Mapping[str, Json], log: Iterable[str]
) -> EffectiveSettings:
    """What the log says, and a report of trtllm-bench where the log is silent.

    Args:
        scenario: what was asked.
        report: facts of the report; empty: there is none.
        log: its lines with one of `WORDS`, in order.
    """
    lines = tuple(log)
    asked, fraction = scenario.engine.settings, _first(_FRACTION, lines)
    settings = dict(_settings(asked, lines))
    if str(report.get("kv_cache_dtype")).lower() == asked.kv_cache_dtype:  # checked with the report
        settings.setdefault("kv_cache_dtype", asked.kv_cache_dtype)
    if report.get("decoding_mode") == "MTP":  # with how many layers, it does not say
        settings.setdefault("mtp", {})
    return EffectiveSettings(
        settings=settings,
        told={} if fraction is None else {"kv_cache_fraction": float(fraction[1])},
        source="its log",
        gap=_gap(lines),
    )


def _settings(asked: EngineSettings, lines: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
    # The first line is the model's: that of a draft model comes later.
    dtype = _first(_KV_CACHE_DTYPE, lines)
    if dtype is not None and asked.kv_cache_dtype != "auto":
        yield "kv_cache_dtype", dtype[1]
    captured = [match for line in lines if (match := _CAPTURED.search(line))]
    if drafted := [int(match[2]) for match in captured if match[2]]:
        yield "mtp", {"layers": max(drafted)}
    config, has_graphs = _first(_CONFIG, lines), _first(_GRAPHS, lines) is not None
    if has_graphs or config is not None:
        is_on = has_graphs or (config is not None and config["enabled"] == "True")
        sizes = {int(match[1]) for match in captured}
        yield (
            "cuda_graphs",
            {"enabled": is_on, **dict(_as_captured(asked, sizes)), **dict(_of(config, asked))},
        )
    elif dtype is not None and _first(_END, lines) is not None:
        # Silence tells that there are none in a log that has both ends of the start.
        yield "cuda_graphs", {"enabled": False}


def _of(config: re.Match[str] | None, settings: EngineSettings) -> Iterator[tuple[str, Json]]:
    """What is asked of graphs, as the configuration has it."""
    asked = settings.cuda_graphs
    if config is None or asked is None:
        return
    if asked.padding is not None:
        yield "padding", config["padding"] == "True"
    if asked.max_batch_size is not None:
        yield "max_batch_size", int(config["max_batch_size"])
    if asked.batch_sizes:
        sizes = sorted(map(int, re.findall(r"\d+", config["batch_sizes"])))
        is_same = sorted(asked.batch_sizes) == sizes
        yield "batch_sizes", [*(asked.batch_sizes if is_same else sizes)]


def _as_captured(settings: EngineSettings, sizes: Set[int]) -> Iterator[tuple[str, Json]]:
    """What is asked of graphs where those that were captured are just these.

    A release leaves out what is larger than a batch can be or than its memory holds, so that
    others prove nothing.
    """
    asked, most = settings.cuda_graphs, settings.max_batch_size or inf
    if asked is None or not sizes:
        return
    if asked.batch_sizes and sizes == {one for one in asked.batch_sizes if one <= most}:
        yield "batch_sizes", [*asked.batch_sizes]
    if asked.max_batch_size is not None and max(sizes) == min(asked.max_batch_size, most):
        yield "max_batch_size", asked.max_batch_size


def _gap(lines: tuple[str, ...]) -> str:
    """What of the start is missing from the log; empty: nothing."""
    has_beginning = _first(_KV_CACHE_DTYPE, lines) is not None
    has_end = any(_first(one, lines) is not None for one in (_FRACTION, _GRAPHS, _END))
    if has_beginning and has_end:
        return ""
    missing = "end" if has_beginning else "beginning" if has_end else "line"
    return f"its log is cut, or kept elsewhere: it has no {missing} of the engine's start"


def _first(pattern: re.Pattern[str], lines: tuple[str, ...]) -> re.Match[str] | None:
    return next((match for line in lines if (match := pattern.search(line))), None)
