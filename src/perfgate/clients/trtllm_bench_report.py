"""What a report of trtllm-bench says, whichever way it was written, and whether it holds together.

Fields, units and formulas are those of `tensorrt_llm/bench/dataclasses/reporting.py` and
`statistics.py`, 0.20 to 1.3. The JSON report is read by `trtllm_bench_json`, the printed one by
`trtllm_bench_text`; both give the same names.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from perfgate.clients.identities import require_gpus, require_ordered, require_totals
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement

CLIENT = "trtllm-bench"

# Canonical metric ← key in the JSON report's "performance"; factor to our unit.
PERFORMANCE: dict[str, tuple[str, float]] = {
    "request_throughput_req_s": ("request_throughput", 1.0),
    "system_output_throughput_tok_s": ("output_throughput", 1.0),
    "system_total_throughput_tok_s": ("total_token_throughput", 1.0),
    "total_latency_ms": ("duration_s", 1e-3),
    "avg_request_latency_ms": ("mean_request_latency_ms", 1.0),
    "output_throughput_per_user_tok_s": ("output_throughput_per_user", 1.0),
    "output_throughput_per_gpu_tok_s": ("output_throughput_per_gpu", 1.0),
}
STREAMING: dict[str, tuple[str, float]] = {
    "avg_ttft_ms": ("ttft_mean_ms", 1.0),
    "avg_tpot_ms": ("tpot_mean_ms", 1.0),
    # Mean of the requests' own speeds, not 1 / mean TPOT, which it can exceed by a tenth.
    "token_output_speed_tok_s": ("output_speed_per_user", 1.0),
}
# Total tokens a second came with 0.18 (pull request #3212); documents' excerpts lack it too.
OPTIONAL = ("system_total_throughput_tok_s",)

PERCENTILES = {"average": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
EXTREMES = {"minimum": "min", "maximum": "max"}


@dataclass(frozen=True)
class BenchReport:
    """A report as it stands, not yet compared with what was asked.

    Attributes:
        metrics: canonical name → value.
        facts: what the report says of the engine and the requests.
        rounding: half a unit of the last printed digit; 0 for JSON.
    """

    metrics: Mapping[str, float]
    facts: Mapping[str, Json]
    rounding: float = 0.0

    def measurement(self) -> Measurement:
        """The report as a measurement.

        Raises:
            RunError: ``no_metrics``, its numbers contradict each other.
        """
        self._require_consistent()
        return Measurement(self.metrics, {"client": CLIENT, **self.facts})

    def _require_consistent(self) -> None:
        found = self.metrics
        require_ordered(found)
        require_gpus(found, self._number("gpus"))
        requests, isl, osl = map(self._number, ("requests_completed", "isl", "osl"))
        require_totals(found, requests, isl, osl, self.rounding)

    def _number(self, fact: str) -> float | None:
        value = self.facts.get(fact)
        return float(value) if isinstance(value, int | float) else None


def require_whole_streaming(metrics: Mapping[str, float]) -> bool:
    """Whether the report has token times: all of them or none.

    Raises:
        RunError: ``truncated_output``, only some are there.
    """
    names = [name for name, _ in STREAMING.values()]
    missing = [name for name in names if name not in metrics]
    if missing and len(missing) < len(names):
        raise RunError("truncated_output", f"the report has token times, but no {missing[0]}")
    return not missing
