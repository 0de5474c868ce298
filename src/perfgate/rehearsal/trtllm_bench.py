"""A mock program for trtllm-bench: checks what it is given as the release would; synthetic numbers.

Known: `throughput`, and `prepare-dataset` where the release has it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.rehearsal import healthy_log as healthy
from perfgate.rehearsal.checkpoint import kv_cache_quantization, weight_quantization
from perfgate.rehearsal.dataset_file import DatasetFacts, look
from perfgate.rehearsal.fault_injection import completed, inject_client_fault, inject_engine_fault
from perfgate.rehearsal.llm_api_yaml import read_options
from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import Playbook, crash, end
from perfgate.rehearsal.prepare_dataset import generate
from perfgate.rehearsal.synthetic_metrics import Load
from perfgate.rehearsal.trtllm_bench_report import Run, statistics, text

_PROGRAM = "trtllm-bench"
_MAPPING_TOLD_FROM = (1, 1)
_MERGED_DEEPLY_FROM = (1, 3)


def main(argv: Sequence[str]) -> None:
    """Read the command line and run its subcommand."""
    playbook, outer = started(_PROGRAM, argv, argparse=False)
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
    model = outer.text("--model_path") or outer.text("--model")
    fraction = given.number("--kv_cache_free_gpu_mem_fraction", 0.9)
    world_size = given.integer("--tp", 1) * given.integer("--pp", 1)
    healthy.info("Preparing to run throughput benchmark...")
    healthy.info("Setting up throughput benchmark.")
    said = healthy.resolved(playbook, options, graphs_by_default=True)
    healthy.engine_starts(model, world_size, fraction, said)
    inject_engine_fault(playbook)
    if given.integer("--warmup", 2) > 0:
        healthy.info("Setting up for warmup...")
        healthy.info("Running warmup.")
        healthy.info("Warmup done.")
    healthy.info(f"Benchmarking {dataset.requests} requests.")
    if healthy.flattened(options).get("print_iter_log"):
        healthy.iterations(dataset.requests)
    fault = inject_client_fault(playbook)
    run = _run(playbook, outer, given, options, dataset, fault)
    healthy.info("Benchmark done. Reporting results...")
    if fault != "no_metrics":
        _report(given, run, cut=fault == "truncated")


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


def _run(
    playbook: Playbook,
    outer: GivenOptions,
    given: GivenOptions,
    options: Mapping[str, Any],
    dataset: DatasetFacts,
    fault: str | None,
) -> Run:
    requests = completed(dataset.requests, fault)
    concurrency = given.integer("--concurrency", -1)
    tp, pp = given.integer("--tp", 1), given.integer("--pp", 1)
    sizes = {
        "tp_size": tp,
        "pp_size": pp,
        "ep_size": given.integer("--ep", -1) if given.has("--ep") else None,
        "max_batch_size": given.integer("--max_batch_size", 2048),
        "max_num_tokens": given.integer("--max_num_tokens", 8192),
        "world_size": tp * pp,
    }
    in_flight = concurrency if concurrency > 0 else requests
    load = Load(requests, in_flight, dataset.lengths.isl, dataset.lengths.osl, tp * pp)
    values = playbook.performance(playbook.probe or f"c{in_flight}", load)
    folder = outer.text("--model_path")
    return Run(
        playbook=playbook,
        model=outer.text("--model"),
        model_path=folder,
        kv_cache_dtype=kv_cache_quantization(options, folder),
        quantization=weight_quantization(folder),
        sizes=sizes,
        fraction=_told_fraction(playbook, given, options),
        streaming=given.has("--streaming"),
        draft_layers=healthy.draft_tokens(options),
        dataset=Path(given.text("--dataset")).resolve(),
        lengths=dataset.lengths,
        requests=requests,
        values=values,
    )


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


def _report(given: GivenOptions, run: Run, *, cut: bool) -> None:
    report = statistics(run)
    name = given.text("--report_json")
    if name:
        content = json.dumps(report, indent=4)
        healthy.info(f"Writing report to '{Path(name).resolve()}'.")
        Path(name).write_text(content[: len(content) // 2] if cut else content)
    shown = text(run, report)
    if cut:
        shown = shown[: shown.index("PERFORMANCE OVERVIEW") + 180]
    print(f"{healthy.stamp()} [TRT-LLM] [I] {shown}", end="" if cut else "\n")
