"""The report of benchmark_serving and of `vllm bench serve`, which share their ancestor.

Formats: `tensorrt_llm/serve/scripts/benchmark_serving.py` of 1.0 and newer,
`vllm/benchmarks/serve.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_TITLES = {
    "ttft": "Time to First Token",
    "tpot": "Time per Output Token (excl. 1st token)",
    "itl": "Inter-token Latency",
    "e2el": "End-to-end Latency",
}
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


def latency_fields(served: Served) -> dict[str, float]:
    """``mean_ttft_ms`` and so on."""
    return {f"{statistic}_{short}_ms": ms for short, statistic, ms in served.latencies()}


def heading() -> str:
    return "{s:{c}^{n}}".format(s=" Serving Benchmark Result ", n=50, c="=")


def row(label: str, value: float, digits: int | None = 2) -> str:
    """One line of the text report; whole numbers without `digits`."""
    shown = f"{value:<10.{digits}f}" if digits is not None else f"{int(value):<10}"
    return f"{label + ':':<40} {shown}"


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
