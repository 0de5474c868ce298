"""A stand-in for TensorRT-LLM's benchmark_serving: asks the server once; synthetic numbers."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfgate.rehearsal import healthy_log as healthy
from perfgate.rehearsal.fault_injection import befall_client
from perfgate.rehearsal.http_requests import require_answer
from perfgate.rehearsal.options import GivenOptions, released
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, here
from perfgate.rehearsal.serving_report import (
    Served,
    heading,
    latency_fields,
    latency_rows,
    row,
    totals,
)
from perfgate.rehearsal.synthetic_metrics import Load

_PROGRAM = "benchmark_serving"
_TOTALS_SHOWN_FROM = (1, 2)


def main(argv: Sequence[str] | None = None) -> None:
    """Read the command line, ask the server, report."""
    play = here()
    announce(_PROGRAM)
    healthy.banner(play.version)
    syntax = released(play, _PROGRAM, "argparse")
    given = syntax.read(sys.argv[1:] if argv is None else argv)
    syntax.require(given, "--model")
    url = given.text("--base-url") or (
        f"http://{given.text('--host', '127.0.0.1')}:{given.integer('--port', 8000)}"
    )
    endpoint = given.text("--endpoint", "/v1/completions")
    if given.text("--backend") == "openai-chat":
        endpoint = "/v1/chat/completions"
    if not given.has("--no-test-input"):
        require_answer(url, endpoint, given.text("--served-model-name") or given.text("--model"))
    print("Traffic request rate: inf\nBurstiness factor: 1.0 (Poisson process)")
    print(f"Maximum request concurrency: {given.text('--max-concurrency', 'None')}", flush=True)
    fault = befall_client(play)
    served = measured(play, given, fault)
    if fault == "no_metrics":
        return
    lines = "\n".join(_lines(play, served))
    print(lines[: len(lines) // 2] if fault == "truncated" else lines)
    if given.has("--save-result"):
        _save(given, served, cut=fault == "truncated")


def measured(play: Playbook, given: GivenOptions, fault: str | None) -> Served:
    """What the run showed.

    Args:
        play: the play.
        given: options, spelled as benchmark_serving and `vllm bench serve` both do.
        fault: of the client.
    """
    asked = given.integer("--num-prompts", 1000)
    completed = asked - max(1, asked // 20) if fault == "partial" else asked
    in_flight = given.integer("--max-concurrency", asked)
    isl, osl = play.part.isl, play.part.osl
    if given.text("--dataset-name") == "random":
        isl = given.integer("--random-input-len", 1024) + given.integer("--random-prefix-len", 0)
        osl = given.integer("--random-output-len", 128)
    load = Load(completed, in_flight, isl, osl, play.part.gpus)
    values = play.performance(play.probe or f"c{in_flight}", load)
    if fault == "zero_metrics":
        values = dict.fromkeys(values, 0.0)
    return Served(
        asked=asked,
        completed=completed,
        isl=isl,
        osl=osl,
        metrics=given.text("--percentile-metrics", "ttft,tpot,itl").split(","),
        percentiles=[float(p) for p in given.text("--metric-percentiles", "99").split(",")],
        values=values,
    )


def _lines(play: Playbook, served: Served) -> list[str]:
    value = served.values
    lines = [heading()]
    if play.numbers >= _TOTALS_SHOWN_FROM:
        lines.append(row("Total requests", served.asked, None))
    lines.append(row("Successful requests", served.completed, None))
    if play.numbers >= _TOTALS_SHOWN_FROM:
        lines.append(row("Failed requests", served.failed, None))
    fields = totals(served)
    lines += [
        row("Benchmark duration (s)", fields["duration"]),
        row("Total input tokens", fields["total_input_tokens"], None),
        row("Total generated tokens", fields["total_output_tokens"], None),
        row("Request throughput (req/s)", fields["request_throughput"]),
        row("Output token throughput (tok/s)", fields["output_throughput"]),
        row("Total Token throughput (tok/s)", fields["total_token_throughput"]),
        row("User throughput (tok/s)", value["output_throughput_per_user"]),
    ]
    if served.failed:
        lines += [
            "=======================!FAILED REQUESTS!=======================",
            f"Total failed requests: {served.failed}",
            "=====================!CHECK LOG FOR ERRORS!====================",
        ]
    return [*lines, *latency_rows(served, deviations=True)]


def _save(given: GivenOptions, served: Served, *, cut: bool) -> None:
    model = given.text("--model")
    backend = given.text("--backend", "openai")
    limit = given.text("--max-concurrency")
    date = time.strftime("%Y%m%d-%H%M%S")
    result: dict[str, Any] = {
        "date": date,
        "backend": backend,
        "model_id": model,
        "tokenizer_id": given.text("--tokenizer", model),
        "num_prompts": served.asked,
        SYNTHETIC: True,
    }
    for item in given.values.get("--metadata", ()):
        name, _, said = item.partition("=")
        result[name.strip()] = said.strip()
    tokens = served.values.get("acceptance_length", 1.0)
    decoded = dict.fromkeys(("mean", "min", "max", "median"), tokens)
    percentiles = {f"p{p}": tokens for p in served.percentiles}
    fields = totals(served)
    # The real one writes these two fields with these two oddities: the colon, and "inf" as text.
    result |= {
        **{name: fields[name] for name in list(fields)[:5]},
        "request_goodput:": None,
        **{name: fields[name] for name in list(fields)[5:]},
        "user_throughput": served.values["output_throughput_per_user"],
        "avg_decoded_tokens_per_iter": {**decoded, "std": 0.0, "percentiles": percentiles},
        **latency_fields(served),
    }
    rate = given.text("--request-rate", "inf")
    result["request_rate"] = rate if rate == "inf" else float(rate)
    result["burstiness"] = given.number("--burstiness", 1.0)
    result["max_concurrency"] = int(limit) if limit else None
    default = f"{backend}-{rate}qps-{model.rpartition('/')[2]}-{date}.json"
    name = given.text("--result-filename", default)
    path = Path(given.text("--result-dir"), name)
    content = json.dumps(result)
    path.write_text(content[: len(content) // 2] if cut else content)
    path.with_name(f"{path.stem}.pytorch.json").write_text(json.dumps([{SYNTHETIC: True}]))


if __name__ == "__main__":
    main()
