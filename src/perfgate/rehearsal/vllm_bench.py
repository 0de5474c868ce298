"""A mock program for vLLM's load client: asks the server once; its numbers are synthetic.

Plays the options of a release from its recorded page, and its report as its source writes it
(`vllm/benchmarks/serve.py`, `benchmarks/benchmark_serving.py`): what is in the table, which keys
the result has, and what becomes of a server that does not answer.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfgate.rehearsal import serving_report as serving
from perfgate.rehearsal.benchmark_serving import measured
from perfgate.rehearsal.fault_injection import inject_client_fault
from perfgate.rehearsal.http_requests import require_answer, served_models
from perfgate.rehearsal.options import GivenOptions, read
from perfgate.rehearsal.playbook import Playbook, crash

_NOT_FIRST_ASKED_SINCE = (0, 14)  # minor releases; a first request that must go well, until then
_FAILURES_COUNTED_SINCE = (0, 12)  # 0.11.1
_PEAKS_SINCE = (0, 11)
_SMALL_T_SINCE = (0, 14)
_LIMIT_SHOWN_SINCE = (0, 11)
_ENDPOINT_TYPE_SINCE = (0, 9)  # key of the command's result; the script writes `backend`


def play(playbook: Playbook, program: str, argv: Sequence[str]) -> None:
    """Read the command line, ask the server, report.

    Args:
        playbook: of the client.
        program: as a recorded page names it.
        argv: its arguments.
    """
    given = read(playbook, program, argv, argparse=True)
    print(f"Namespace(num_prompts={given.integer('--num-prompts', 1000)})", flush=True)
    url = serving.server_url(given)
    model = given.text("--model") or next(iter(served_models(url)), "")
    _require_dataset(given)
    _require_ratio(playbook, program, given)
    if playbook.numbers < _NOT_FIRST_ASKED_SINCE or given.integer("--ready-check-timeout-sec", 0):
        require_answer(url, given.text("--endpoint", "/v1/completions"), model)
    print(f"Maximum request concurrency: {given.text('--max-concurrency', 'None')}", flush=True)
    fault = inject_client_fault(playbook)
    served = measured(playbook, given, fault)
    if fault == "no_metrics":
        return
    if served.failed and playbook.numbers >= _NOT_FIRST_ASKED_SINCE:
        print("Failed requests during benchmark run detected (capping to 10):")
        print("\n".join(f"Error {n}: Server disconnected" for n in range(min(10, served.failed))))
    date = time.strftime("%Y%m%d-%H%M%S")
    backend = given.text("--backend") or given.text("--endpoint-type", "openai")
    name = f"{backend}-{given.text('--request-rate', 'inf')}qps-{date}.json"
    command = program.startswith("vllm ")
    result = {"date": date, **_head(playbook, backend, command=command)}
    result |= _result(playbook, given, served, model)
    serving.report(given, _lines(playbook, given, served), result, name, fault)


def _require_dataset(given: GivenOptions) -> None:
    path = Path(given.text("--dataset-path"))
    if given.text("--dataset-name") == "sharegpt":
        try:
            conversations = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            crash(str(error))
        if not conversations:
            raise SystemExit(1)


def _require_ratio(playbook: Playbook, program: str, given: GivenOptions) -> None:
    """One word, two meanings: what is a fixed length to the one is an error to the other."""
    if given.text("--dataset-name", "random") != "random":
        return
    ratio = given.number("--random-range-ratio", 0.0)
    of_length = playbook.numbers < ((0, 9) if program.startswith("vllm ") else (0, 8))
    if not of_length and ratio >= 1.0:
        crash("ValueError: range_ratio must be in [0, 1).")
    if of_length and ratio < 1.0:
        crash("perfgate rehearsal: this ratio gives prompts of many lengths, which none asks for")


def _lines(playbook: Playbook, given: GivenOptions, served: serving.Served) -> list[str]:
    limit = given.integer("--max-concurrency", served.asked)
    lines = [serving.heading(), serving.row("Successful requests", served.completed, None)]
    if playbook.numbers >= _FAILURES_COUNTED_SINCE:
        lines.append(serving.row("Failed requests", served.failed, None))
    if given.has("--max-concurrency") and playbook.numbers >= _LIMIT_SHOWN_SINCE:
        lines.append(serving.row("Maximum request concurrency", limit, None))
    *rates, total = serving.total_rows(served)
    lines += rates
    if playbook.numbers >= _PEAKS_SINCE:
        lines.append(serving.row("Peak output token throughput (tok/s)", _peak(served)))
        lines.append(serving.row("Peak concurrent requests", 2 * limit))
    if playbook.numbers >= _SMALL_T_SINCE:
        total = total.replace("Total Token throughput", "Total token throughput")
    return [*lines, total, *serving.latency_rows(served, deviations=False)]


def _peak(served: serving.Served) -> float:
    return 3 * served.values["output_throughput"]


def _head(playbook: Playbook, backend: str, *, command: bool) -> dict[str, Any]:
    if not command or playbook.numbers < _ENDPOINT_TYPE_SINCE:
        return {"backend": backend}
    named: dict[str, Any] = {"endpoint_type": backend, "label": None}
    return named if playbook.numbers < _NOT_FIRST_ASKED_SINCE else {**named, "backend": backend}


def _result(
    playbook: Playbook, given: GivenOptions, served: serving.Served, model: str
) -> dict[str, Any]:
    goodput = "request_goodput" if playbook.numbers >= _ENDPOINT_TYPE_SINCE else "request_goodput:"
    found = {
        **serving.request_fields(given, served, model),
        **serving.totals(served),
        goodput: None,
        **serving.latency_fields(served),
    }
    if playbook.numbers >= _FAILURES_COUNTED_SINCE:
        found["failed"] = served.failed
    if playbook.numbers >= _PEAKS_SINCE:
        found["max_output_tokens_per_s"] = _peak(served)
        found["max_concurrent_requests"] = 2 * given.integer("--max-concurrency", served.asked)
    if playbook.numbers >= _NOT_FIRST_ASKED_SINCE:
        found["rtfx"] = 0.0
    return found
