"""Mock programs of TensorRT-LLM that need no server, and the dataset file that they read.

trtllm-bench: `throughput`, and `prepare-dataset` where the release has it; prepare_dataset.py, and
quickstart_advanced.py. Numbers and answers are synthetic; what a program is given it checks as the
release would.

A dataset is one JSON object a line (`tensorrt_llm/bench/utils/data.py`): ``task_id`` and
``output_tokens`` must be there, and ``input_ids`` or ``prompt``. Synthetic prompts are as the real
program's; the tokens have one digit each, so that files stay small.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, end, here
from perfgate.rehearsal.programs import llm_api
from perfgate.rehearsal.programs.report_format import facts, option_values, printed, result
from perfgate.rehearsal.synthetic_metrics import Load

_MAPPING_TOLD_FROM = (1, 1)
_MERGED_DEEPLY_FROM = (1, 3)
# Memory and its clock as the GPUs report them; 141 GB class and 180 GB class.
_MACHINES = {"H200": (139.81, 3.201), "B200": (178.35, 3.996), "GB200": (184.31, 3.996)}
_SPOTS = ("p50", "p90", "p95", "p99", "minimum", "maximum", "average")
_KIND = "token-norm-dist"
_SMALL = 8 * 2**20  # bytes up to which every line is parsed
_LINES_AT_ONCE = 512
# Lines are numbered in 0.20 and newer; the document, of 0.19, shows them without.
_NUMBERED_FROM = (0, 20)


class DatasetFacts(NamedTuple):
    """What a dataset file holds.

    Attributes:
        requests: how many.
        inputs: lengths in tokens, of those requests that were looked at.
        outputs: likewise.
    """

    requests: int
    inputs: Sequence[int]
    outputs: Sequence[int]


def quickstart_advanced(argv: Sequence[str]) -> None:
    """quickstart_advanced.py: answer the prompts."""
    playbook, given = started("quickstart_advanced.py", argv, engine=True)
    llm_api.engine_starts(given.get("--model_dir", ""), given.get("--tp_size", 1), 0.9)
    playbook.inject_engine_fault()
    fault = playbook.inject_client_fault()
    known = facts(__file__, "quickstart")
    prompts = given.all("--prompt") or known["prompts"]
    count = len(prompts)
    print(f"Processed requests: 100%|##########| {count}/{count}", file=sys.stderr)
    if fault == "no_metrics":
        return
    lines = []
    for number, prompt in enumerate(prompts):
        answer = "" if fault == "zero_metrics" else playbook.reply(prompt, known["answer"])
        mark = f"[{number}] " if playbook.numbers >= _NUMBERED_FROM else ""
        lines.append(f"{mark}Prompt: {prompt!r}, Generated text: {answer!r}")
    if fault == "partial":
        lines = lines[:-1]
    if fault == "truncated":
        lines[-1] = lines[-1][:-20]
    print("\n".join(lines))


def trtllm_bench(argv: Sequence[str]) -> None:
    """trtllm-bench: read the command line and run its subcommand."""
    playbook, outer = started("trtllm-bench", argv)
    program = f"trtllm-bench {outer.command}"
    if outer.command == "throughput":
        given = read(playbook, program, outer.rest, engine=True)
        _throughput(playbook, outer.get("--model", ""), outer.get("--model_path", ""), given)
    elif outer.command == "prepare-dataset":
        _generate(playbook, read(playbook, program, outer.rest), program)
    else:
        end(f"{program} has no mock program")


def _throughput(playbook: Playbook, model: str, folder: str, given: GivenOptions) -> None:
    options = llm_api.read_options(playbook, given)
    path = Path(given.get("--dataset", ""))
    if not path.is_file():
        end(f"Error: Invalid value for '--dataset': Path '{path}' does not exist.")
    dataset = look(path, given.get("--num_requests", 0))
    llm_api.info("Preparing to run throughput benchmark...")
    llm_api.info("Setting up throughput benchmark.")
    values = option_values(__file__, "throughput", given)
    values |= {"model": model, "model_path": folder or "None", "version": playbook.version}
    said = llm_api.resolved(playbook, options, graphs_by_default=True)
    values["world_size"] = world_size = values["tp_size"] * values["pp_size"]
    llm_api.engine_starts(folder or model, world_size, values["asked_fraction"], said)
    playbook.inject_engine_fault()
    if given.get("--warmup", 2) > 0:
        for told in ("Setting up for warmup...", "Running warmup.", "Warmup done."):
            llm_api.info(told)
    llm_api.info(f"Benchmarking {dataset.requests} requests.")
    if llm_api.flattened(options).get("print_iter_log"):
        llm_api.iterations(dataset.requests)
    fault = playbook.inject_client_fault()
    checkpoint, dtype = llm_api.checkpoint_quantization(folder), llm_api.kv_cache_dtype(options)
    values |= {
        SYNTHETIC: True,
        "kv_cache_dtype": dtype or checkpoint.get("kv_cache_quant_algo"),
        "quantization": checkpoint.get("quant_algo"),
        "ep_size": given.get("--ep", -1) if given.has("--ep") else None,
        "dataset_path": str(path.resolve()),
        **_fraction(playbook, values["asked_fraction"], options),
        **_measured(playbook, values, dataset, llm_api.draft_tokens(options)),
    }
    llm_api.info("Benchmark done. Reporting results...")
    if fault == "no_metrics":
        return
    report = result(__file__, "throughput", playbook.numbers, values)
    if name := given.get("--report_json", ""):
        llm_api.info(f"Writing report to '{Path(name).resolve()}'.")
        Path(name).write_text(playbook.halved(json.dumps(report, indent=4)))
    text = printed(__file__, "throughput", playbook.numbers, {**report, "share": values["share"]})
    cut = fault == "truncated"
    if cut:
        text = text[: text.index("PERFORMANCE OVERVIEW") + 180]
    print(f"{llm_api.stamp()} [TRT-LLM] [I] {text}", end="" if cut else "\n")


def _measured(
    playbook: Playbook, values: Mapping[str, Any], dataset: DatasetFacts, layers: int
) -> dict[str, Any]:
    """What the run did, by the names of ``offline.toml``."""
    requests = playbook.completed(dataset.requests)
    in_flight = values["concurrency"] if values["concurrency"] > 0 else requests
    stats = {
        "isl_stats": _percentiles(dataset.inputs),
        "osl_stats": _percentiles(dataset.outputs),
        "seq_len_stats": _percentiles(
            [*map(sum, zip(dataset.inputs, dataset.outputs, strict=True))]
        ),
    }
    isl, osl = stats["isl_stats"]["average"], stats["osl_stats"]["average"]
    load = Load(requests, in_flight, isl, osl, values["world_size"])
    value = playbook.performance(playbook.probe or f"c{in_flight}", load)
    latency_ms = value["mean_request_latency_ms"]
    accepted, gpu = value.get("acceptance_length", 1.0), playbook.scenario_part.gpu
    memory, clock = _MACHINES.get(gpu, (0.0, 0.0))
    rate = max(0.0, accepted - 1) / max(1, layers)
    return {
        **value,
        **stats,
        "gpu": f"NVIDIA {gpu}",
        "memory": memory,
        "clock": clock,
        "num_requests": requests,
        "in_flight": value["request_throughput"] * (latency_ms / 1000),
        "isl": isl,
        "osl": osl,
        "avg_isl": int(isl),
        "avg_osl": int(osl),
        "total_latency_ms": 1000 * value["duration_s"],
        # The mean is one number in both.
        "request_latency_percentiles_ms": _spread({**value, "e2el_mean_ms": latency_ms}, "e2el"),
        "tpot_percentiles": _spread(value, "tpot"),
        "ttft_percentiles": _spread(value, "ttft"),
        "draft_layers": layers,
        "draft_acceptance_rate_percentiles": dict.fromkeys(_SPOTS, rate),
        "acceptance_length_percentiles": dict.fromkeys(_SPOTS, accepted),
    }


def _fraction(playbook: Playbook, asked: float, options: Mapping[str, Any]) -> dict[str, Any]:
    """The share of the KV cache that the report tells, in each of its forms.

    Up to 1.0 what the command line says, in force or not. From 1.1 on that of the mapping in force,
    and before 1.3.0rc3 (which candidate is not known) a mapping of the YAML file replaces the one
    that the command line made.
    """
    fraction: float | None = asked
    written = options.get("kv_cache_config")
    if playbook.numbers >= _MAPPING_TOLD_FROM and isinstance(written, dict):
        kept = asked if playbook.numbers >= _MERGED_DEEPLY_FROM else None
        fraction = written.get("free_gpu_memory_fraction", kept)
    if fraction is None:
        return dict.fromkeys(("fraction", "percent", "share"))
    return {"fraction": fraction, "percent": fraction * 100.0, "share": f"{100 * fraction:.2f}%"}


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


def write_synthetic(stream: BinaryIO, requests: int, isl: int, osl: int) -> None:
    """Requests of `isl` made-up one-digit tokens, which ask for `osl` tokens each."""
    tokens = ",".join(str(1 + number % 9) for number in range(isl))
    rest = f',"input_ids":[{tokens}],"output_tokens":{osl}}}\n'.encode()
    for first in range(0, requests, _LINES_AT_ONCE):
        numbers = range(first, min(requests, first + _LINES_AT_ONCE))
        stream.write(b"".join(b'{"task_id":%d' % number + rest for number in numbers))


def look(path: Path, limit: int) -> DatasetFacts:
    """What trtllm-bench takes from a dataset.

    Args:
        path: the file.
        limit: most requests to take; 0: all.

    Raises:
        ValueError: a line is no JSON object, or the file is empty.
        KeyError: a line lacks what must be there.
    """
    with path.open("rb") as file:
        if path.stat().st_size <= _SMALL:
            lines = [line for line in file if line.strip()][: limit or None]
            requests = len(lines)
        else:
            count, lines = _sampled(file, path.stat().st_size)
            requests = min(count, limit or count)
    inputs, outputs = [], []
    for request in map(json.loads, lines):
        ids = request.get("input_ids", request.get("logits"))
        inputs.append(len(request["prompt"].split()) if ids is None else len(ids))
        _ = request["task_id"]
        outputs.append(int(request["output_tokens"]))
    if not inputs:
        raise ValueError("the dataset is empty")
    return DatasetFacts(requests, inputs, outputs)


def _sampled(file: BinaryIO, size: int) -> tuple[int, list[bytes]]:
    """How many lines there are; and the first, one behind each quarter, and the last."""
    marks = [int(size * share) for share in (0.75, 0.5, 0.25)] + [-1]
    found, place, count, line = [], 0, 0, b""
    for line in file:
        if marks and place > marks[-1]:
            found.append(line)
            marks.pop()
        place, count = place + len(line), count + 1
    return count, [*found, line]


def prepare_dataset(argv: Sequence[str]) -> None:
    """Run as ``python benchmarks/cpp/prepare_dataset.py``."""
    playbook = here()
    announce("prepare_dataset.py")
    _generate(playbook, read(playbook, "prepare_dataset.py", argv), "prepare_dataset.py")


def _generate(playbook: Playbook, outer: GivenOptions, program: str) -> None:
    """Write the dataset that the command line asks for.

    Args:
        playbook: of this program.
        outer: options of the program, before the kind of dataset.
        program: as a recorded page names it.
    """
    if outer.command != _KIND:
        end(f"{program} {outer.command} has no mock program")
    inner = read(playbook, f"{program} {_KIND}", outer.rest)
    if inner.get("--input-stdev", 0) or inner.get("--output-stdev", 0):
        end("the mock program makes prompts of one length only")
    wanted = [inner.get(f"--{name}", 0) for name in ("num-requests", "input-mean", "output-mean")]
    if outer.has("--stdout"):
        write_synthetic(sys.stdout.buffer, *wanted)
        return
    with Path(outer.get("--output", "preprocessed_dataset.json")).open("wb") as file:
        write_synthetic(file, *wanted)
