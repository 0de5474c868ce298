"""Read the table that serving benchmarks of vLLM's family print at their end.

It begins with ``==== Serving Benchmark Result ====`` and is whole when the rule that closes it is
there.
"""

import re

from perfgate.clients.report_lines import FEWEST_ROWS, Line, last_line, number, plain_fact
from perfgate.clients.serving_report import ServingReport, report_of, require_complete
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

# Labels without letter case → key of the JSON result.
_KEYS = {
    "benchmark duration (s)": "duration",
    "request throughput (req/s)": "request_throughput",
    "request goodput (req/s)": "request_goodput",
    "output token throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_token_throughput",
    "user throughput (tok/s)": "user_throughput",
    "acceptance length": "spec_decode_acceptance_length",
    "accept length": "spec_decode_acceptance_length",
    "mean avg decoded tokens per iter": "spec_decode_acceptance_length",
    "acceptance rate (%)": "spec_decode_acceptance_rate",
}
# The same, of what is no metric.
_FACTS = {
    "total requests": "num_prompts",
    "successful requests": "completed",
    "failed requests": "failed",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "total generated tokens (retokenized)": "total_output_tokens_retokenized",
    "backend": "backend",
    "traffic request rate": "request_rate",
    "request rate configured (rps)": "request_rate",
    "max request concurrency": "max_concurrency",
    "max reqeuest concurrency": "max_concurrency",  # SGLang 0.4.6 spells it so
    "maximum request concurrency": "max_concurrency",
    "concurrency": "concurrency",
    "peak output token throughput (tok/s)": "max_output_tokens_per_s",
    "peak concurrent requests": "max_concurrent_requests",
    "mean request ar": "mean_request_ar",
    "median request ar": "median_request_ar",
}
_LATENCY = re.compile(
    r"(?P<statistic>mean|median|std|p\d+(?:\.\d+)?)(?: dev)? "
    r"(?P<short>ttft|tpot|itl|e2el|e2e latency) \(ms\)"
)
_UNUSED = re.compile(
    r"(?:median|std dev|min|max|p\d+(?:\.\d+)?) avg decoded tokens per iter"
    r"|max itl \(ms\)|input token throughput \(tok/s\)|total input (?:text|vision) tokens"
)


def is_report(lines: tuple[Line, ...]) -> bool:
    """Whether a table begins somewhere in these lines."""
    return any(_OPENING.fullmatch(line.text) for line in lines)


def is_piece(lines: tuple[Line, ...]) -> bool:
    """Whether rows of a table stand there whose beginning does not: the head of a log was cut."""
    labels = {found[0].lower() for line in lines if (found := line.labelled())}
    rows = [label for label in labels if label in _KEYS or _LATENCY.fullmatch(label)]
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
    fields: dict[str, Json] = {}
    evidence: dict[str, str] = {}
    for line in table:
        labelled = line.labelled()
        key = labelled and _key(labelled[0])
        if labelled and key:
            failed = number(labelled[1]) if key == "failed" else None
            if failed:
                many = f"{labelled[1]} requests failed"
                raise RunError("incomplete", many, evidence=(line.evidence,))
            fields[key] = _fact(labelled[1]) if key in _FACTS.values() else labelled[1]
            evidence[key] = line.evidence
    if "num_prompts" not in fields and arguments.get("num_prompts", "").isdigit():
        fields["num_prompts"] = int(arguments["num_prompts"])
    found = report_of(
        fields, lambda key: evidence.get(key, ""), streaming=streaming, rounding=_TWO_DIGITS
    )
    require_complete(found.facts, evidence.get("completed", ""))
    return found


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


def _key(label: str) -> str | None:
    """The key of a row; its label where nothing is known of it; None: it says nothing."""
    known = label.lower()
    if latency := _LATENCY.fullmatch(known):
        return f"{latency['statistic']}_{latency['short'].replace(' ', '_')}_ms"
    found = _KEYS.get(known) or _FACTS.get(known)
    return found or (None if _UNUSED.fullmatch(known) else label)


def _fact(value: str) -> Json:
    measured = number(value)
    whole = measured is not None and measured == measured // 1
    return int(measured or 0) if whole else plain_fact(measured or value)
