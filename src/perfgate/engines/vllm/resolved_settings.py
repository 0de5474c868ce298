"""Resolved settings: what a running vLLM server says that it runs with, in the scenario's words.

``/server_info`` tells most, as JSON or as text, and only in the server's development mode, which
also opens endpoints that change it: perfgate never turns that on, and asks in case a site does. The
rest of the time the line of its log tells with which an engine core begins
(``VllmConfig.__str__``). Names are those of the line, and of the same keys in JSON; a name that is
missing was not told. What was merely given on its command line is not taken for what is in force.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perfgate.core.files import json_text
from perfgate.core.measurement import Json
from perfgate.engines.effective_settings import EffectiveSettings, in_flight
from perfgate.engines.vllm.table import FACTS
from perfgate.scenarios.scenario import CudaGraphs, Scenario

PATHS = ("/server_info?config_format=json", "/server_info")
WORDS = (
    "with config: ",
    "chunked prefill is enabled",
    "asynchronous scheduling is",
    "kv cache size: ",
)

_LINE = re.compile(r"Initializing an? (?:V[01] )?LLM engine \(v(?P<version>[^)]+)\) with config: ")
_CHUNKED = re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)")
_ASYNC = re.compile(r"Asynchronous scheduling is (enabled|disabled)")
# One line an engine core; up to 0.11 one a worker, all of the same size.
_KV_CACHE = re.compile(r"KV cache size: ([\d,]+) tokens")
_NAME = re.compile(r"\w+")
_ENUM = re.compile(r"<\w+\.(\w+): [^>]*>")
_CLOSING = {"(": ")", "[": "]", "{": "}"}

_WHOLE = ("compilation_config", "speculative_config")
_OF_LINE = (*(name for keys in FACTS.sections.values() for name in keys.values()), *_WHOLE)
_HOLDERS = ("kernel_config", "observability_config")  # sections that the line has as texts
_DRAFTED = re.compile(r"num_spec(?:ulative)?_tokens=(\d+)")


def effective_settings(
    scenario: Scenario, answered: Mapping[str, Json], log: Iterable[str]
) -> EffectiveSettings | None:
    """What the server says of itself; None: it says nothing.

    Args:
        scenario: what was asked.
        answered: what it answered under one of `PATHS`, and under ``path`` which; empty: nothing.
        log: lines of its log, those with one of `WORDS` among them.
    """
    logged = _of_log(log)
    told = {**logged, **_of_answer(answered)}
    if not told:
        return None
    path = answered.get("path")
    settings = dict(_settings(scenario, told))
    return EffectiveSettings(
        settings=settings,
        limits=tuple(_limits(scenario, settings, told)),
        told=_kept(told),
        source=f"GET {path}" if path else "its log",
    )


def _settings(scenario: Scenario, told: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    asked = scenario.engine.settings
    for setting, name in FACTS.reported.items():
        if name in told:
            yield setting, told[name]
    for setting, name in FACTS.switches.items():
        if name in told:
            yield setting, bool(told[name])
    # Of these ``auto`` is asked for, or told, where the server chooses for itself.
    for setting, name in FACTS.chosen.items():
        value = told.get(name)
        if isinstance(value, str) and "auto" not in (value, getattr(asked, setting)):
            yield setting, value.rpartition(".")[2]
    yield from _parallel(scenario, told)
    if "speculative_config" in told:
        yield "mtp", {"layers": _drafted(told["speculative_config"])}
    if (is_compiled := _is_compiled(told)) is not None:
        yield "torch_compile", is_compiled
    if (graphs := _graphs(asked.cuda_graphs, told)) is not None:
        yield "cuda_graphs", graphs


def _parallel(scenario: Scenario, told: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Replicas of a model without experts each say that they are alone.

    Whether those that are several are parts of one attention, the log does not tell.
    """
    asked, count = scenario.engine.settings, told.get("data_parallel_size")
    if isinstance(count, int):
        has_experts = told.get("is_moe_model")
        if count > 1 or asked.dp in (None, 1):
            yield "dp", count
        if count == 1 or isinstance(has_experts, bool):
            yield "attention_dp", count > 1 and has_experts is True
    spread = told.get("enable_expert_parallel")
    if isinstance(spread, bool):
        yield "ep", asked.tp * (asked.dp or 1) if spread else 1


def _drafted(config: Json) -> int:
    """Tokens that are drafted at once: ``SpeculativeConfig(method=…, num_spec_tokens=1)``."""
    if isinstance(config, dict):
        count = config.get("num_speculative_tokens")
        return count if isinstance(count, int) else 0
    found = _DRAFTED.search(config) if isinstance(config, str) else None
    return int(found[1]) if found else 0


def _is_compiled(told: Mapping[str, Json]) -> bool | None:
    if told.get("enforce_eager") is True:
        return False
    config = _compilation(told) or {}
    level = config.get("mode", config.get("level"))
    return None if level is None else level not in (0, "NONE")


def _graphs(asked: CudaGraphs | None, told: Mapping[str, Json]) -> dict[str, Json] | None:
    """Whether graphs are captured, and the sizes where the scenario asks for sizes."""
    if told.get("enforce_eager") is True:
        return {"enabled": False}
    config, sizes = _compilation(told), _sizes(told)
    if config is None:
        return None
    mode = config.get("cudagraph_mode")
    is_on = bool(sizes) if mode is None else mode not in (0, "NONE")
    found: dict[str, Json] = {"enabled": is_on}
    if asked is not None and asked.batch_sizes:
        is_same = sorted(asked.batch_sizes) == sizes
        found["batch_sizes"] = [*(asked.batch_sizes if is_same else sizes)]
    if asked is not None and asked.max_batch_size is not None:
        found["max_batch_size"] = max(sizes, default=0)
    return found


def _compilation(told: Mapping[str, Json]) -> Mapping[str, Json] | None:
    config = told.get("compilation_config")
    return config if isinstance(config, dict) else None


def _sizes(told: Mapping[str, Json]) -> list[int]:
    sizes = (_compilation(told) or {}).get("cudagraph_capture_sizes")
    return sorted(one for one in sizes if isinstance(one, int)) if isinstance(sizes, list) else []


def _limits(
    scenario: Scenario, settings: Mapping[str, Json], told: Mapping[str, Json]
) -> Iterator[str]:
    """What bounds this load although nothing of it is asked, or although it is."""
    asked, load = scenario.engine.settings, scenario.workload
    parts, flight = asked.dp or 1, in_flight(scenario)
    most = settings.get("max_batch_size", asked.max_batch_size)
    if isinstance(most, int) and most * parts < flight:
        yield f"max_num_seqs {most * parts}, {flight} requests in flight"
    largest = max(_sizes(told), default=0)
    batch = -(-min(flight, most * parts if isinstance(most, int) else flight) // parts)
    graphs = settings.get("cuda_graphs")
    if isinstance(graphs, dict) and graphs["enabled"] and 0 < largest < batch:
        yield f"CUDA graphs for batches of up to {largest}, batches of up to {batch}"
    tokens = told.get("kv_cache_size_tokens")
    if load is not None and load.isl and load.osl and isinstance(tokens, int):
        needed = flight * (load.isl + load.osl)
        if tokens * parts < needed:
            yield (
                f"KV cache of {tokens * parts} tokens, {flight} requests of "
                f"{load.isl + load.osl} tokens in flight: {needed}"
            )
    if settings.get("kv_cache_reuse") and asked.kv_cache_reuse is None and load is not None:
        yield "prefix cache on by default: a prompt that comes again is not computed again"


def _kept(told: Mapping[str, Json]) -> dict[str, Json]:
    """What is worth keeping: single values, and what is captured."""
    kept: dict[str, Json] = {
        name: value for name, value in told.items() if not isinstance(value, dict | list)
    }
    if (config := _compilation(told)) is not None:
        kept["cudagraph_capture_sizes"] = [*_sizes(told)]
        named = ("mode", "level", "cudagraph_mode")
        kept |= {name: config[name] for name in named if name in config}
    return kept


# Its configuration, as one flat mapping. --------------------------------------------------------


def _of_answer(told: Mapping[str, Json]) -> dict[str, Json]:
    """What an answer of ``/server_info`` tells; empty: nothing that is known here."""
    config = told.get("vllm_config")
    if isinstance(config, str):
        return of_text(config)
    if not isinstance(config, dict):
        return {}
    found: dict[str, Json] = {}
    for section, keys in FACTS.sections.items():
        within = config.get(section)
        if isinstance(within, dict):
            found |= {name: within[key] for key, name in keys.items() if key in within}
    return found | {name: config[name] for name in _WHOLE if name in config}


def _of_log(lines: Iterable[str]) -> dict[str, Json]:
    """What the log tells; empty: it has no line of an engine's configuration."""
    found: dict[str, Json] = {}
    beside: dict[str, Json] = {}
    for line in lines:
        if begun := _LINE.search(line):
            found = {"version": begun["version"], **of_text(line[begun.end() :])}
        elif chunked := _CHUNKED.search(line):
            beside["max_num_batched_tokens"] = int(chunked[1])
        elif scheduled := _ASYNC.search(line):
            beside["async_scheduling"] = scheduled[1] == "enabled"
        elif cache := _KV_CACHE.search(line):
            beside["kv_cache_size_tokens"] = int(cache[1].replace(",", ""))
    return {**found, **beside} if found else {}


def of_text(text: str) -> dict[str, Json]:
    """What the text of a configuration tells."""
    parts = dict(_parts(text))
    if "chunked_prefill_enabled" in parts:  # its name up to 0.11
        parts["enable_chunked_prefill"] = parts["chunked_prefill_enabled"]
    found = {name: _value(parts[name]) for name in _OF_LINE if name in parts}
    for holder in _HOLDERS:
        for name in FACTS.sections[holder].values():
            inside = re.search(rf"\b{name}=('[^']*'|[\w.]+)", parts.get(holder, ""))
            if inside is not None:
                found[name] = _value(inside[1])
    return found


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each ``name=value``, divided where no bracket or quote is open."""
    begun, expected, quote = 0, [], ""
    for at, letter in enumerate(f"{text}, "):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _CLOSING:
            expected.append(_CLOSING[letter])
        elif expected and letter == expected[-1]:
            expected.pop()
        elif letter == "," and not expected:
            name, equals, value = text[begun:at].strip().partition("=")
            if equals and _NAME.fullmatch(name):
                yield name, value
            begun = at + 1


def _value(text: str) -> Json:
    """A value of the text as plain JSON; what is none stays text."""
    if text.startswith("{"):
        try:
            return dict(json_text.parse_object(text.encode()))
        except ValueError:
            pass
    try:
        return _plain(ast.literal_eval(_ENUM.sub(r"'\1'", text)))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _plain(value: Any) -> Json:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
