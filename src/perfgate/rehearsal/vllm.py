"""A stand-in for `vllm bench serve`: asks the server once; its numbers are synthetic.

Plays vLLM 0.11.0, with which the GPUStack performance lab measured.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfgate.rehearsal import serving_report as serving
from perfgate.rehearsal.argparse_options import given as given_options
from perfgate.rehearsal.benchmark_serving import measured
from perfgate.rehearsal.fault_injection import inject_client_fault
from perfgate.rehearsal.http_requests import require_answer, served_models
from perfgate.rehearsal.options import GivenOptions, Syntax
from perfgate.rehearsal.playbook import announce, crash, end, here
from perfgate.rehearsal.recorded_pages import read

VERSION = "0.11.0"
_PROGRAM = "vllm bench serve"
_PAGE = f"vllm_{VERSION}"


def main(argv: Sequence[str]) -> None:
    """Read the command line, ask the server, report."""
    words = list(argv)
    playbook = here("vllm", as_client=True)
    announce("vllm")
    if words in (["--version"], ["-v"]):
        print(VERSION)
        return
    if words[:2] != ["bench", "serve"]:
        end(f"vllm {' '.join(words[:2])} has no stand-in")
    given = given_options(Syntax(_PROGRAM, read(_PAGE).options(_PROGRAM)), words[2:])
    url = serving.server_url(given)
    model = given.text("--model") or next(iter(served_models(url)), "")
    _require_dataset(given)
    require_answer(url, given.text("--endpoint", "/v1/completions"), model)
    print(f"Maximum request concurrency: {given.text('--max-concurrency', 'None')}", flush=True)
    fault = inject_client_fault(playbook)
    served = measured(playbook, given, fault)
    if fault == "no_metrics":
        return
    date = time.strftime("%Y%m%d-%H%M%S")
    backend = given.text("--backend") or given.text("--endpoint-type", "openai")
    name = f"{backend}-{given.text('--request-rate', 'inf')}qps-{date}.json"
    result = {"date": date, "endpoint_type": backend, **_result(given, served, model)}
    serving.report(given, _lines(given, served), result, name, fault)


def _require_dataset(given: GivenOptions) -> None:
    path = Path(given.text("--dataset-path"))
    if given.text("--dataset-name") == "sharegpt":
        try:
            conversations = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            crash(str(error))
        if not conversations:
            raise SystemExit(1)


def _lines(given: GivenOptions, served: serving.Served) -> list[str]:
    limit = given.integer("--max-concurrency", served.asked)
    lines = [serving.heading(), serving.row("Successful requests", served.completed, None)]
    if given.has("--max-concurrency"):
        lines.append(serving.row("Maximum request concurrency", limit, None))
    *rates, total = serving.total_rows(served)
    peak = 3 * served.values["output_throughput"]
    peaks = [serving.row("Peak output token throughput (tok/s)", peak)]
    peaks += [serving.row("Peak concurrent requests", limit)]
    return [*lines, *rates, *peaks, total, *serving.latency_rows(served, deviations=False)]


def _result(given: GivenOptions, served: serving.Served, model: str) -> dict[str, Any]:
    return {
        "label": given.text("--label") or None,
        **serving.request_fields(given, served, model),
        **serving.totals(served),
        "request_goodput": None,
        "max_output_tokens_per_s": 3 * served.values["output_throughput"],
        "max_concurrent_requests": given.integer("--max-concurrency", served.asked),
        **serving.latency_fields(served),
    }
