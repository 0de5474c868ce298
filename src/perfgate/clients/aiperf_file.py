"""Read the summary that AIPerf exports without knowing what was asked: the file is all there is.

For people who only have that; a run of the suite knows its workload and requires it too
(`aiperf_results`). What the file itself shows is required here as there: no failed request, not
cut short, no prompt tokens from the prefix cache.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfgate.clients import aiperf_results
from perfgate.clients.identities import require_ordered
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.scenarios.scenario import LoadPoint, Workload


def is_report(fields: object) -> bool:
    """Whether decoded JSON is such a summary."""
    return isinstance(fields, dict) and {"aiperf_version", "schema_version"} <= set(fields)


def parse(fields: Mapping[str, Any]) -> Measurement:
    """Read a decoded summary.

    Raises:
        RunError: it is of an unknown schema, not whole, not finite, or tells of failed requests.
    """
    schema = str(fields.get("schema_version"))
    if schema.partition(".")[0] != "1":
        raise RunError(
            "no_metrics",
            f"AIPerf's schema version is {schema}; 1.x is known",
            evidence=(f'"schema_version": "{schema}"',),
            hint="check the installed aiperf against perfgate's parser",
        )
    summary = aiperf_results.Summary(Path(aiperf_results.RESULT), fields)
    succeeded = int(summary.count("request_count", "requests", default=0))
    shown = LoadPoint(concurrency=0, requests=max(succeeded, 1), warmup_requests=0, seed=0)
    aiperf_results.require_complete(summary, shown)
    isl = summary.value("input_sequence_length", "avg", "tokens")
    osl = summary.value("output_sequence_length", "avg", "tokens")
    longest = summary.value("output_sequence_length", "max", "tokens")
    streaming = "time_to_first_token" in fields
    workload = Workload(
        client="aiperf",
        dataset="real",
        isl=round(isl),
        osl=round(longest),
        concurrency=(),
        streaming=streaming,
    )
    facts: dict[str, Json] = {
        "client": "aiperf",
        "client_version": str(fields.get("aiperf_version")),
        "requests_completed": succeeded,
        "isl": isl,
        "osl": osl,
        "streaming": streaming,
        "prompt_tokens_cached": aiperf_results.require_cold_cache(summary),
    }
    facts |= {name: value for name, value in _load(fields).items() if value is not None}
    metrics = aiperf_results.metrics_of(summary, workload)
    require_ordered(metrics)
    return Measurement(metrics, facts)


def _load(fields: Mapping[str, Any]) -> dict[str, Json]:
    """How many requests were in flight at most; releases that tell what was asked tell that too."""
    seen = fields.get("effective_concurrency")
    peak = seen.get("max") if isinstance(seen, dict) else None
    asked = fields.get("input_config")
    for name in ("loadgen", "concurrency"):
        asked = asked.get(name) if isinstance(asked, dict) else None
    return {
        "concurrency": asked if type(asked) is int else None,
        "concurrency_peak": peak if isinstance(peak, int | float) else None,
    }
