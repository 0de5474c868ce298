"""Resolved settings: what a running vLLM server says that it runs with, in the scenario's words.

``/server_info`` tells most, and only in the server's development mode, which also opens endpoints
that change it: perfgate never turns that on, and asks in case a site does. The log tells the rest
of the time. What was merely given on its command line is not taken for what is in force.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from perfgate.core.measurement import Json
from perfgate.engines.in_force import InForce, in_flight
from perfgate.engines.vllm.table import FACTS
from perfgate.engines.vllm.told_config import of_answer, of_log
from perfgate.scenarios.scenario import CudaGraphs, Scenario

PATHS = ("/server_info?config_format=json", "/server_info")
WORDS = (
    "with config: ",
    "chunked prefill is enabled",
    "asynchronous scheduling is",
    "kv cache size: ",
)

_DRAFTED = re.compile(r"num_spec(?:ulative)?_tokens=(\d+)")


def in_force(
    scenario: Scenario, answered: Mapping[str, Json], log: Iterable[str]
) -> InForce | None:
    """What the server says of itself; None: it says nothing.

    Args:
        scenario: what was asked.
        answered: what it answered under one of `PATHS`, and under ``path`` which; empty: nothing.
        log: lines of its log, those with one of `WORDS` among them.
    """
    logged = of_log(log)
    told = {**logged, **of_answer(answered)}
    if not told:
        return None
    path = answered.get("path")
    settings = dict(_settings(scenario, told))
    return InForce(
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
    config = told.get("compilation_config")
    if not isinstance(config, dict):
        return None
    level = config.get("mode", config.get("level"))
    return None if level is None else level not in (0, "NONE")


def _graphs(asked: CudaGraphs | None, told: Mapping[str, Json]) -> dict[str, Json] | None:
    """Whether graphs are captured, and the sizes where the scenario asks for sizes."""
    if told.get("enforce_eager") is True:
        return {"enabled": False}
    config = told.get("compilation_config")
    if not isinstance(config, dict):
        return None
    sizes = _sizes(told)
    mode = config.get("cudagraph_mode")
    is_on = bool(sizes) if mode is None else mode not in (0, "NONE")
    found: dict[str, Json] = {"enabled": is_on}
    if asked is not None and asked.batch_sizes:
        is_same = sorted(asked.batch_sizes) == sizes
        found["batch_sizes"] = [*(asked.batch_sizes if is_same else sizes)]
    if asked is not None and asked.max_batch_size is not None:
        found["max_batch_size"] = max(sizes, default=0)
    return found


def _sizes(told: Mapping[str, Json]) -> list[int]:
    config = told.get("compilation_config")
    sizes = config.get("cudagraph_capture_sizes") if isinstance(config, dict) else None
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
    sizes: list[Json] = [*_sizes(told)]
    config = told.get("compilation_config")
    if isinstance(config, dict):
        kept["cudagraph_capture_sizes"] = sizes
        kept |= {
            name: config[name] for name in ("mode", "level", "cudagraph_mode") if name in config
        }
    return kept
