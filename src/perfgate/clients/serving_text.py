"""Read the table that serving benchmarks of vLLM's family print at their end.

It begins with ``==== Serving Benchmark Result ====`` and is whole when the rule that closes it is
there.
"""

import re
from dataclasses import dataclass, field

from perfgate.clients.report_lines import (
    FEWEST_ROWS,
    Line,
    last_line,
    number,
    plain_fact,
    positive,
)
from perfgate.clients.serving_report import (
    ServingReport,
    Streamed,
    completed_metrics,
    latency_value,
    require_complete,
)
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json

_OPENING = re.compile(r"=+ Serving Benchmark Result =+")
_CLOSING = re.compile(r"={40,}")
_FAILED = re.compile(r"Total failed requests:\s*(?P<count>\d+)")
_MARKED_AS_FAILED = "!FAILED REQUESTS!"
# The programs print all their arguments at their start, as Python shows a namespace.
WORDS = ("serving benchmark result", "namespace(", "failed requests")
# vLLM's no_stream is about how a dataset is loaded: it streams every answer.
_ARGUMENT = re.compile(r"\b(?P<name>num_prompts|non_streaming|disable_stream)=(?P<value>\w+)")
_TWO_DIGITS = 0.005  # half a unit of the last printed digit

# Labels without letter case → metric and factor to its unit.
_METRICS = {
    "benchmark duration (s)": ("duration_s", 1.0),
    "request throughput (req/s)": ("request_throughput", 1.0),
    "request goodput (req/s)": ("request_goodput", 1.0),
    "output token throughput (tok/s)": ("output_throughput", 1.0),
    "total token throughput (tok/s)": ("total_token_throughput", 1.0),
    "user throughput (tok/s)": ("output_throughput_per_user", 1.0),
    "acceptance length": ("acceptance_length", 1.0),
    "accept length": ("acceptance_length", 1.0),
    "mean avg decoded tokens per iter": ("acceptance_length", 1.0),
    "acceptance rate (%)": ("draft_acceptance_rate", 0.01),
}
_FACTS = {
    "total requests": "requests_asked",
    "successful requests": "requests_completed",
    "failed requests": "requests_failed",
    "total input tokens": "input_tokens",
    "total generated tokens": "output_tokens",
    "total generated tokens (retokenized)": "output_tokens_retokenized",
    "backend": "backend",
    "traffic request rate": "request_rate",
    "max request concurrency": "max_concurrency",
    "max reqeuest concurrency": "max_concurrency",  # SGLang 0.4.6 spells it so
    "concurrency": "mean_concurrency",
    "maximum request concurrency": "max_concurrency",
    "request rate configured (rps)": "request_rate",
    "peak output token throughput (tok/s)": "peak_output_throughput",
    "peak concurrent requests": "peak_concurrent_requests",
    "mean request ar": "request_acceptance_mean",
    "median request ar": "request_acceptance_median",
}
_LATENCY = re.compile(
    r"(?P<statistic>mean|median|std(?: dev)?|p\d+(?:\.\d+)?) "
    r"(?P<short>ttft|tpot|itl|e2el|e2e latency) \(ms\)"
)
_SHORT = {"e2e latency": "e2el"}  # SGLang's word
_STATISTICS = ("mean", "median", "p90", "p95", "p99")
_UNUSED = re.compile(
    r"(?:median|std dev|min|max|p\d+(?:\.\d+)?) avg decoded tokens per iter"
    r"|max itl \(ms\)|input token throughput \(tok/s\)|total input (?:text|vision) tokens"
)


@dataclass
class _Found:
    """What was met so far, top to bottom."""

    metrics: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Json] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    counted: str = ""


def is_report(lines: tuple[Line, ...]) -> bool:
    """Whether a table begins somewhere in these lines."""
    return any(_OPENING.fullmatch(line.text) for line in lines)


def is_piece(lines: tuple[Line, ...]) -> bool:
    """Whether rows of a table stand there whose beginning does not: the head of a log was cut."""
    labels = {found[0].lower() for line in lines if (found := line.labelled())}
    rows = [label for label in labels if label in _METRICS or _LATENCY.fullmatch(label)]
    return len(rows) >= FEWEST_ROWS and not is_report(lines)


def is_of_vllm(lines: tuple[Line, ...]) -> bool:
    """Whether vLLM printed it, not TensorRT-LLM, which shows no peaks."""
    return any(line.text.startswith(("Peak output token", "Peak concurrent")) for line in lines)


def is_of_sglang(lines: tuple[Line, ...]) -> bool:
    """Whether SGLang printed it: only it encodes the answers again, in all releases."""
    return is_report(lines) and any(
        line.text.startswith("Total generated tokens (retokenized)") for line in lines
    )


def parse(lines: tuple[Line, ...], *, streaming: bool | None = None) -> ServingReport:
    """Read the one table in these lines.

    Args:
        lines: what the program printed.
        streaming: whether answers were streamed; None: the lines show it.

    Raises:
        RunError: ``no_metrics`` (none, several, or a value that is no positive number),
            ``truncated_output`` or ``incomplete`` (requests failed).
    """
    table = _table(lines)
    arguments = _arguments(lines)
    if streaming is None:
        unstreamed = {arguments.get("non_streaming"), arguments.get("disable_stream")}
        streaming = "True" not in unstreamed and not _shows_no_stream(table)
    found = _Found()
    for line in table:
        _read(found, line, streaming)
    if "requests_asked" not in found.facts and arguments.get("num_prompts", "").isdigit():
        found.facts["requests_asked"] = int(arguments["num_prompts"])
    require_complete(found.facts, found.counted)
    found.facts["streaming"] = streaming
    if found.unknown:
        found.facts["unknown_labels"] = [*dict.fromkeys(found.unknown)]
    return ServingReport(completed_metrics(found.metrics), found.facts, _TWO_DIGITS)


def _table(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    begins = [place for place, line in enumerate(lines) if _OPENING.fullmatch(line.text)]
    if not begins:
        raise RunError("no_metrics", "the client printed no result", evidence=last_line(lines))
    if len(begins) > 1:
        raise RunError(
            "no_metrics",
            f"{len(begins)} results in one file",
            evidence=(lines[begins[1]].evidence,),
            hint="keep one result per file",
        )
    for line in lines:
        failed = _FAILED.fullmatch(line.text)
        if _MARKED_AS_FAILED in line.text or (failed and int(failed["count"]) > 0):
            raise RunError("incomplete", "requests failed", evidence=(line.evidence,))
    rest = lines[begins[0] + 1 :]
    for end, line in enumerate(rest):
        if _CLOSING.fullmatch(line.text):
            return rest[:end]
    raise RunError(
        "truncated_output",
        "the result is truncated: the rule that closes it is missing",
        evidence=last_line(lines),
    )


def _arguments(lines: tuple[Line, ...]) -> dict[str, str]:
    for line in lines:
        if line.text.startswith("Namespace("):
            return {match["name"]: match["value"] for match in _ARGUMENT.finditer(line.text)}
    return {}


def _shows_no_stream(table: tuple[Line, ...]) -> bool:
    """benchmark_serving puts -1 s as TTFT of every request that was not streamed."""
    shown = [line.labelled() for line in table]
    return ("Mean TTFT (ms)", "-1000.00") in shown


def _read(found: _Found, line: Line, streaming: bool) -> None:
    labelled = line.labelled()
    if labelled is None:
        return
    label, value = labelled
    known = label.lower()
    if known in _FACTS:
        measured = number(value)
        if known == "successful requests":
            found.counted = line.evidence
        if known == "failed requests" and measured:
            found.facts["requests_failed"] = measured
            raise RunError("incomplete", f"{value} requests failed", evidence=(line.evidence,))
        whole = measured is not None and measured == measured // 1
        found.facts[_FACTS[known]] = int(measured or 0) if whole else plain_fact(measured or value)
    elif known in _METRICS:
        name, factor = _METRICS[known]
        found.metrics[name] = positive(value, line.evidence) * factor
    elif latency := _LATENCY.fullmatch(known):
        short = _SHORT.get(latency["short"], latency["short"])
        has_it = Streamed(streaming, found.facts).has(short)
        if has_it and latency["statistic"] in _STATISTICS:
            name = f"{short}_{latency['statistic']}_ms"
            found.metrics[name] = latency_value(name, value, line.evidence)
    elif not _UNUSED.fullmatch(known):
        found.unknown.append(label)
