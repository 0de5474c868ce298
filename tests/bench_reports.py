"""Reports of trtllm-bench as its releases write them, with numbers that belong together."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

RULE = "=" * 59


@dataclass(frozen=True)
class Run:
    """A made-up run: what was done in which time; every other number follows."""

    requests: int = 100
    isl: int = 128
    osl: int = 128
    duration_ms: float = 2000.0
    latency_ms: float = 1500.0
    gpus: int = 8
    streaming: bool = False
    mtp: bool = False

    @property
    def request_rate(self) -> float:
        return self.requests / self.duration_ms * 1e3

    @property
    def output_rate(self) -> float:
        return self.request_rate * self.osl

    @property
    def total_rate(self) -> float:
        return self.request_rate * (self.isl + self.osl)

    @property
    def user_rate(self) -> float:
        return self.osl / self.latency_ms * 1e3

    @property
    def ttft_ms(self) -> float:
        return 0.1 * self.latency_ms

    @property
    def tpot_ms(self) -> float:
        return 0.9 * self.latency_ms / max(self.osl - 1, 1)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run: times per token and lengths decide the latency, the concurrency the duration."""
    requests, osl = draw(st.integers(1, 200_000)), draw(st.integers(1, 32_000))
    latency_ms = draw(st.floats(1.0, 500.0)) * max(osl - 1, 1) / 0.9
    concurrency = draw(st.integers(1, requests))
    return Run(
        requests,
        draw(st.integers(1, 32_000)),
        osl,
        requests * latency_ms / concurrency,
        latency_ms,
        draw(st.sampled_from([1, 4, 8, 16])),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def spread(mean: float) -> dict[str, float]:
    """Percentiles around a mean."""
    return {
        "p50": 0.99 * mean,
        "p90": 1.05 * mean,
        "p95": 1.1 * mean,
        "p99": 1.2 * mean,
        "minimum": 0.8 * mean,
        "maximum": 1.25 * mean,
        "average": mean,
    }


def as_json(run: Run) -> dict[str, Any]:
    """The report as 1.1 writes it with --report_json."""
    report: dict[str, Any] = {
        "engine": {
            "model": "nvidia/DeepSeek-R1-FP4",
            "model_path": "None",
            "engine_dir": "None",
            "version": "1.1.0rc5",
            "backend": "Pytorch",
            "dtype": "bfloat16",
            "kv_cache_dtype": "FP8",
            "quantization": "NVFP4",
        },
        "machine": {"name": "NVIDIA B200", "memory.total": 178.35, "clocks.mem": 3.996},
        "world_info": {
            "tp_size": run.gpus,
            "pp_size": 1,
            "ep_size": run.gpus,
            "world_size": run.gpus,
            "max_batch_size": 384,
            "max_num_tokens": 1536,
            "scheduling_policy": "GUARANTEED_NO_EVICT",
            "kv_cache_percentage": 0.85,
            "issue_rate": 1.0526e15,
        },
        "request_info": {
            "num_requests": run.requests,
            "avg_num_concurrent_requests": run.request_rate * run.latency_ms / 1e3,
            "avg_input_length": float(run.isl),
            "avg_output_length": float(run.osl),
        },
        "performance": {
            "total_latency_ms": run.duration_ms,
            "avg_request_latency_ms": run.latency_ms,
            "request_throughput_req_s": run.request_rate,
            "system_output_throughput_tok_s": run.output_rate,
            "system_total_throughput_tok_s": run.total_rate,
            "output_throughput_per_user_tok_s": run.user_rate,
            "output_throughput_per_gpu_tok_s": run.output_rate / run.gpus,
            "request_latency_percentiles_ms": spread(run.latency_ms),
        },
        "dataset": {
            "isl_stats": spread(run.isl),
            "osl_stats": spread(run.osl),
            "num_requests": run.requests,
            "avg_isl": run.isl,
            "avg_osl": run.osl,
        },
    }
    if run.streaming:
        report["streaming_metrics"] = {
            "token_output_speed_tok_s": 1e3 / run.tpot_ms,
            "avg_ttft_ms": run.ttft_ms,
            "avg_tpot_ms": run.tpot_ms,
            "tpot_percentiles": spread(run.tpot_ms),
            "ttft_percentiles": spread(run.ttft_ms),
            "gen_tps_percentiles": spread(1e3 / run.tpot_ms),
        }
    if run.mtp:
        report["decoding_stats"] = {
            "mode": "MTP",
            "num_draft_tokens_percentiles": spread(300.0),
            "num_accepted_draft_tokens_percentiles": spread(150.0),
            "draft_acceptance_rate_percentiles": spread(0.5),
            "acceptance_length_percentiles": spread(2.5),
        }
    return report


def as_text(run: Run, generation: int = 2) -> str:
    """The report as it is printed; labels of the first (up to 0.19) or second generation."""
    report = as_json(run)
    engine, world, requests = report["engine"], report["world_info"], report["request_info"]
    lines = ["", *_head("PYTORCH BACKEND")]
    lines += [
        f"Model:\t\t\t{engine['model']}",
        f"Model Path:\t\t{engine['model_path']}",
        f"TensorRT-LLM Version:\t{engine['version']}",
        f"Dtype:\t\t\t{engine['dtype']}",
        f"KV Cache Dtype:\t\t{engine['kv_cache_dtype']}",
        f"Quantization:\t\t{engine['quantization']}",
        "",
    ]
    if generation == 2:
        lines += [*_head("MACHINE DETAILS "), "NVIDIA B200, memory 178.35 GB, 4.00 GHz", ""]
    lines += _head("REQUEST DETAILS ")
    lines += [
        f"Number of requests:             {requests['num_requests']}",
        f"Number of concurrent requests:  {requests['avg_num_concurrent_requests']:.4f}",
        f"Average Input Length (tokens):  {requests['avg_input_length']:.4f}",
        f"Average Output Length (tokens): {requests['avg_output_length']:.4f}",
    ]
    lines += _head("WORLD + RUNTIME INFORMATION ")
    lines += [
        f"TP Size:                {world['tp_size']}",
        f"PP Size:                {world['pp_size']}",
        f"EP Size:                {world['ep_size']}",
        f"Max Runtime Batch Size: {world['max_batch_size']}",
        f"Max Runtime Tokens:     {world['max_num_tokens']}",
        f"Scheduling Policy:      {world['scheduling_policy']}",
        f"KV Memory Percentage:   {world['kv_cache_percentage'] * 100:.2f}%",
        f"Issue Rate (req/sec):   {world['issue_rate']:.4E}",
        "",
        *_head("PERFORMANCE OVERVIEW "),
        *_overview(report, generation),
        *_breakdowns(report, generation),
        *_decoding(report),
        "",
        *_dataset(report["dataset"]),
    ]
    return "\n".join(lines) + "\n"


def excerpt(run: Run, generation: int = 2) -> str:
    """Only the overview's own lines, as documents show them."""
    lines = [*_head("PERFORMANCE OVERVIEW"), *_overview(as_json(run), generation)]
    return "\n".join(lines) + "\n"


def _head(title: str) -> list[str]:
    return [RULE, f"= {title}", RULE]


def _line(label: str, value: float) -> str:
    return f"{label + ':':<50}{value:.4f}"


def _overview(report: dict[str, Any], generation: int) -> list[str]:
    found, streamed = report["performance"], report.get("streaming_metrics")
    rate = _line("Request Throughput (req/sec)", found["request_throughput_req_s"])
    output = _line("Total Output Throughput (tokens/sec)", found["system_output_throughput_tok_s"])
    total = _line("Total Token Throughput (tokens/sec)", found["system_total_throughput_tok_s"])
    times = [
        _line("Total Latency (ms)", found["total_latency_ms"]),
        _line("Average request latency (ms)", found["avg_request_latency_ms"]),
    ]
    user, gpu = (
        found["output_throughput_per_user_tok_s"],
        found["output_throughput_per_gpu_tok_s"],
    )
    tokens: list[str] = []
    speed = "Per User Output Speed (tps/user)"
    if generation == 1:
        speed = "Per User Output Speed [1/TPOT] (tokens/sec/user)"
    if streamed:
        tokens = [
            _line("Average time-to-first-token [TTFT] (ms)", streamed["avg_ttft_ms"]),
            _line("Average time-per-output-token [TPOT] (ms)", streamed["avg_tpot_ms"]),
            _line(speed, streamed["token_output_speed_tok_s"]),
        ]
    if generation == 1:
        each = [
            _line("Per User Output Throughput (tokens/sec/user)", user),
            _line("Per GPU Output Throughput (tokens/sec/gpu)", gpu),
        ]
        return [rate, output, *each, total, *times, *tokens]
    each = [
        _line("Per User Output Throughput [w/ ctx] (tps/user)", user),
        _line("Per GPU Output Throughput (tps/gpu)", gpu),
    ]
    return [rate, output, total, *times, *each, *tokens]


def _rows(group: str, values: dict[str, float], digits: int = 4, last: str = "p99") -> list[str]:
    order = ["minimum", "maximum", "average", "p50", "p90", "p95", "p99"]
    if last == "average":
        order = ["p50", "p90", "p95", "p99", "minimum", "maximum", "average"]
    return [f"[{group}] {key.upper():<7}: {values[key]:.{digits}f}" for key in order]


def _breakdowns(report: dict[str, Any], generation: int) -> list[str]:
    lines: list[str] = []
    streamed = report.get("streaming_metrics")
    if streamed:
        lines += ["", "-- Per-Request Time-per-Output-Token [TPOT] Breakdown (ms)", ""]
        lines += _rows("TPOT", streamed["tpot_percentiles"])
        lines += ["", "-- Per-Request Time-to-First-Token [TTFT] Breakdown (ms) ", ""]
        lines += _rows("TTFT", streamed["ttft_percentiles"])
    if streamed and generation == 2:
        lines += ["", "-- Per-Request Generation Throughput [GTPS] Breakdown (tps/user)", ""]
        lines += _rows("GTPS", streamed["gen_tps_percentiles"])
    lines += ["", "-- Request Latency Breakdown (ms) -----------------------", ""]
    return lines + _rows(
        "Latency", report["performance"]["request_latency_percentiles_ms"], last="average"
    )


def _decoding(report: dict[str, Any]) -> list[str]:
    stats = report.get("decoding_stats")
    if not stats:
        return []
    lines = [*_head(f"DECODING STATISTICS ({stats['mode']})"), ""]
    for title, group, key in (
        ("Number of Draft Tokens", "DT", "num_draft_tokens"),
        ("Number of Accepted Draft Tokens", "ADT", "num_accepted_draft_tokens"),
        ("Draft Acceptance Rate", "DAR", "draft_acceptance_rate"),
        ("Acceptance Length", "AL", "acceptance_length"),
    ):
        lines += [f"-- {title} Details --------------------------------", "", ""]
        lines += _rows(group, stats[f"{key}_percentiles"], digits=2)
    return [*lines, RULE]


def _dataset(dataset: dict[str, Any]) -> list[str]:
    isl, osl = dataset["isl_stats"], dataset["osl_stats"]
    names = {"MIN": "minimum", "MAX": "maximum", "AVG": "average"}
    rows = [
        f"{row}:  {isl[key]:9.4f}          {osl[key]:9.4f}          {isl[key] + osl[key]:9.4f}"
        for row in ("MIN", "MAX", "AVG", "P50", "P90", "P95", "P99")
        for key in [names.get(row, row.lower())]
    ]
    return [
        *_head("DATASET DETAILS"),
        "Dataset Path:         /workspace/dataset.txt",
        f"Number of Sequences:  {dataset['num_requests']}",
        "",
        "-- Percentiles statistics ---------------------------------",
        "",
        "        Input              Output           Seq. Length",
        "-----------------------------------------------------------",
        *rows,
        RULE,
    ]
