"""The table of metrics: one name, unit, direction, family, prior sigma and default band for each.

Everything else in perfgate looks these facts up here. Priors and default bands of one run are those
of the calibration on DeepSeek-R1 nightlies (docs/verdicts.md, "Where the priors come from");
`None` as band means the metric is reported but never gates unless a scenario gives it a band.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from perfgate.core.errors import InputError

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Family:
    """Metrics that share their noise.

    Attributes:
        name: the family's name.
        sigma: prior standard deviation of one run on the log scale (0.005 = 0.5 %).
        band: default loss, as a fraction, from which on a change counts; None: report only.
        on_nodes: sigma and band on several nodes, where they are known to differ.
    """

    name: str
    sigma: float
    band: float | None
    on_nodes: tuple[float, float] | None = None

    def on(self, nodes: int) -> "Family":
        """The family as it is on so many nodes."""
        if nodes == 1 or self.on_nodes is None:
            return self
        sigma, band = self.on_nodes
        return replace(self, sigma=sigma, band=band)


@dataclass(frozen=True)
class Metric:
    """What one metric is.

    Attributes:
        name: canonical name, the only one used in records, baselines and reports.
        unit: unit of every stored value.
        direction: whether "higher" or "lower" values are better.
        family: its noise family.
        meaning: one line for people.
    """

    name: str
    unit: str
    direction: Direction
    family: Family
    meaning: str


THROUGHPUT = Family("throughput", 0.005, 0.02, on_nodes=(0.016, 0.06))
LATENCY = Family("latency", 0.005, 0.02, on_nodes=(0.016, 0.06))
TPOT = Family("tpot", 0.005, 0.02, on_nodes=(0.013, 0.05))
TPOT_TAIL = Family("tpot_tail", 0.008, 0.04)
TTFT = Family("ttft", 0.03, 0.15)
TTFT_TAIL = Family("ttft_tail", 0.05, None)
ITL_TAIL = Family("itl_tail", 0.05, None)
CPU = Family("cpu", 0.01, 0.05)
ACCEPTANCE = Family("acceptance", 0.01, 0.03)
ACCURACY = Family("accuracy", 0.0, 0.02)  # band is absolute: 2 points; sigma is binomial or paired

_STATISTICS = ("mean", "median", "p90", "p95", "p99")
_LATENCIES: dict[str, tuple[str, Family, Family]] = {
    "ttft": ("time to first token", TTFT, TTFT_TAIL),
    "tpot": ("time per output token after the first", TPOT, TPOT_TAIL),
    "itl": ("time between two streamed chunks", TPOT, ITL_TAIL),
    "e2el": ("end-to-end latency of a request", LATENCY, TTFT_TAIL),
}


def _latency_metrics() -> list[Metric]:
    found = []
    for short, (meaning, body, tail) in _LATENCIES.items():
        for statistic in _STATISTICS:
            family = body if statistic in ("mean", "median") else tail
            name = f"{short}_{statistic}_ms"
            found.append(Metric(name, "ms", "lower", family, f"{statistic} {meaning}"))
    return found


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in [
        Metric("request_throughput", "req/s", "higher", THROUGHPUT, "completed requests a second"),
        Metric(
            "request_goodput",
            "req/s",
            "higher",
            THROUGHPUT,
            "requests a second that met the latency limits they were asked to",
        ),
        Metric("output_throughput", "tokens/s", "higher", THROUGHPUT, "output tokens a second"),
        Metric(
            "total_token_throughput",
            "tokens/s",
            "higher",
            THROUGHPUT,
            "input and output tokens a second",
        ),
        Metric(
            "output_throughput_per_gpu",
            "tokens/s",
            "higher",
            THROUGHPUT,
            "output tokens a second and GPU",
        ),
        Metric(
            "output_throughput_per_user",
            "tokens/s",
            "higher",
            THROUGHPUT,
            "output tokens a second of one request, its context phase included",
        ),
        Metric("mean_request_latency_ms", "ms", "lower", LATENCY, "mean latency of a request"),
        Metric("duration_s", "s", "lower", LATENCY, "time from first request to last answer"),
        *_latency_metrics(),
        Metric("output_speed_per_user", "tokens/s", "higher", TPOT, "1/TPOT: speed after prefill"),
        Metric(
            "acceptance_length",
            "tokens",
            "higher",
            ACCEPTANCE,
            "tokens accepted per step of speculative decoding",
        ),
        Metric(
            "draft_acceptance_rate",
            "fraction",
            "higher",
            ACCEPTANCE,
            "share of drafted tokens that speculative decoding accepted",
        ),
        Metric(
            "server_cpu_s_per_1k_tokens",
            "s",
            "lower",
            CPU,
            "CPU seconds of the server's process tree per 1,000 output tokens",
        ),
    ]
}

_ACCURACY = re.compile(r"accuracy:(?P<task>[\w.-]+):(?P<metric>[\w.-]+):(?P<filter>[\w.-]+)")


def accuracy_name(task: str, metric: str, filter_name: str) -> str:
    """Canonical name of a score, e.g. ``accuracy:gsm8k:exact_match:strict-match``."""
    return f"accuracy:{task}:{metric}:{filter_name}"


def is_accuracy(name: str) -> bool:
    """Whether `name` is an accuracy metric (fraction 0…1, higher is better)."""
    return _ACCURACY.fullmatch(name) is not None


def lookup(name: str) -> Metric:
    """The metric called `name`.

    Raises:
        InputError: no metric has that name.
    """
    if name in METRICS:
        return METRICS[name]
    match = _ACCURACY.fullmatch(name)
    if match:
        meaning = f"{match['metric']} of {match['task']}, filter {match['filter']}"
        return Metric(name, "fraction", "higher", ACCURACY, meaning)
    raise InputError(
        "unknown metric",
        found=name,
        expected="accuracy:<task>:<metric>:<filter> or one of " + ", ".join(sorted(METRICS)),
    )
