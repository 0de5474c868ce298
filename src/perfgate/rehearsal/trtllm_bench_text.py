"""The report of trtllm-bench as text, with the labels of each release.

Formats: `tensorrt_llm/bench/dataclasses/reporting.py` and `general.py`, of 0.19, 1.0 and 1.2.
"""

from collections.abc import Mapping
from typing import Any

from perfgate.rehearsal.trtllm_bench_report import Run

_RULE = "=" * 59
_SPOTS = ("minimum", "maximum", "average", "p50", "p90", "p95", "p99")
_BREAKDOWNS = (
    ("tpot", "TPOT", "Time-per-Output-Token [TPOT] Breakdown (ms)"),
    ("ttft", "TTFT", "Time-to-First-Token [TTFT] Breakdown (ms) "),
    ("gen_tps", "GTPS", "Generation Throughput [GTPS] Breakdown (tps/user)"),
)
_NEW_LABELS_FROM = (0, 20)
_NO_HYPHEN_FROM = (1, 2)  # "TensorRT LLM Version", before "TensorRT-LLM Version"


def text(run: Run, report: Mapping[str, Any]) -> str:
    """The report as it is printed, with the labels of the release."""
    parts = ["\n", _backend(run, report["engine"])]
    if "machine" in report:
        machine = report["machine"]
        parts.append(
            _headed("MACHINE DETAILS ")
            + f"{machine['name']}, memory {machine['memory.total']:.2f} GB, "
            f"{machine['clocks.mem']:.2f} GHz\n\n"
        )
    request = report["request_info"]
    parts.append(
        _headed("REQUEST DETAILS ") + f"Number of requests:             {request['num_requests']}\n"
        f"Number of concurrent requests:  {request['avg_num_concurrent_requests']:.4f}\n"
        f"Average Input Length (tokens):  {request['avg_input_length']:.4f}\n"
        f"Average Output Length (tokens): {request['avg_output_length']:.4f}\n"
    )
    parts += [
        _world(report["world_info"], run.fraction),
        _headed("PERFORMANCE OVERVIEW "),
        _overview(run, report),
    ]
    if "decoding_stats" in report:
        parts.append(_decoding_text(report["decoding_stats"]))
    parts.append(_dataset_text(report["dataset"]))
    return "".join(parts)


def _headed(title: str) -> str:
    return f"{_RULE}\n= {title}\n{_RULE}\n"


def _backend(run: Run, engine: Mapping[str, Any]) -> str:
    name = "TensorRT LLM" if run.release >= _NO_HYPHEN_FROM else "TensorRT-LLM"
    return _headed("PYTORCH BACKEND") + (
        f"Model:\t\t\t{engine['model']}\n"
        f"Model Path:\t\t{engine['model_path']}\n"
        f"{name} Version:\t{engine['version']}\n"
        f"Dtype:\t\t\t{engine['dtype']}\n"
        f"KV Cache Dtype:\t\t{engine['kv_cache_dtype']}\n"
        f"Quantization:\t\t{engine['quantization']}\n\n"
    )


def _world(world: Mapping[str, Any], share: float | None) -> str:
    rows = [
        ("TP Size", world["tp_size"]),
        ("PP Size", world["pp_size"]),
        ("EP Size", world["ep_size"]),
        ("Max Runtime Batch Size", world["max_batch_size"]),
        ("Max Runtime Tokens", world["max_num_tokens"]),
        ("Scheduling Policy", world["scheduling_policy"]),
        ("KV Memory Percentage", None if share is None else f"{100 * share:.2f}%"),
        ("Issue Rate (req/sec)", f"{world['issue_rate']:.4E}"),
    ]
    lines = "".join(f"{label + ':':<23} {shown}\n" for label, shown in rows)
    return _headed("WORLD + RUNTIME INFORMATION ") + lines + "\n"


def _overview(run: Run, report: Mapping[str, Any]) -> str:
    performance = report["performance"]
    rate = ("Request Throughput (req/sec)", performance["request_throughput_req_s"])
    output = ("Total Output Throughput (tokens/sec)", performance["system_output_throughput_tok_s"])
    total = ("Total Token Throughput (tokens/sec)", performance["system_total_throughput_tok_s"])
    user, gpu = (performance[f"output_throughput_per_{one}_tok_s"] for one in ("user", "gpu"))
    times = [
        ("Total Latency (ms)", performance["total_latency_ms"]),
        ("Average request latency (ms)", performance["avg_request_latency_ms"]),
    ]
    new = run.release >= _NEW_LABELS_FROM
    if new:
        rows = [rate, output, total, *times]
        rows += [("Per User Output Throughput [w/ ctx] (tps/user)", user)]
        rows += [("Per GPU Output Throughput (tps/gpu)", gpu)]
    else:
        rows = [rate, output, ("Per User Output Throughput (tokens/sec/user)", user)]
        rows += [("Per GPU Output Throughput (tokens/sec/gpu)", gpu), total, *times]
    sections = ""
    if run.streaming:
        streamed = report["streaming_metrics"]
        speed = streamed["token_output_speed_tok_s"]
        means = [
            ("Average time-to-first-token [TTFT] (ms)", streamed["avg_ttft_ms"]),
            ("Average time-per-output-token [TPOT] (ms)", streamed["avg_tpot_ms"]),
        ]
        if new:
            rows += [*means, ("Per User Output Speed (tps/user)", speed)]
        else:
            rows += [("Per User Output Speed [1/TPOT] (tokens/sec/user)", speed), *means]
        for key, short, title in _BREAKDOWNS:
            sections += _breakdown(f"Per-Request {title}", short, streamed[f"{key}_percentiles"])
    if new:
        latencies = performance["request_latency_percentiles_ms"]
        sections += "\n-- Request Latency Breakdown (ms) -----------------------\n\n"
        sections += "".join(
            f"[Latency] {spot.upper():<7}: {ms:.4f}\n" for spot, ms in latencies.items()
        )
    return "".join(f"{label + ':':<49} {shown:.4f}\n" for label, shown in rows) + sections


def _breakdown(title: str, short: str, spots: Mapping[str, float]) -> str:
    lines = "".join(f"[{short}] {spot.upper():<7}: {spots[spot]:.4f}\n" for spot in _SPOTS)
    return f"\n-- {title}\n\n{lines}"


def _decoding_text(decoding: Mapping[str, Any]) -> str:
    found = _headed(f"DECODING STATISTICS ({decoding['mode']})") + "\n"
    for title, short, key in (
        ("Number of Draft Tokens", "DT", "num_draft_tokens"),
        ("Number of Accepted Draft Tokens", "ADT", "num_accepted_draft_tokens"),
        ("Draft Acceptance Rate", "DAR", "draft_acceptance_rate"),
        ("Acceptance Length", "AL", "acceptance_length"),
    ):
        spots = decoding[f"{key}_percentiles"]
        found += f"-- {title} Details --------------------------------\n\n"
        found += "".join(f"[{short}] {spot.upper():<7}: {spots[spot]:.2f}\n" for spot in _SPOTS)
    return found + _RULE + "\n"


def _dataset_text(dataset: Mapping[str, Any]) -> str:
    columns = [dataset[f"{short}_stats"] for short in ("isl", "osl", "seq_len")]
    names = {"MIN": "minimum", "MAX": "maximum", "AVG": "average"}
    names |= {f"P{part}": f"p{part}" for part in (50, 90, 95, 99)}
    rows = "".join(
        f"{label}:  " + "          ".join(f"{column[spot]:9.4f}" for column in columns) + "\n"
        for label, spot in names.items()
    )
    return (
        "\n" + _headed("DATASET DETAILS") + f"Dataset Path:         {dataset['dataset_path']}\n"
        f"Number of Sequences:  {dataset['num_requests']}\n"
        "\n-- Percentiles statistics ---------------------------------\n\n"
        "        Input              Output           Seq. Length\n"
        + "-" * 59
        + f"\n{rows}{_RULE}\n"
    )
