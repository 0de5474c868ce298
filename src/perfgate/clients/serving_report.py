"""What a serving benchmark of vLLM's family says, as JSON or as printed.

TensorRT-LLM's benchmark_serving, ``vllm bench serve`` and ``sglang.bench_serving`` descend from one
script and share keys and labels; they exit with 0 even when requests failed, and with numbers that
look healthy when a server died half-way. The printed table begins with ``==== Serving Benchmark
Result ====`` and is whole when the rule that closes it is there.

The peaks are no measure of concurrency: every request that touches a second counts in it, so that
there are nine "at once" where four were allowed.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from perfgate.clients.logs import Line, last_line, require
from perfgate.clients.report_tables import (
    SERVING,
    has_latency,
    is_object_with,
    not_negative,
    number,
    number_of,
    plain_fact,
    positive,
    require_consistent,
    require_one,
    squeezed,
)
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import lookup
from perfgate.scenarios.scenario import Workload

_STATISTICS = ("mean", "median", "p90", "p95", "p99")
_LATENCY = re.compile(
    r"(?P<statistic>mean|median|std|p\d+(?:\.\d+)?)_(?P<short>ttft|tpot|itl|e2el|e2e_latency)_ms"
)
_SHORT = {"e2e_latency": "e2el"}  # SGLang's word
_UNUSED_LABEL = re.compile(
    r"(?:median|std dev|min|max|p\d+(?:\.\d+)?) avg decoded tokens per iter"
    r"|max itl \(ms\)|input token throughput \(tok/s\)|total input (?:text|vision) tokens"
)
# benchmark_serving puts -1 s as TTFT of every request that was not streamed.
_NOT_STREAMED_MS = -1000.0

_OPENING = re.compile(r"=+ Serving Benchmark Result =+")
_CLOSING = re.compile(r"={40,}")
_FAILED = re.compile(r"Total failed requests:\s*(?P<count>\d+)")
_MARKED_AS_FAILED = "!FAILED REQUESTS!"
# The programs print all their arguments at their start, as Python shows a namespace.
WORDS = ("serving benchmark result", "namespace(", "failed requests")
# vLLM's no_stream is about how a dataset is loaded: it streams every answer.
_ARGUMENT = re.compile(r"\b(?P<name>num_prompts|non_streaming|disable_stream)=(?P<value>\w+)")
_TWO_DIGITS = 0.005  # half a unit of the last printed digit

# Texts encoded again give a few percent more or fewer tokens; special tokens have no text.
_COUNT_NOTED = 0.1
_COUNT_REFUSED = 0.5


_KEYS = ("completed", "request_throughput")
is_report = is_object_with(*_KEYS)
# Only SGLang encodes the answers again, in all releases.
is_of_sglang = is_object_with(*_KEYS, "total_output_tokens_retokenized")


def is_of_vllm(fields: Mapping[str, Any]) -> bool:
    """Whether vLLM wrote it, not TensorRT-LLM: only vLLM counts failures in it."""
    return bool({"failed", "endpoint_type", "label"} & set(fields))


def parse(fields: Mapping[str, Any], *, streaming: bool | None = None) -> Measurement:
    """Read a decoded result.

    Args:
        fields: the JSON object.
        streaming: whether answers were streamed; None: the report shows it.

    Raises:
        RunError: ``incomplete`` (requests failed or are missing) or ``no_metrics`` (something is
            missing or no positive number, or numbers contradict each other).
    """
    if streaming is None:
        streaming = fields.get("mean_ttft_ms") != _NOT_STREAMED_MS

    def evidence(key: str) -> str:
        return f'"{key}": {json.dumps(fields.get(key))}'[:300]

    _require_complete(SERVING.facts_of(fields), evidence("completed"))
    metrics, facts = _read(fields, evidence, streaming=streaming)
    return _consistent(metrics, facts)


def _read(
    fields: Mapping[str, Any], evidence: Callable[[str], str], *, streaming: bool
) -> tuple[dict[str, float], dict[str, Json]]:
    """Metrics and facts by the fields as the JSON result names them, complete or not.

    Args:
        fields: key → value; a metric's may be the text that was printed.
        evidence: where a field stands, as it is shown.
        streaming: whether answers were streamed.

    Raises:
        RunError: ``no_metrics``, something is missing, or no positive number.
    """
    facts = SERVING.facts_of(fields)
    completed = facts.get("requests_completed")
    # The programs print 0.00 for what does not exist.
    one_token = completed is not None and completed == facts.get("output_tokens")
    metrics: dict[str, float] = {}
    unknown: list[Json] = []
    for key, value in fields.items():
        if latency := _LATENCY.fullmatch(key):
            short = _SHORT.get(latency["short"], latency["short"])
            is_there = has_latency(short, streaming=streaming, one_token=one_token)
            if is_there and latency["statistic"] in _STATISTICS:
                name = f"{short}_{latency['statistic']}_ms"
                is_it = not_negative if lookup(name).may_be_zero else positive
                metrics[name] = is_it(value, evidence(key))
        elif key not in SERVING.known_keys:
            unknown.append(key)
        elif key in SERVING.metric_keys and value is not None:
            row = SERVING.metrics[SERVING.metric_keys[key]]
            told = value.get("mean") if row.drafts and isinstance(value, dict) else value
            if told or not row.drafts:
                measured = positive(told, evidence(key)) * row.factor
                metrics[SERVING.metric_keys[key]] = measured
    if fields.get("input_throughput") is not None and "output_throughput" in metrics:
        read = positive(fields["input_throughput"], evidence("input_throughput"))
        metrics.setdefault("total_token_throughput", read + metrics["output_throughput"])
    facts["streaming"] = streaming
    if unknown:
        facts["unknown_labels"] = unknown
    return _completed(metrics), facts


def _completed(metrics: dict[str, float]) -> dict[str, float]:
    """The metrics, none missing that every report has, with those that others give."""
    for name, row in SERVING.metrics.items():
        require(name in metrics or row.optional, "no_metrics", f"the report has no {name}")
    if "e2el_mean_ms" in metrics:
        metrics["mean_request_latency_ms"] = metrics["e2el_mean_ms"]
    if "tpot_mean_ms" in metrics:
        metrics["output_speed_per_user"] = 1e3 / metrics["tpot_mean_ms"]
    return metrics


def _require_complete(facts: Mapping[str, Json], evidence: str) -> None:
    """Every request that was asked was completed, and none failed.

    Raises:
        RunError: ``incomplete``; ``no_metrics`` where the report does not count them.
    """
    completed, asked = facts.get("requests_completed"), facts.get("requests_asked")
    failed = facts.get("requests_failed")
    is_good = not isinstance(failed, int | float) or failed <= 0
    message = f"{failed} requests failed, {completed} were completed"
    require(is_good, "incomplete", message, evidence)
    if not isinstance(completed, int) or isinstance(completed, bool):
        message = "the report does not count its requests"
        raise RunError("no_metrics", message, evidence=(evidence,))
    of = "" if asked is None else f" of {asked}"
    is_whole = completed >= 1 and asked in (completed, None)
    require(is_whole, "incomplete", f"{completed}{of} requests were completed", evidence)


def _consistent(
    metrics: Mapping[str, float], facts: Mapping[str, Json], rounding: float = 0.0
) -> Measurement:
    """The report as a measurement, with mean lengths; its numbers agree."""
    counts = []
    for name in ("requests_completed", "input_tokens", "output_tokens"):
        counts.append(number_of(facts, name) or 0)
        message = f"the report has {facts.get(name, 'no')} {name.replace('_', ' ')}"
        require(counts[-1] > 0, "no_metrics", message)
    facts = {**facts, "isl": counts[1] / counts[0], "osl": counts[2] / counts[0]}
    require_consistent(metrics, facts, rounding)
    return Measurement(metrics, facts)


def is_printed(lines: tuple[Line, ...]) -> bool:
    """Whether a table begins somewhere in these lines."""
    return any(_OPENING.fullmatch(line.text) for line in lines)


def is_piece(lines: tuple[Line, ...]) -> bool:
    """Whether rows of a table stand there whose beginning does not: the head of a log was cut."""
    return SERVING.has_rows(lines, _latency_key) and not is_printed(lines)


def is_printed_by_vllm(lines: tuple[Line, ...]) -> bool:
    """Whether vLLM printed it, not TensorRT-LLM, which shows no peaks."""
    return any(line.text.startswith(("Peak output token", "Peak concurrent")) for line in lines)


def is_printed_by_sglang(lines: tuple[Line, ...]) -> bool:
    """Whether SGLang printed it (`is_of_sglang`)."""
    label = "Total generated tokens (retokenized)"
    return is_printed(lines) and any(line.text.startswith(label) for line in lines)


def parse_printed(lines: tuple[Line, ...], *, streaming: bool | None = None) -> Measurement:
    """Read the one table in these lines.

    Args:
        lines: what the program printed.
        streaming: whether answers were streamed; None: the lines show it.

    Raises:
        RunError: as `parse`, or ``truncated_output``; several tables are ``no_metrics``.
    """
    table = _table(lines)
    namespace = next((line.text for line in lines if line.text.startswith("Namespace(")), "")
    arguments = {match["name"]: match["value"] for match in _ARGUMENT.finditer(namespace)}
    if streaming is None:
        unstreamed = {arguments.get("non_streaming"), arguments.get("disable_stream")}
        is_shown = ("Mean TTFT (ms)", f"{_NOT_STREAMED_MS:.2f}") in [x.labelled() for x in table]
        streaming = "True" not in unstreamed and not is_shown
    fields: dict[str, Json] = {}
    evidence: dict[str, str] = {}
    for line in table:
        label, value = line.labelled() or ("", "")
        key = _key(label)
        if not key:
            continue
        if key == "failed" and number(value):
            raise RunError("incomplete", f"{value} requests failed", evidence=(line.evidence,))
        fields[key] = _fact(value) if squeezed(label) in SERVING.fact_labels else value
        evidence[key] = line.evidence
    if "num_prompts" not in fields and arguments.get("num_prompts", "").isdigit():
        fields["num_prompts"] = int(arguments["num_prompts"])
    metrics, facts = _read(fields, lambda key: evidence.get(key, ""), streaming=streaming)
    _require_complete(facts, evidence.get("completed", ""))
    return _consistent(metrics, facts, _TWO_DIGITS)


def _table(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    begins = [place for place, line in enumerate(lines) if _OPENING.fullmatch(line.text)]
    require(begins, "no_metrics", "the client printed no result", *last_line(lines))
    require_one([lines[place].evidence for place in begins], "result")
    for line in lines:
        failed = _FAILED.fullmatch(line.text)
        if _MARKED_AS_FAILED in line.text or (failed and int(failed["count"]) > 0):
            raise RunError("incomplete", "requests failed", evidence=(line.evidence,))
    rest = lines[begins[0] + 1 :]
    for end, line in enumerate(rest):
        if _CLOSING.fullmatch(line.text):
            return rest[:end]
    message = "the result is truncated: the rule that closes it is missing"
    raise RunError("truncated_output", message, evidence=last_line(lines))


def _key(label: str) -> str:
    """The key of a row; its label where nothing is known of it; empty: it says nothing."""
    if key := _latency_key(label):
        return key
    if name := SERVING.metric_labels.get(squeezed(label)):
        return SERVING.metrics[name].keys[0]
    if name := SERVING.fact_labels.get(squeezed(label)):
        return SERVING.facts[name].keys[0]
    return "" if _UNUSED_LABEL.fullmatch(label.lower()) else label


def _latency_key(label: str) -> str:
    """The key of ``Std Dev TTFT (ms)`` and its like; empty: it is no latency."""
    words = label.lower().replace(" dev ", " ").replace(" (ms)", " ms").split()
    key = "_".join(words)
    return key if _LATENCY.fullmatch(key) else ""


def _fact(value: str) -> Json:
    measured = number(value)
    whole = measured is not None and measured == measured // 1
    return int(measured or 0) if whole else plain_fact(measured or value)


def count_facts(facts: Mapping[str, Json], workload: Workload) -> dict[str, Json]:
    """What is noted where output tokens are counted twice: as reported, and from the answers' text.

    ``sglang.bench_serving`` takes the length that it asked for where the server sends no usage
    beside a text, as servers do unless they are asked for it: an answer that ended early counts in
    full. Its second count encodes the texts again.

    Raises:
        RunError: ``incomplete``, the texts hold less than half; or the count is exactly what was
            asked for although answers may end early, and the texts hold less.
    """
    reported = number_of(facts, "output_tokens")
    encoded = number_of(facts, "output_tokens_retokenized")
    if not reported or encoded is None:
        return {}
    is_asked = reported == (number_of(facts, "requests_completed") or 0) * (workload.osl or 0)
    fewer = encoded < (1 - _COUNT_NOTED) * reported
    if encoded < _COUNT_REFUSED * reported or (fewer and is_asked and not workload.ignore_eos):
        raise RunError(
            "incomplete",
            f"{reported:g} output tokens reported, {encoded:g} in the answers' text: the lengths "
            "that were requested were counted, not those that were generated",
            evidence=(f'"total_output_tokens_retokenized": {encoded:g}',),
            hint="measure with a client that asks the server for its count (vllm-bench), or ignore "
            "EOS and check that the server does",
        )
    if abs(reported - encoded) / reported <= _COUNT_NOTED:
        return {}
    told = f"{reported:g} tokens reported, {encoded:g} in the answers' text"
    return {"output_count_differs": told}
