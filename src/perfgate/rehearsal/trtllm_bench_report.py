"""The report of trtllm-bench: as JSON (`--report_json`), and as the text that is made of it.

Format: `tensorrt_llm/bench/dataclasses/reporting.py` of 1.0 and 1.2. It has what both parsers read;
of the numbers a real one has more. The text is told in ``trtllm_bench_report.toml``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct, toml

from perfgate.rehearsal.dataset_file import Lengths
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook

# Memory and its clock as the GPUs report them; 141 GB class and 180 GB class.
_MACHINES = {"H200": (139.81, 3.201), "B200": (178.35, 3.996), "GB200": (184.31, 3.996)}
_TEXT = Path(__file__).with_suffix(".toml")
_MACHINE_FROM = (1, 1)
_SPOTS = ("p50", "p90", "p95", "p99", "minimum", "maximum", "average")
_DECODING_FROM = (1, 0)
_SHARE_AS_FRACTION_FROM = (1, 1)  # before, in percent (#7102)


@dataclass(frozen=True)
class Run:
    """What a run of trtllm-bench was asked to do, and did.

    Attributes:
        playbook: of the program; its release decides on labels and sections.
        model: public name.
        model_path: folder; empty: none was given.
        kv_cache_dtype: as the report shows it; None: that of the model.
        quantization: algorithm of the weights.
        sizes: ``tp_size``, ``pp_size``, ``ep_size``, ``max_batch_size``, ``max_num_tokens``,
            ``world_size``.
        fraction: of the free GPU memory for the KV cache, as the report tells it; None: it does
            not.
        streaming: whether answers were streamed: without, TTFT and TPOT do not exist.
        draft_layers: of multi-token prediction; 0: off.
        dataset: path of the file.
        lengths: of its requests.
        requests: completed.
        values: all metrics, by canonical name.
    """

    playbook: Playbook
    model: str
    model_path: str
    kv_cache_dtype: str | None
    quantization: str | None
    sizes: Mapping[str, int | None]
    fraction: float | None
    streaming: bool
    draft_layers: int
    dataset: Path
    lengths: Lengths
    requests: int
    values: Mapping[str, float]


def statistics(run: Run) -> dict[str, Any]:
    """The report as JSON; an additional field says that it is synthetic."""
    value = run.values
    report: dict[str, Any] = {
        SYNTHETIC: True,
        "engine": {
            "model": run.model,
            "model_path": run.model_path or "None",
            "engine_dir": "None",
            "version": run.playbook.version,
            "backend": "Pytorch",
            "dtype": "bfloat16",
            "kv_cache_dtype": run.kv_cache_dtype,
            "quantization": run.quantization,
        },
    }
    if run.playbook.numbers >= _MACHINE_FROM:
        gpu = run.playbook.scenario_part.gpu
        memory, clock = _MACHINES.get(gpu, (0.0, 0.0))
        name = f"NVIDIA {gpu}"
        report["machine"] = {"name": name, "memory.total": memory, "clocks.mem": clock}
    latencies = {**value, "e2el_mean_ms": value["mean_request_latency_ms"]}  # one number
    latency_s = value["mean_request_latency_ms"] / 1000
    report["world_info"] = {
        **run.sizes,
        "scheduling_policy": "GUARANTEED_NO_EVICT",
        "kv_cache_percentage": _share(run),
        "issue_rate": 2.3129e15,
    }
    report["request_info"] = {
        "num_requests": run.requests,
        "avg_num_concurrent_requests": value["request_throughput"] * latency_s,
        "avg_input_length": run.lengths.isl,
        "avg_output_length": run.lengths.osl,
    }
    report["performance"] = {
        "total_latency_ms": 1000 * value["duration_s"],
        "avg_request_latency_ms": value["mean_request_latency_ms"],
        "request_throughput_req_s": value["request_throughput"],
        "system_output_throughput_tok_s": value["output_throughput"],
        "system_total_throughput_tok_s": value["total_token_throughput"],
        "output_throughput_per_user_tok_s": value["output_throughput_per_user"],
        "output_throughput_per_gpu_tok_s": value["output_throughput_per_gpu"],
        "request_latency_percentiles_ms": _spread(latencies, "e2el"),
    }
    if run.streaming:
        report["streaming_metrics"] = {
            "token_output_speed_tok_s": value["output_speed_per_user"],
            "avg_ttft_ms": value["ttft_mean_ms"],
            "avg_tpot_ms": value["tpot_mean_ms"],
            "tpot_percentiles": _spread(value, "tpot"),
            "ttft_percentiles": _spread(value, "ttft"),
        }
    if run.draft_layers and run.playbook.numbers >= _DECODING_FROM:
        length = value.get("acceptance_length", 1.0)
        rate = max(0.0, length - 1) / run.draft_layers
        report["decoding_stats"] = {
            "mode": "MTP",
            "draft_acceptance_rate_percentiles": dict.fromkeys(_SPOTS, rate),
            "acceptance_length_percentiles": dict.fromkeys(_SPOTS, length),
        }
    report["dataset"] = {
        "isl_stats": _percentiles(run.lengths.inputs),
        "osl_stats": _percentiles(run.lengths.outputs),
        "seq_len_stats": _percentiles(run.lengths.whole),
        "num_requests": run.requests,
        "dataset_path": str(run.dataset),
        "avg_isl": int(run.lengths.isl),
        "avg_osl": int(run.lengths.osl),
    }
    return report


class _Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A section of the text, and when it is printed; the file tells what each field means."""

    text: str
    since: tuple[int, int] = (0, 0)
    before: tuple[int, int] = (99, 0)
    needs: str = "engine"


class _Sections(Struct):
    """The file of sections."""

    section: tuple[_Section, ...]


def text(run: Run, report: Mapping[str, Any]) -> str:
    """The report as it is printed, with the labels of the release."""
    share = None if run.fraction is None else f"{100 * run.fraction:.2f}%"
    return "".join(
        one.text.format(share=share, **report)
        for one in toml.decode(_TEXT.read_bytes(), type=_Sections).section
        if one.since <= run.playbook.numbers < one.before and one.needs in report
    )


def _share(run: Run) -> float | None:
    if run.fraction is None or run.playbook.numbers >= _SHARE_AS_FRACTION_FROM:
        return run.fraction
    return run.fraction * 100.0


def _spread(value: Mapping[str, float], short: str) -> dict[str, float]:
    mean, median = value[f"{short}_mean_ms"], value[f"{short}_median_ms"]
    p90, p99 = value[f"{short}_p90_ms"], value[f"{short}_p99_ms"]
    return {
        "p50": median,
        "p90": p90,
        "p95": (p90 + p99) / 2,
        "p99": p99,
        "minimum": 0.9 * min(mean, median),
        "maximum": 1.05 * max(mean, p99),
        "average": mean,
    }


def _percentiles(lengths: Sequence[int]) -> dict[str, float]:
    ordered = sorted(lengths)
    found = {f"p{part}": float(ordered[len(ordered) * part // 100]) for part in (50, 90, 95, 99)}
    ends = {"minimum": float(ordered[0]), "maximum": float(ordered[-1])}
    return {**found, **ends, "average": sum(ordered) / len(ordered)}
