"""A mock program for trtllm-bench: checks what it is given as the release would; synthetic numbers.

Known: `throughput`, and `prepare-dataset` where the release has it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, completed, crash, end, halved
from perfgate.rehearsal.programs import healthy_log as healthy
from perfgate.rehearsal.programs.datasets import DatasetFacts, generate, look
from perfgate.rehearsal.programs.llm_api import (
    kv_cache_quantization,
    read_options,
    weight_quantization,
)
from perfgate.rehearsal.programs.report_format import printed, result
from perfgate.rehearsal.synthetic_metrics import Load

_PROGRAM = "trtllm-bench"
_MAPPING_TOLD_FROM = (1, 1)
_MERGED_DEEPLY_FROM = (1, 3)
# Memory and its clock as the GPUs report them; 141 GB class and 180 GB class.
_MACHINES = {"H200": (139.81, 3.201), "B200": (178.35, 3.996), "GB200": (184.31, 3.996)}
_SPOTS = ("p50", "p90", "p95", "p99", "minimum", "maximum", "average")


def main(argv: Sequence[str]) -> None:
    """Read the command line and run its subcommand."""
    playbook, outer = started(_PROGRAM, argv)
    program = f"{_PROGRAM} {outer.command}"
    if outer.command == "throughput":
        throughput(playbook, outer)
    elif outer.command == "prepare-dataset":
        generate(playbook, read(playbook, program, outer.rest), program)
    else:
        end(f"{program} has no mock program")


def throughput(playbook: Playbook, outer: GivenOptions) -> None:
    """The subcommand that measures."""
    given = read(playbook, f"{_PROGRAM} throughput", outer.rest, engine=True)
    options = read_options(playbook, given)
    dataset = _dataset(given)
    healthy.info("Preparing to run throughput benchmark...")
    healthy.info("Setting up throughput benchmark.")
    healthy.engine_starts(
        outer.text("--model_path") or outer.text("--model"),
        given.integer("--tp", 1) * given.integer("--pp", 1),
        given.number("--kv_cache_free_gpu_mem_fraction", 0.9),
        healthy.resolved(playbook, options, graphs_by_default=True),
    )
    playbook.inject_engine_fault()
    if given.integer("--warmup", 2) > 0:
        healthy.info("Setting up for warmup...")
        healthy.info("Running warmup.")
        healthy.info("Warmup done.")
    healthy.info(f"Benchmarking {dataset.requests} requests.")
    if healthy.flattened(options).get("print_iter_log"):
        healthy.iterations(dataset.requests)
    fault = playbook.inject_client_fault()
    values = _values(playbook, outer, given, options, dataset, fault)
    healthy.info("Benchmark done. Reporting results...")
    if fault == "no_metrics":
        return
    report = result(__file__, "throughput", playbook.numbers, values)
    if name := given.text("--report_json"):
        healthy.info(f"Writing report to '{Path(name).resolve()}'.")
        Path(name).write_text(halved(json.dumps(report, indent=4), fault))
    text = printed(__file__, "throughput", playbook.numbers, {**report, "share": values["share"]})
    cut = fault == "truncated"
    if cut:
        text = text[: text.index("PERFORMANCE OVERVIEW") + 180]
    print(f"{healthy.stamp()} [TRT-LLM] [I] {text}", end="" if cut else "\n")


def _dataset(given: GivenOptions) -> DatasetFacts:
    path = Path(given.text("--dataset"))
    if not path.is_file():
        print(
            f"Usage: {_PROGRAM} throughput [OPTIONS]\n\nError: Invalid value for '--dataset': "
            f"Path '{path}' does not exist.",
            file=sys.stderr,
        )
        raise SystemExit(2)
    try:
        return look(path, given.integer("--num_requests", 0))
    except (ValueError, KeyError) as error:
        crash(f"{type(error).__name__}: {error}")


def _values(
    playbook: Playbook,
    outer: GivenOptions,
    given: GivenOptions,
    options: Mapping[str, Any],
    dataset: DatasetFacts,
    fault: str | None,
) -> dict[str, Any]:
    """What the run was asked to do, and did, by the names of ``trtllm_bench.toml``."""
    requests = completed(dataset.requests, fault)
    concurrency = given.integer("--concurrency", -1)
    tp, pp = given.integer("--tp", 1), given.integer("--pp", 1)
    in_flight = concurrency if concurrency > 0 else requests
    load = Load(requests, in_flight, dataset.isl, dataset.osl, tp * pp)
    value = playbook.performance(playbook.probe or f"c{in_flight}", load)
    latency_ms = value["mean_request_latency_ms"]
    folder, gpu = outer.text("--model_path"), playbook.scenario_part.gpu
    memory, clock = _MACHINES.get(gpu, (0.0, 0.0))
    fraction = _told_fraction(playbook, given, options)
    layers, accepted = healthy.draft_tokens(options), value.get("acceptance_length", 1.0)
    return {
        **value,
        SYNTHETIC: True,
        "model": outer.text("--model"),
        "model_path": folder or "None",
        "version": playbook.version,
        "kv_cache_dtype": kv_cache_quantization(options, folder),
        "quantization": weight_quantization(folder),
        "gpu": f"NVIDIA {gpu}",
        "memory": memory,
        "clock": clock,
        "tp_size": tp,
        "pp_size": pp,
        "ep_size": given.integer("--ep", -1) if given.has("--ep") else None,
        "max_batch_size": given.integer("--max_batch_size", 2048),
        "max_num_tokens": given.integer("--max_num_tokens", 8192),
        "world_size": tp * pp,
        "fraction": fraction,
        "percent": None if fraction is None else fraction * 100.0,
        "share": None if fraction is None else f"{100 * fraction:.2f}%",
        "num_requests": requests,
        "in_flight": value["request_throughput"] * (latency_ms / 1000),
        "isl": dataset.isl,
        "osl": dataset.osl,
        "total_latency_ms": 1000 * value["duration_s"],
        # The mean is one number in both.
        "request_latency_percentiles_ms": _spread({**value, "e2el_mean_ms": latency_ms}, "e2el"),
        "streaming": given.has("--streaming"),  # without it, TTFT and TPOT do not exist
        "tpot_percentiles": _spread(value, "tpot"),
        "ttft_percentiles": _spread(value, "ttft"),
        "draft_layers": layers,
        "draft_acceptance_rate_percentiles": dict.fromkeys(
            _SPOTS, max(0.0, accepted - 1) / max(1, layers)
        ),
        "acceptance_length_percentiles": dict.fromkeys(_SPOTS, accepted),
        "isl_stats": _percentiles(dataset.inputs),
        "osl_stats": _percentiles(dataset.outputs),
        "seq_len_stats": _percentiles(dataset.whole),
        "dataset_path": str(Path(given.text("--dataset")).resolve()),
        "avg_isl": int(dataset.isl),
        "avg_osl": int(dataset.osl),
    }


def _told_fraction(
    playbook: Playbook, given: GivenOptions, options: Mapping[str, Any]
) -> float | None:
    """The share of the KV cache that the report tells.

    Up to 1.0 what the command line says, in force or not. From 1.1 on that of the mapping in force,
    and before 1.3.0rc3 (which candidate is not known) a mapping of the YAML file replaces the one
    that the command line made.
    """
    asked = given.number("--kv_cache_free_gpu_mem_fraction", 0.9)
    written = options.get("kv_cache_config")
    if playbook.numbers < _MAPPING_TOLD_FROM or not isinstance(written, dict):
        return asked
    share = written.get("free_gpu_memory_fraction")
    if share is None:
        return asked if playbook.numbers >= _MERGED_DEEPLY_FROM else None
    return float(share)


def _spread(value: Mapping[str, float], short: str) -> dict[str, float]:
    mean, median = value[f"{short}_mean_ms"], value[f"{short}_median_ms"]
    p90, p99 = value[f"{short}_p90_ms"], value[f"{short}_p99_ms"]
    ends = (0.9 * min(mean, median), 1.05 * max(mean, p99), mean)
    return dict(zip(_SPOTS, (median, p90, (p90 + p99) / 2, p99, *ends), strict=True))


def _percentiles(lengths: Sequence[int]) -> dict[str, float]:
    ordered = sorted(lengths)
    parts = (float(ordered[len(ordered) * part // 100]) for part in (50, 90, 95, 99))
    ends = (float(ordered[0]), float(ordered[-1]), sum(ordered) / len(ordered))
    return dict(zip(_SPOTS, (*parts, *ends), strict=True))
