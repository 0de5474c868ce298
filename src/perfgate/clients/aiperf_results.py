"""Read the summary that AIPerf exports: is it whole, is it what was asked, and its metrics.

Written for schema 1.x (0.13.0 writes 1.4); the metrics' formulas are those of
`aiperf/metrics/types` in that release.
"""

import math
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from perfgate.clients.base import with_asked
from perfgate.clients.logs import left
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import lookup
from perfgate.core.raw_log import lines_with
from perfgate.core.redaction import redact
from perfgate.scenarios.scenario import LoadPoint, Workload

RESULT = "profile_export_aiperf.json"
LENGTH_TOLERANCE = 0.005  # of the asked ISL and OSL, on the mean over all requests
CACHED_TOLERANCE = 0.05  # of the prompt tokens: more than that changes what TTFT measures

_STATISTICS = {"mean": "avg", "median": "p50", "p90": "p90", "p99": "p99"}
# What AIPerf calls "inter token latency" is (latency - TTFT) / (tokens - 1), our TPOT; the gaps
# between streamed chunks, our ITL, are its "inter chunk latency".
_LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2el": "request_latency",
}
_FROM_STREAM = ("ttft", "tpot", "itl")
_FROM_SECOND_TOKEN = ("tpot", "itl")
_AVERAGES = {
    "request_throughput": "request_throughput",
    "output_throughput": "output_token_throughput",
    "total_token_throughput": "total_token_throughput",
    "output_throughput_per_user": "e2e_output_token_throughput",
    "mean_request_latency_ms": "request_latency",
    "duration_s": "benchmark_duration",
}
# AIPerf's unit → (kind, factor to our unit of that kind: ms for the time of a request).
_UNITS: dict[str, tuple[str, float]] = {
    "ns": ("time", 1e-6),
    "us": ("time", 1e-3),
    "ms": ("time", 1.0),
    "sec": ("time", 1e3),
    "s": ("time", 1e3),
    "requests/sec": ("requests a second", 1.0),
    "tokens/sec": ("tokens a second", 1.0),
    "tokens/sec/user": ("tokens a second", 1.0),
    "tokens": ("tokens", 1.0),
    "requests": ("requests", 1.0),
}


def lengths(workload: Workload) -> tuple[int, int]:
    """The asked ISL and OSL.

    Raises:
        InputError: the workload's prompts are of a kind that is not set up for aiperf.
    """
    if workload.dataset != "synthetic" or workload.isl is None or workload.osl is None:
        raise InputError(
            "aiperf supports only synthetic prompts of one length",
            field="workload",
            found=f"dataset {workload.dataset}, isl {workload.isl}, osl {workload.osl}",
            expected="dataset synthetic, isl and osl given",
        )
    return workload.isl, workload.osl


def parse(workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
    """Read the results of one sweep point in `folder`.

    Raises:
        RunError: they are missing, cut, not finite, or not what was asked.
    """
    path = folder / RESULT
    summary = Summary(path, _read(path))
    require_complete(summary, point)
    facts = _facts(summary)
    _require_lengths(summary, workload)
    facts["prompt_tokens_cached"] = require_cold_cache(summary)
    return with_asked(Measurement(metrics_of(summary, workload), facts), point)


class Summary:
    """The exported summary: every access says what is missing.

    Args:
        path: its file, for messages.
        fields: what the file holds.
    """

    def __init__(self, path: Path, fields: Mapping[str, Any]) -> None:
        self.path = path
        self.fields = fields

    def value(self, tag: str, statistic: str, kind: str, *, may_be_zero: bool = False) -> float:
        """A statistic of a metric, positive (or zero, where it may be) and finite; times in ms.

        Raises:
            RunError: it is absent (``no_metrics``), or zero or not finite (``incomplete``).
        """
        found = self._number(tag, statistic, kind)
        if not math.isfinite(found) or found < 0 or (found == 0 and not may_be_zero):
            raise RunError(
                "incomplete", f"{tag} has {statistic} {found}", evidence=self.error_lines()
            )
        return found

    def count(self, tag: str, kind: str, *, statistic: str = "avg", default: float) -> float:
        """A number that may be zero, and that AIPerf leaves out when there is none."""
        if tag not in self.fields:
            return default
        found = self._number(tag, statistic, kind)
        if not math.isfinite(found):
            raise RunError("incomplete", f"{tag} is {found}", evidence=self.error_lines())
        return found

    def _number(self, tag: str, statistic: str, kind: str) -> float:
        metric = self.fields.get(tag)
        found = metric.get(statistic) if isinstance(metric, dict) else None
        if not isinstance(metric, dict) or not isinstance(found, int | float):
            raise RunError(
                "no_metrics",
                f"{self.path.name} has no {statistic} of {tag}",
                evidence=self.error_lines(),
            )
        unit = metric.get("unit")
        known_kind, factor = _UNITS.get(str(unit), ("", 1.0))
        if known_kind != kind:
            raise RunError(
                "no_metrics",
                f"{self.path.name} gives {tag} in {unit!r}, which is not a known unit of {kind}",
                hint="check the installed aiperf against perfgate's parser",
            )
        return found * factor

    def error_lines(self) -> tuple[str, ...]:
        """AIPerf's own summary of failed requests, one line each, the first few."""
        lines = []
        errors = self.fields.get("error_summary")
        for entry in errors if isinstance(errors, list) else []:
            details = entry.get("error_details") if isinstance(entry, dict) else None
            if isinstance(details, Mapping):
                kind, message = details.get("type"), details.get("message")
                lines.append(f"{entry.get('count')} × {kind}: {message}"[:300])
        return tuple(lines[:3])


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise RunError("no_metrics", f"aiperf left no {path.name}", evidence=_log_errors(path))
    fields = left(path, (str(path),))
    if not isinstance(fields, dict):
        raise RunError("no_metrics", f"{path.name} holds no JSON object")
    schema = str(fields.get("schema_version"))
    if schema.partition(".")[0] != "1":
        raise RunError(
            "no_metrics",
            f"{path.name} has schema version {schema}; 1.x is known",
            hint="check the installed aiperf against perfgate's parser",
        )
    return fields


def _log_errors(path: Path) -> tuple[str, ...]:
    log = path.parent / "logs" / "aiperf.log"
    errors = (line for _, line in lines_with(log, (" - error - ",)) if " - ERROR - " in line)
    return tuple(redact(line.strip())[:300] for line in islice(errors, 3))


def require_complete(summary: Summary, point: LoadPoint) -> None:
    fields = summary.fields
    succeeded = summary.count("request_count", "requests", default=0)
    failed = summary.count("error_request_count", "requests", default=0)
    problems = []
    if failed:
        problems.append(f"{failed:g} requests failed")
    if succeeded != point.requests:
        problems.append(f"{succeeded:g} of {point.requests} requests succeeded")
    if fields.get("was_cancelled") is not False or fields.get("is_complete") is not True:
        problems.append("the run was cut short")
    if problems:
        raise RunError("incomplete", "; ".join(problems), evidence=summary.error_lines())


def _require_lengths(summary: Summary, workload: Workload) -> None:
    isl, osl = lengths(workload)
    isl_true = summary.value("input_sequence_length", "avg", "tokens")
    # A chat template adds tokens to what was asked.
    if _off(isl_true, isl) and not (workload.api == "chat" and isl_true > isl):
        raise _other_length("ISL", isl_true, isl, "check that the engine does not cut prompts")
    # The extremes too: one long answer must not make up for a short one.
    for statistic in ("avg", "min", "max"):
        osl_true = summary.value("output_sequence_length", statistic, "tokens")
        if _off(osl_true, osl) and (workload.ignore_eos or osl_true > osl):
            raise _other_length("OSL", osl_true, osl, "check that the engine honours ignore_eos")


def _off(true: float, asked: int) -> bool:
    return abs(true - asked) > LENGTH_TOLERANCE * asked


def _other_length(name: str, true: float, asked: int, hint: str) -> RunError:
    return RunError(
        "incomplete", f"{name} was {true:g} tokens, not the {asked} requested", hint=hint
    )


def require_cold_cache(summary: Summary) -> int | None:
    """Prompt tokens that came from the prefix cache; None when the server does not tell."""
    tag = "total_usage_prompt_cache_read_tokens"
    cached = summary.count(tag, "tokens", default=math.nan)
    if math.isnan(cached):
        return None
    prompts = summary.value("total_usage_prompt_tokens", "avg", "tokens")
    if cached > CACHED_TOLERANCE * prompts:
        raise RunError(
            "prefix_cache_hit",
            f"{cached:g} of {prompts:g} prompt tokens were served from the prefix cache",
        )
    return int(cached)


def _facts(summary: Summary) -> dict[str, Json]:
    return {
        "client": "aiperf",
        "client_version": str(summary.fields.get("aiperf_version")),
        "requests_completed": int(summary.value("request_count", "avg", "requests")),
        "isl": summary.value("input_sequence_length", "avg", "tokens"),
        "osl": summary.value("output_sequence_length", "avg", "tokens"),
    }


def metrics_of(summary: Summary, workload: Workload) -> dict[str, float]:
    found = {}
    for short, tag in _LATENCIES.items():
        if short in _FROM_STREAM and not workload.streaming:
            continue
        if short in _FROM_SECOND_TOKEN and workload.osl == 1:
            continue
        for statistic, key in _STATISTICS.items():
            name = f"{short}_{statistic}_ms"
            found[name] = summary.value(tag, key, "time", may_be_zero=lookup(name).may_be_zero)
    for name, tag in _AVERAGES.items():
        kind = "time"
        if name.endswith("throughput") or name.endswith("per_user"):
            kind = "requests a second" if name.startswith("request") else "tokens a second"
        found[name] = summary.value(tag, "avg", kind)
    found["duration_s"] /= 1e3
    if "tpot_mean_ms" in found:
        found["output_speed_per_user"] = 1e3 / found["tpot_mean_ms"]
    return found
