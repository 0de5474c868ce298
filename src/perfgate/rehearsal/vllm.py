"""A stand-in for `vllm bench serve`: asks the server once; its numbers are synthetic.

Plays vLLM 0.11.0, with which the GPUStack performance lab measured.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfgate.rehearsal.benchmark_serving import measured
from perfgate.rehearsal.fault_injection import befall_client
from perfgate.rehearsal.http_requests import require_answer, served_models
from perfgate.rehearsal.options import GivenOptions, read_known
from perfgate.rehearsal.playbook import SYNTHETIC, announce, end, here
from perfgate.rehearsal.serving_report import (
    Served,
    heading,
    latency_fields,
    latency_rows,
    row,
    totals,
)

VERSION = "0.11.0"
_PROGRAM = "vllm bench serve"
# Those of `vllm/benchmarks/serve.py` and `datasets.py` of 0.11.0 that have to do with load.
_OPTIONS = (
    "--backend --endpoint-type --label --base-url --host --port --endpoint --header "
    "--max-concurrency --model --tokenizer --best-of --logprobs --request-rate --burstiness "
    "--metadata --result-dir --result-filename --percentile-metrics --metric-percentiles "
    "--goodput --request-id-prefix --served-model-name --lora-modules --ramp-up-strategy "
    "--ramp-up-start-rps --ramp-up-end-rps --ready-check-timeout-sec --seed --num-prompts "
    "--dataset-name --dataset-path --sharegpt-output-len --random-input-len --random-output-len "
    "--random-range-ratio --random-prefix-len --sonnet-input-len --sonnet-output-len "
    "--sonnet-prefix-len --custom-output-len --hf-subset --hf-split --hf-output-len --top-p "
    "--top-k --min-p --temperature --frequency-penalty --presence-penalty "
    "--repetition-penalty --tokenizer-mode"
)
_FLAGS = (
    "--use-beam-search --trust-remote-code --disable-tqdm --profile --save-result "
    "--save-detailed --append-result --ignore-eos --no-oversample --skip-chat-template"
)


def main(argv: Sequence[str] | None = None) -> None:
    """Read the command line, ask the server, report."""
    words = list(sys.argv[1:] if argv is None else argv)
    play = here()
    announce("vllm")
    if words in (["--version"], ["-v"]):
        print(VERSION)
        return
    if words[:2] != ["bench", "serve"]:
        end(f"vllm {' '.join(words[:2])} has no stand-in")
    given = read_known(_PROGRAM, _OPTIONS.split(), _FLAGS.split(), words[2:])
    url = given.text("--base-url") or (
        f"http://{given.text('--host', '127.0.0.1')}:{given.integer('--port', 8000)}"
    )
    model = given.text("--model") or next(iter(served_models(url)), "")
    _require_dataset(given)
    require_answer(url, given.text("--endpoint", "/v1/completions"), model)
    print(f"Maximum request concurrency: {given.text('--max-concurrency', 'None')}", flush=True)
    fault = befall_client(play)
    served = measured(play, given, fault)
    if fault == "no_metrics":
        return
    lines = "\n".join(_lines(given, served))
    print(lines[: len(lines) // 2] if fault == "truncated" else lines)
    if given.has("--save-result"):
        _save(given, served, model, cut=fault == "truncated")


def _require_dataset(given: GivenOptions) -> None:
    path = Path(given.text("--dataset-path"))
    if given.text("--dataset-name") == "sharegpt":
        try:
            conversations = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            print(f"Traceback (most recent call last):\n{error}", file=sys.stderr)
            raise SystemExit(1) from None
        if not conversations:
            raise SystemExit(1)


def _lines(given: GivenOptions, served: Served) -> list[str]:
    fields = totals(served)
    lines = [heading(), row("Successful requests", served.completed, None)]
    if given.has("--max-concurrency"):
        lines.append(
            row("Maximum request concurrency", given.integer("--max-concurrency", 0), None)
        )
    lines += [
        row("Benchmark duration (s)", fields["duration"]),
        row("Total input tokens", fields["total_input_tokens"], None),
        row("Total generated tokens", fields["total_output_tokens"], None),
        row("Request throughput (req/s)", fields["request_throughput"]),
        row("Output token throughput (tok/s)", fields["output_throughput"]),
        row("Peak output token throughput (tok/s)", 3 * fields["output_throughput"]),
        row("Peak concurrent requests", given.integer("--max-concurrency", served.asked)),
        row("Total Token throughput (tok/s)", fields["total_token_throughput"]),
    ]
    return [*lines, *latency_rows(served, deviations=False)]


def _save(given: GivenOptions, served: Served, model: str, *, cut: bool) -> None:
    backend = given.text("--backend") or given.text("--endpoint-type", "openai")
    limit = given.text("--max-concurrency")
    rate = given.text("--request-rate", "inf")
    date = time.strftime("%Y%m%d-%H%M%S")
    fields = totals(served)
    result: dict[str, Any] = {
        "date": date,
        "endpoint_type": backend,
        "label": given.text("--label") or None,
        "model_id": model,
        "tokenizer_id": given.text("--tokenizer", model),
        "num_prompts": served.asked,
        SYNTHETIC: True,
        "request_rate": rate if rate == "inf" else float(rate),
        "burstiness": given.number("--burstiness", 1.0),
        "max_concurrency": int(limit) if limit else None,
        **fields,
        "request_goodput": None,
        "max_output_tokens_per_s": 3 * fields["output_throughput"],
        "max_concurrent_requests": int(limit) if limit else served.asked,
        **latency_fields(served),
    }
    name = given.text("--result-filename", f"{backend}-{rate}qps-{date}.json")
    content = json.dumps(result)
    path = Path(given.text("--result-dir"), name)
    path.write_text(content[: len(content) // 2] if cut else content)


if __name__ == "__main__":
    main()
