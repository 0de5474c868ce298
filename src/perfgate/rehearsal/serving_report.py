"""The report of benchmark_serving and of `vllm bench serve`, which share their ancestor.

Formats: `tensorrt_llm/serve/scripts/benchmark_serving.py` of 1.0 and newer,
`vllm/benchmarks/serve.py`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from perfgate.rehearsal.fault_injection import halved
from perfgate.rehearsal.options import GivenOptions
from perfgate.rehearsal.playbook import SYNTHETIC

_TITLES = {
    "ttft": "Time to First Token",
    "tpot": "Time per Output Token (excl. 1st token)",
    "itl": "Inter-token Latency",
    "e2el": "End-to-end Latency",
}
# Label → field, digits behind the point.
_TOTAL_ROWS = (
    ("Benchmark duration (s)", "duration", 2),
    ("Total input tokens", "total_input_tokens", None),
    ("Total generated tokens", "total_output_tokens", None),
    ("Request throughput (req/s)", "request_throughput", 2),
    ("Output token throughput (tok/s)", "output_throughput", 2),
    ("Total Token throughput (tok/s)", "total_token_throughput", 2),
)
_SPREAD = 0.1  # standard deviation of a latency, relative to its mean


@dataclass(frozen=True)
class Served:
    """What a load client did.

    Attributes:
        asked: requests asked.
        completed: requests answered.
        isl: mean input tokens of a request.
        osl: mean output tokens.
        metrics: the latencies to report: ``ttft``, ``tpot``, ``itl``, ``e2el``.
        percentiles: of each.
        values: all metrics, by canonical name.
    """

    asked: int
    completed: int
    isl: float
    osl: float
    metrics: Sequence[str]
    percentiles: Sequence[float]
    values: Mapping[str, float]

    @property
    def failed(self) -> int:
        return self.asked - self.completed

    def latencies(self) -> Iterator[tuple[str, str, float]]:
        """(metric, statistic, milliseconds) in the order of the report."""
        for short in _TITLES:
            if short not in self.metrics:
                continue
            mean = self.values[f"{short}_mean_ms"]
            yield short, "mean", mean
            yield short, "median", self.values[f"{short}_median_ms"]
            yield short, "std", _SPREAD * mean
            for percentile in self.percentiles:
                yield short, f"p{percentile:g}", _at(self.values, short, percentile)


def _at(values: Mapping[str, float], short: str, percentile: float) -> float:
    """A percentile between those that were drawn."""
    median, p90, p99 = (values[f"{short}_{spot}_ms"] for spot in ("median", "p90", "p99"))
    spots = [(0.0, 0.8 * median), (50.0, median), (90.0, p90), (99.0, p99), (100.0, 1.05 * p99)]
    for (low, below), (high, above) in pairwise(spots):
        if percentile <= high:
            return below + (above - below) * (percentile - low) / (high - low)
    return spots[-1][1]


def totals(served: Served) -> dict[str, Any]:
    """The fields that both programs write first."""
    value = served.values
    return {
        "duration": value["duration_s"],
        "completed": served.completed,
        "total_input_tokens": round(served.completed * served.isl),
        "total_output_tokens": round(served.completed * served.osl),
        "request_throughput": value["request_throughput"],
        "output_throughput": value["output_throughput"],
        "total_token_throughput": value["total_token_throughput"],
    }


def request_fields(given: GivenOptions, served: Served, model: str) -> dict[str, Any]:
    """The fields in which both programs say what they were asked for."""
    rate, limit = given.text("--request-rate", "inf"), given.text("--max-concurrency")
    return {
        "model_id": model,
        "tokenizer_id": given.text("--tokenizer", model),
        "num_prompts": served.asked,
        SYNTHETIC: True,
        "request_rate": rate if rate == "inf" else float(rate),
        "burstiness": given.number("--burstiness", 1.0),
        "max_concurrency": int(limit) if limit else None,
    }


def latency_fields(served: Served) -> dict[str, float]:
    """``mean_ttft_ms`` and so on."""
    return {f"{statistic}_{short}_ms": ms for short, statistic, ms in served.latencies()}


def heading() -> str:
    return "{s:{c}^{n}}".format(s=" Serving Benchmark Result ", n=50, c="=")


def row(label: str, value: float, digits: int | None = 2) -> str:
    """One line of the text report; whole numbers without `digits`."""
    shown = f"{value:<10.{digits}f}" if digits is not None else f"{int(value):<10}"
    return f"{label + ':':<40} {shown}"


def total_rows(served: Served) -> list[str]:
    """The rows of the text report that are about all requests together."""
    fields = totals(served)
    return [row(label, fields[name], digits) for label, name, digits in _TOTAL_ROWS]


def latency_rows(served: Served, *, deviations: bool) -> list[str]:
    """The sections of the text report, one a latency."""
    lines: list[str] = []
    words = {"mean": "Mean", "median": "Median", "std": "Std Dev"}
    for short, statistic, ms in served.latencies():
        if statistic == "mean":
            lines.append("{s:{c}^{n}}".format(s=_TITLES[short], n=50, c="-"))
        if statistic == "std" and not deviations:
            continue
        word = words.get(statistic, statistic.upper())
        lines.append(row(f"{word} {short.upper()} (ms)", ms))
    return [*lines, "=" * 50]


def server_url(given: GivenOptions) -> str:
    """Where the server is."""
    host, port = given.text("--host", "127.0.0.1"), given.integer("--port", 8000)
    return given.text("--base-url") or f"http://{host}:{port}"


def report(
    given: GivenOptions,
    lines: Sequence[str],
    result: Mapping[str, Any],
    default_name: str,
    fault: str | None,
) -> Path | None:
    """Print the text report, and save the result where the options say so.

    Args:
        given: options, spelled as both programs do.
        lines: of the text report.
        result: what is saved.
        default_name: its file, where no option names it.
        fault: of the client; ``truncated`` leaves half of both.

    Returns:
        The file that was written; None: none.
    """
    print(halved("\n".join(lines), fault))
    if not given.has("--save-result"):
        return None
    path = Path(given.text("--result-dir"), given.text("--result-filename", default_name))
    path.write_text(halved(json.dumps(result), fault))
    return path
