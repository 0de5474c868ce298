"""Resolved settings: what a running SGLang says that it runs with, in the scenario's words. Pure.

Its ``/get_server_info`` (0.5.23: also ``/server_info``) tells every argument as the server itself
has changed it; how many requests its scheduler admits stands in its log, too, which is all that
releases before 0.5.23 tell of it. Only what is named here is kept: the answer holds keys.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

from perfgate.core.measurement import Json
from perfgate.engines.effective_settings import EffectiveSettings, in_flight
from perfgate.engines.sglang.table import FACTS
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Scenario

PATHS = ("/get_server_info", "/server_info")
WORDS = ("max_total_num_tokens=",)
_ADMITTED = re.compile(r"max_total_num_tokens=.*\bmax_running_requests=(\d+)")
_EFFECTIVE = "effective_max_running_requests_per_dp"
_INVERTED: Mapping[str, str] = {
    "kv_cache_reuse": "disable_radix_cache",
    "overlap_scheduler": "disable_overlap_schedule",
}
_CHOSEN_BY_SERVER = "auto"


def effective_settings(
    scenario: Scenario, answer: Mapping[str, Json], log: Iterable[str] = ()
) -> EffectiveSettings | None:
    """What the server's answer says; None: it says nothing of its arguments.

    Args:
        scenario: what was asked.
        answer: of the server, and under ``path`` where it was told.
        log: its lines with one of `WORDS`.
    """
    if "tp_size" not in answer:
        return None
    admitted = _effective(answer) or _admitted(log)
    told = {**answer, _EFFECTIVE: admitted} if admitted else dict(answer)
    settings = dict(_settings(scenario.engine.settings, told))
    return EffectiveSettings(
        settings=settings,
        limits=tuple(_limits(scenario, told)),
        told=_kept(told),
        source=str(told.get("path", PATHS[0])),
    )


def _settings(asked: EngineSettings, told: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for name, key in FACTS.reported.items():
        if told.get(key) is not None and getattr(asked, name) != _CHOSEN_BY_SERVER:
            yield name, told[key]
    for name, key in _INVERTED.items():
        if isinstance(told.get(key), bool):
            yield name, not told[key]
    parts = _attention_parts(told)
    yield "attention_dp", parts > 1
    yield "dp", parts if asked.attention_dp else _integer(told.get("dp_size"), 1)
    yield from _chunks(asked, told, parts)
    yield "mtp", _speculation(asked, told)
    if asked.cuda_graphs is not None:
        yield "cuda_graphs", _graphs(asked.cuda_graphs, told)


def _attention_parts(told: Mapping[str, Json]) -> int:
    """Parts of the attention's data parallelism; 1: it is off, whatever the flag says."""
    own = _integer(told.get("attn_dp_size"), 1)  # from 0.5.22 on
    return own if own > 1 or not told.get("enable_dp_attention") else _replicas(told)


def _replicas(told: Mapping[str, Json]) -> int:
    return _integer(told.get("dp_size"), 1)


def _chunks(
    asked: EngineSettings, told: Mapping[str, Json], parts: int
) -> Iterator[tuple[str, Json]]:
    """The size that is told is that of one part of the attention."""
    size = _integer(told.get("chunked_prefill_size"), 0)
    yield "chunked_context", size > 0
    if asked.chunked_context is False:
        if "max_prefill_tokens" in told:
            yield "max_num_tokens", told["max_prefill_tokens"]
    elif size > 0:
        whole = asked.max_num_tokens is not None and asked.max_num_tokens // parts == size
        yield "max_num_tokens", asked.max_num_tokens if whole else size


def _speculation(asked: EngineSettings, told: Mapping[str, Json]) -> Json:
    if told.get("speculative_algorithm") is None:
        return {"layers": 0} if asked.mtp is not None and not asked.mtp.layers else None
    return {"layers": told.get("speculative_num_steps")}


def _graphs(asked: CudaGraphs, told: Mapping[str, Json]) -> Json:
    """Only what is asked for: the rest is the server's to choose."""
    found: dict[str, Json] = {"enabled": _graphs_are_on(told)}
    if asked.enabled and asked.max_batch_size is not None:
        found["max_batch_size"] = _largest_graph(told)
    if asked.batch_sizes:
        sizes = told.get("cuda_graph_bs")
        found["batch_sizes"] = _decoding(told).get("bs") if sizes is None else sizes
    return found


def _decoding(told: Mapping[str, Json]) -> Mapping[str, Json]:
    """How batches that decode are captured, from 0.5.14 on."""
    config = told.get("cuda_graph_config")
    decoding = config.get("decode") if isinstance(config, dict) else None
    return decoding if isinstance(decoding, dict) else {}


def _graphs_are_on(told: Mapping[str, Json]) -> bool:
    is_off = bool(told.get("disable_cuda_graph")) or _decoding(told).get("backend") == "disabled"
    return not is_off


def _largest_graph(told: Mapping[str, Json]) -> Json:
    found = told.get("cuda_graph_max_bs")
    return _decoding(told).get("max_bs") if found is None else found


def _kept(told: Mapping[str, Json]) -> dict[str, Json]:
    kept = {key: told[key] for key in FACTS.kept if key in told}
    largest = _largest_graph(told)
    return kept if largest is None else {**kept, "cuda_graph_max_bs": largest}


# Limits. ------------------------------------------------------------------------------------


def _limits(scenario: Scenario, told: Mapping[str, Json]) -> Iterator[str]:
    """What bounds the settings for this load, both numbers in a line."""
    asked = in_flight(scenario)
    places = _integer(told.get("attn_dp_size"), 1) * _replicas(told)
    load = f"{asked} requests in flight" + (f" on {places} parts" if places > 1 else "")
    running = _integer(told.get("max_running_requests"), 0)
    admitted = running if _shares_its_limit(told) else running * _replicas(told)
    if 0 < admitted < asked:
        is_own = scenario.engine.settings.max_batch_size is None
        speculates = told.get("speculative_algorithm") is not None
        why = ": the server's own limit under speculative decoding" if is_own and speculates else ""
        yield f"max_running_requests {running}, {load}{why}"
    of_part = _integer(told.get(_EFFECTIVE), 0)
    expected = min(admitted or asked, asked)
    if 0 < of_part * places < expected:
        yield f"{_EFFECTIVE} {of_part}, {load}"
    batch = ceil(min(of_part * places or expected, expected) / places)
    compiled = _integer(told.get("torch_compile_max_bs"), 0)
    if told.get("enable_torch_compile") and 0 < compiled < batch:
        yield f"torch_compile_max_bs {compiled}, {load}: larger batches are not compiled"
    captured = _integer(_largest_graph(told), 0)
    if _graphs_are_on(told) and 0 < captured < batch:
        yield f"cuda_graph_max_bs {captured}, {load}: larger batches run without CUDA graphs"


def _shares_its_limit(told: Mapping[str, Json]) -> bool:
    """Whether `dp_size` counts parts of the attention, which share one limit; else replicas."""
    return bool(told.get("enable_dp_attention")) and _integer(told.get("attn_dp_size"), 1) == 1


def _admitted(log: Iterable[str]) -> int:
    """What each scheduler says at its start that it admits; the fewest of all; 0: nothing."""
    found = [int(match[1]) for line in log if (match := _ADMITTED.search(line))]
    return min(found, default=0)


def _effective(told: Mapping[str, Json]) -> int:
    """What the scheduler admits of one part, after the KV cache was made; 0: it tells nothing."""
    states = told.get("internal_states")
    first = states[0] if isinstance(states, list) and states else {}
    found = first.get(_EFFECTIVE) if isinstance(first, dict) else None
    return _integer(found, 0)


def _integer(value: Json, otherwise: int) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number else otherwise  # type: ignore[arg-type]
