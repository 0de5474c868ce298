"""What a serving benchmark of vLLM's family says, whichever way it was written.

TensorRT-LLM's benchmark_serving, ``vllm bench serve`` and ``sglang.bench_serving`` descend from one
script and share keys and labels; they exit with 0 even when requests failed, and with numbers that
look healthy when a server died half-way. The JSON result is read here, the printed one by
`serving_text`.

The peaks are no measure of concurrency: every request that touches a second counts in it, so that
there are nine "at once" where four were allowed.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perfgate.clients.identities import require_ordered, require_totals
from perfgate.clients.report_lines import not_negative, plain_fact, positive
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import lookup

LATENCIES = ("ttft", "tpot", "itl", "e2el")
FROM_STREAM = ("ttft", "tpot", "itl")
FROM_SECOND_TOKEN = ("tpot", "itl")
# Canonical metric ← key. The stray colon is in real releases of two of the programs.
RATES = {
    "request_throughput": "request_throughput",
    "output_throughput": "output_throughput",
    "total_token_throughput": "total_token_throughput",
    "total_throughput": "total_token_throughput",
    "user_throughput": "output_throughput_per_user",
    "request_goodput": "request_goodput",
    "request_goodput:": "request_goodput",
    "duration": "duration_s",
}
REQUIRED = ("request_throughput", "output_throughput", "total_token_throughput", "duration_s")
_STATISTICS = ("mean", "median", "p90", "p95", "p99")
_LATENCY_KEY = re.compile(
    r"(?P<statistic>mean|median|std|p\d+(?:\.\d+)?)_(?P<short>ttft|tpot|itl|e2el|e2e_latency)_ms"
)
_SHORT = {"e2e_latency": "e2el"}  # SGLang's word
# Fact ← key.
_FACTS = {
    "backend": "backend",
    "endpoint_type": "endpoint_type",
    "model_id": "model",
    "num_prompts": "requests_asked",
    "completed": "requests_completed",
    "failed": "requests_failed",
    "total_input_tokens": "input_tokens",
    "total_output_tokens": "output_tokens",
    "total_output_tokens_retokenized": "output_tokens_retokenized",
    "dataset_name": "dataset",
    "concurrency": "mean_concurrency",
    "request_rate": "request_rate",
    "burstiness": "burstiness",
    "max_concurrency": "max_concurrency",
    "max_output_tokens_per_s": "peak_output_throughput",
    "max_concurrent_requests": "peak_concurrent_requests",
    "mean_request_ar": "request_acceptance_mean",
    "median_request_ar": "request_acceptance_median",
    "energy": "energy",
}
_IGNORED = frozenset(
    {"date", "tokenizer_id", "label", "best_of", "input_lens", "output_lens", "ttfts", "itls"}
    | {"e2els", "generated_texts", "errors", "latencies", "queue_times", "start_times", "tokenizer"}
    | {"avg_decoded_tokens_per_iter", "spec_decode_acceptance_length"}
    | {"spec_decode_acceptance_rate", "rtfx", "accept_length", "input_throughput", "tag"}
    | {"server_info", "cache_report", "total_input_text_tokens", "total_input_vision_tokens"}
    | {"sharegpt_output_len", "random_input_len", "random_output_len", "random_range_ratio"}
)
# benchmark_serving puts -1 s as TTFT of every request that was not streamed.
_NOT_STREAMED_MS = -1000.0


@dataclass(frozen=True)
class ServingReport:
    """A report as it stands, not yet compared with what was asked.

    Attributes:
        metrics: canonical name → value.
        facts: what the report says of the requests.
        rounding: half a unit of the last printed digit; 0 for JSON.
    """

    metrics: Mapping[str, float]
    facts: Mapping[str, Json]
    rounding: float = 0.0

    def measurement(self, client: str) -> Measurement:
        """The report as a measurement of `client`.

        Raises:
            RunError: ``incomplete`` (requests failed or are missing) or ``no_metrics`` (its
                numbers contradict each other).
        """
        require_ordered(self.metrics)
        completed = _count(self.facts, "requests_completed")
        isl = _count(self.facts, "input_tokens") / completed
        osl = _count(self.facts, "output_tokens") / completed
        require_totals(self.metrics, completed, isl, osl, self.rounding)
        facts = {"client": client, **self.facts, "isl": isl, "osl": osl}
        return Measurement(self.metrics, facts)


def is_report(fields: object) -> bool:
    """Whether decoded JSON is such a report."""
    return isinstance(fields, dict) and {"completed", "request_throughput"} <= set(fields)


def is_of_vllm(fields: Mapping[str, Any]) -> bool:
    """Whether vLLM wrote it, not TensorRT-LLM: only vLLM counts failures in it."""
    return bool({"failed", "endpoint_type", "label"} & set(fields))


def is_of_sglang(fields: object) -> bool:
    """Whether SGLang wrote it: only it encodes the answers again."""
    return is_report(fields) and "total_output_tokens_retokenized" in _keys(fields)


def _keys(fields: object) -> Mapping[str, Any]:
    return fields if isinstance(fields, dict) else {}


def parse(fields: Mapping[str, Any], *, streaming: bool | None = None) -> ServingReport:
    """Read a decoded result.

    Args:
        fields: the JSON object.
        streaming: whether answers were streamed; None: the report shows it.

    Raises:
        RunError: ``incomplete`` (requests failed) or ``no_metrics`` (something is missing, or no
            positive number).
    """
    if streaming is None:
        streaming = fields.get("mean_ttft_ms") != _NOT_STREAMED_MS

    def evidence(key: str) -> str:
        return f'"{key}": {json.dumps(fields.get(key))}'[:300]

    require_complete(_facts(fields), evidence("completed"))
    return report_of(fields, evidence, streaming=streaming)


def report_of(
    fields: Mapping[str, Any],
    evidence: Callable[[str], str],
    *,
    streaming: bool,
    rounding: float = 0.0,
) -> ServingReport:
    """A report by its fields, as the JSON result names them, complete or not.

    Args:
        fields: key → value; a metric's may be the text that was printed.
        evidence: where a field stands, as it is shown.
        streaming: whether answers were streamed.
        rounding: half a unit of the last digit of a metric.

    Raises:
        RunError: ``no_metrics``, something is missing, or no positive number.
    """
    facts = _facts(fields)
    metrics: dict[str, float] = {}
    unknown = []
    for key, value in fields.items():
        latency = _LATENCY_KEY.fullmatch(key)
        if latency is not None:
            short = _SHORT.get(latency["short"], latency["short"])
            if latency["statistic"] in _STATISTICS and _has(short, streaming, facts):
                name = f"{short}_{latency['statistic']}_ms"
                is_it = not_negative if lookup(name).may_be_zero else positive
                metrics[name] = is_it(value, evidence(key))
        elif key in RATES and value is not None:
            metrics[RATES[key]] = positive(value, evidence(key))
        elif not {key} & {*RATES, *_FACTS, *_IGNORED}:
            unknown.append(key)
    metrics |= _acceptance(fields, evidence)
    if fields.get("input_throughput") is not None and "output_throughput" in metrics:
        read = positive(fields["input_throughput"], evidence("input_throughput"))
        metrics.setdefault("total_token_throughput", read + metrics["output_throughput"])
    facts["streaming"] = streaming
    if unknown:
        facts["unknown_labels"] = list(unknown)
    return ServingReport(_completed(metrics), facts, rounding)


def _facts(fields: Mapping[str, Any]) -> dict[str, Json]:
    found = {fact: _plain(fields.get(key)) for key, fact in _FACTS.items()}
    return {fact: value for fact, value in found.items() if value is not None}


def _has(short: str, streaming: bool, facts: Mapping[str, Json]) -> bool:
    """Whether that latency exists: there is none after the last token of one-token answers.

    The programs print 0.00 for what does not exist.
    """
    if short not in FROM_STREAM:
        return True
    completed = facts.get("requests_completed")
    one_token = completed is not None and completed == facts.get("output_tokens")
    return streaming and not (one_token and short in FROM_SECOND_TOKEN)


def _acceptance(fields: Mapping[str, Any], evidence: Callable[[str], str]) -> dict[str, float]:
    """Metrics of speculative decoding; where the server tells none they are 0 or not there."""
    found: dict[str, float] = {}
    for key in ("avg_decoded_tokens_per_iter", "spec_decode_acceptance_length", "accept_length"):
        value = fields.get(key)
        length = value.get("mean") if isinstance(value, dict) else value
        if length:
            found.setdefault("acceptance_length", positive(length, evidence(key)))
    key = "spec_decode_acceptance_rate"
    if fields.get(key):
        found["draft_acceptance_rate"] = positive(fields[key], evidence(key)) / 100
    return found


def _completed(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics with those that others give by definition.

    Raises:
        RunError: ``no_metrics``, one that every report has is missing.
    """
    for name in REQUIRED:
        if name not in metrics:
            raise RunError("no_metrics", f"the report has no {name}")
    found = dict(metrics)
    if "e2el_mean_ms" in found:
        found["mean_request_latency_ms"] = found["e2el_mean_ms"]
    if "tpot_mean_ms" in found:
        found["output_speed_per_user"] = 1e3 / found["tpot_mean_ms"]
    return found


def require_complete(facts: Mapping[str, Json], evidence: str) -> None:
    """Every request that was asked was completed, and none failed.

    Raises:
        RunError: ``incomplete``; ``no_metrics`` where the report does not count them.
    """
    completed, asked = facts.get("requests_completed"), facts.get("requests_asked")
    failed = facts.get("requests_failed")
    if isinstance(failed, int | float) and failed > 0:
        raise RunError(
            "incomplete",
            f"{failed} requests failed, {completed} were completed",
            evidence=(evidence,),
        )
    if not isinstance(completed, int) or isinstance(completed, bool):
        raise RunError("no_metrics", "the report does not count its requests", evidence=(evidence,))
    if completed < 1 or (asked is not None and completed != asked):
        of = "" if asked is None else f" of {asked}"
        raise RunError(
            "incomplete", f"{completed}{of} requests were completed", evidence=(evidence,)
        )


def _count(facts: Mapping[str, Json], name: str) -> float:
    value = facts.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise RunError(
            "no_metrics",
            f"the report has {value if value is not None else 'no'} {name.replace('_', ' ')}",
        )
    return float(value)


def _plain(value: Any) -> Json:
    if isinstance(value, dict):
        return {str(key): _plain(held) for key, held in value.items()}
    return plain_fact(value)
