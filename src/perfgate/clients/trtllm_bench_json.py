"""Read the report that trtllm-bench writes with ``--report_json``.

Layout: `get_statistics_dict` in `tensorrt_llm/bench/dataclasses/reporting.py`. It is written before
the text report is printed, so that it does not prove a clean exit.
"""

import json
from collections.abc import Mapping
from typing import Any

from perfgate.clients.report_lines import plain_fact, positive
from perfgate.clients.trtllm_bench_report import (
    EXTREMES,
    OPTIONAL,
    PERCENTILES,
    PERFORMANCE,
    STREAMING,
    BenchReport,
    require_whole_streaming,
)
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json

# Facts that the report shows → (section, key).
_FACTS = {
    "client_version": ("engine", "version"),
    "model": ("engine", "model"),
    "backend": ("engine", "backend"),
    "dtype": ("engine", "dtype"),
    "kv_cache_dtype": ("engine", "kv_cache_dtype"),
    "quantization": ("engine", "quantization"),
    "tp": ("world_info", "tp_size"),
    "pp": ("world_info", "pp_size"),
    "ep": ("world_info", "ep_size"),
    "gpus": ("world_info", "world_size"),
    "max_batch_size": ("world_info", "max_batch_size"),
    "max_num_tokens": ("world_info", "max_num_tokens"),
    "kv_cache_fraction": ("world_info", "kv_cache_percentage"),
    "scheduling_policy": ("world_info", "scheduling_policy"),
    "requests_completed": ("request_info", "num_requests"),
    "concurrency_mean": ("request_info", "avg_num_concurrent_requests"),
    "isl": ("request_info", "avg_input_length"),
    "osl": ("request_info", "avg_output_length"),
    "decoding_mode": ("decoding_stats", "mode"),
    "dataset_requests": ("dataset", "num_requests"),
    "dataset_isl": ("dataset", "avg_isl"),
    "dataset_osl": ("dataset", "avg_osl"),
}
_SPREADS = {"ttft": "ttft_percentiles", "tpot": "tpot_percentiles"}


def is_report(fields: object) -> bool:
    """Whether decoded JSON is such a report."""
    return isinstance(fields, dict) and {"performance", "request_info"} <= set(fields)


def parse(fields: Mapping[str, Any]) -> BenchReport:
    """Read a decoded report.

    Raises:
        RunError: ``no_metrics`` or ``truncated_output``, something is missing or no number.
    """
    performance = _section(fields, "performance")
    metrics = _scalars(performance, PERFORMANCE)
    facts: dict[str, Json] = {
        name: value
        for name, (section, key) in _FACTS.items()
        if (value := plain_fact(_optional(fields, section).get(key))) is not None
    }
    facts |= _share(facts)
    if "requests_completed" not in facts:
        raise RunError("no_metrics", "the report has no request_info.num_requests")
    spread, extremes = _spread(_optional(performance, "request_latency_percentiles_ms"), "e2el")
    metrics |= {"e2el_mean_ms": metrics["mean_request_latency_ms"], **spread}
    facts |= extremes
    streaming = _optional(fields, "streaming_metrics")
    if streaming:
        metrics |= _scalars(streaming, STREAMING)
        for short, key in _SPREADS.items():
            spread, extremes = _spread(_optional(streaming, key), short)
            metrics |= spread
            facts |= extremes
        speeds = _optional(streaming, "gen_tps_percentiles")
        facts |= {"output_speed_percentiles": dict(speeds)} if speeds else {}
    facts["streaming"] = require_whole_streaming(metrics)
    metrics |= _acceptance(_optional(fields, "decoding_stats"))
    machine = _optional(fields, "machine").get("name")
    facts |= {"gpu": machine} if isinstance(machine, str) else {}
    facts |= {"energy": dict(energy)} if (energy := _optional(fields, "energy")) else {}
    unknown = [*_unknown(performance, PERFORMANCE), *_unknown(streaming, STREAMING)]
    facts |= {"unknown_labels": list(unknown)} if unknown else {}
    return BenchReport(metrics, facts)


def _share(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The KV cache's share as a fraction: up to 1.0 the report has it in percent (#7102).

    More than the whole is percent; a share below one percent was never asked of an engine.
    """
    shown = facts.get("kv_cache_fraction")
    if isinstance(shown, bool) or not isinstance(shown, int | float) or shown <= 1:
        return {}
    return {"kv_cache_fraction": round(shown / 100, 6)}


def _section(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    if not isinstance(value, dict):
        raise RunError("no_metrics", f"the report has no {name}")
    return value


def _optional(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _scalars(
    section: Mapping[str, Any], table: Mapping[str, tuple[str, float]]
) -> dict[str, float]:
    found = {}
    for key, (metric, factor) in table.items():
        if key in OPTIONAL and key not in section:
            continue
        if key not in section:
            raise RunError("no_metrics", f"the report has no {key}")
        found[metric] = positive(section[key], f'"{key}": {json.dumps(section[key])}') * factor
    return found


def _spread(values: Mapping[str, Any], short: str) -> tuple[dict[str, float], dict[str, Json]]:
    """Percentiles of one latency, ms, as metrics; its extremes as facts."""
    metrics = {
        f"{short}_{statistic}_ms": positive(values[key], f'"{key}": {json.dumps(values[key])}')
        for key, statistic in PERCENTILES.items()
        if key in values
    }
    facts = {
        f"{short}_{name}_ms": plain_fact(values[key])
        for key, name in EXTREMES.items()
        if key in values
    }
    return metrics, facts


def _acceptance(stats: Mapping[str, Any]) -> dict[str, float]:
    """Metrics of speculative decoding; none when the report shows none."""
    found = {}
    for key, metric in (
        ("acceptance_length_percentiles", "acceptance_length"),
        ("draft_acceptance_rate_percentiles", "draft_acceptance_rate"),
    ):
        spread = _optional(stats, key)
        if "average" in spread:
            evidence = f'"{key}": {json.dumps(dict(spread))}'
            found[metric] = positive(spread["average"], evidence[:300])
    return found


def _unknown(section: Mapping[str, Any], table: Mapping[str, object]) -> list[str]:
    known = {*table, *_SPREADS.values(), "gen_tps_percentiles", "request_latency_percentiles_ms"}
    return [key for key in section if key not in known]
