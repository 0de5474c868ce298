"""A mock program for `sglang.bench_serving`: asks the server once; its numbers are synthetic.

Plays the options of a release from its recorded page, and its report as its source writes it: no
line for failed requests, a result file that is added to, infinity as bare text, and lengths that
are those which were asked for.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.rehearsal import serving_report as serving
from perfgate.rehearsal.benchmark_serving import measured
from perfgate.rehearsal.fault_injection import halved, inject_client_fault
from perfgate.rehearsal.http_requests import complete
from perfgate.rehearsal.options import GivenOptions, read
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, crash, here

_PROGRAM = "sglang.bench_serving"
_RECENT = (0, 5, 5)  # first sampled release with more rows and keys: TPOT, tails, peaks
_SHORTS = ("ttft", "tpot", "itl", "e2el")
_TAILS = (90.0, 95.0, 99.0)


def main(argv: Sequence[str]) -> None:
    """Read the command line, ask the server, report."""
    playbook = here("sglang", as_client=True)
    announce(_PROGRAM)
    given = read(playbook, _PROGRAM, argv, argparse=True)
    print(f"Namespace(num_prompts={given.integer('--num-prompts', 1000)})\n", flush=True)
    _require_lengths(given)
    _warm_up(given)
    fault = inject_client_fault(playbook)
    served = measured(playbook, _as_random(given), fault)
    served = serving.Served(
        served.asked, served.completed, served.isl, served.osl, _SHORTS, _TAILS, served.values
    )
    if fault == "no_metrics":
        return
    recent = tuple(map(int, playbook.version.split("."))) >= _RECENT
    print(halved("\n".join(_lines(playbook, given, served, recent=recent)), fault))
    line = halved(json.dumps(_result(given, served, recent=recent)), fault)
    with Path(given.text("--output-file", "result.jsonl")).open("a") as file:
        file.write(line + "\n")


def _require_lengths(given: GivenOptions) -> None:
    if given.text("--dataset-name") == "random-ids" and given.number("--random-range-ratio", 0) < 1:
        crash("perfgate rehearsal: this ratio gives prompts of many lengths, which none asks for")


def _as_random(given: GivenOptions) -> GivenOptions:
    """The options with the other clients' word for prompts that are generated."""
    if given.text("--dataset-name") != "random-ids":
        return given
    return GivenOptions(given.options, {**given.values, "dataset_name": ("random",)})


def _warm_up(given: GivenOptions) -> None:
    warmups = given.integer("--warmup-requests", 1)
    print(f"Starting warmup with {warmups} sequences...", flush=True)
    path = "/v1/chat/completions" if "chat" in given.text("--backend") else "/v1/completions"
    if not warmups:
        return
    try:
        refused = complete(serving.server_url(given), path, given.text("--model"))
    except OSError as error:
        refused = str(error)
    if refused is not None:
        crash(
            "ValueError: Warmup failed - Please make sure benchmark arguments are correctly "
            f"specified. Error: {refused}"
        )


def _lines(
    playbook: Playbook, given: GivenOptions, served: serving.Served, *, recent: bool
) -> list[str]:
    limit = given.text("--max-concurrency", "not set")
    spelled = "reqeuest" if playbook.version.startswith("0.4.6") else "request"
    fields = serving.totals(served)
    tokens = fields["total_output_tokens"]
    lines = [
        serving.heading(),
        f"{'Backend:':<40} {given.text('--backend'):<10}",
        f"{'Traffic request rate:':<40} {given.text('--request-rate', 'inf'):<10}",
        f"{f'Max {spelled} concurrency:':<40} {limit:<10}",
        serving.row("Successful requests", served.completed, None),
        serving.row("Benchmark duration (s)", fields["duration"]),
        serving.row("Total input tokens", fields["total_input_tokens"], None),
        serving.row("Total generated tokens", tokens, None),
        serving.row("Total generated tokens (retokenized)", tokens, None),
        serving.row("Request throughput (req/s)", fields["request_throughput"]),
        serving.row("Input token throughput (tok/s)", _read(fields)),
        serving.row("Output token throughput (tok/s)", fields["output_throughput"]),
    ]
    if recent:
        lines.append(serving.row("Peak concurrent requests", 2 * served.asked, None))
    lines.append(serving.row("Total token throughput (tok/s)", fields["total_token_throughput"]))
    for short, statistic, ms in served.latencies():
        shown = statistic in ("mean", "median", "p99") or recent
        if statistic == "std" or not shown or (short == "tpot" and not recent):
            continue
        word = "E2E Latency" if short == "e2el" else short.upper()
        lines.append(serving.row(f"{statistic.capitalize()} {word} (ms)", ms))
    return [*lines, "=" * 50]


def _read(fields: Mapping[str, Any]) -> float:
    """Input tokens a second."""
    return float(fields["total_token_throughput"] - fields["output_throughput"])


def _result(given: GivenOptions, served: serving.Served, *, recent: bool) -> dict[str, Any]:
    fields = serving.totals(served)
    rate, limit = given.text("--request-rate", "inf"), given.text("--max-concurrency")
    found: dict[str, Any] = {
        "backend": given.text("--backend"),
        "dataset_name": given.text("--dataset-name"),
        SYNTHETIC: True,
        "request_rate": float(rate),
        "max_concurrency": int(limit) if limit else None,
        "random_range_ratio": given.number("--random-range-ratio", 0.0),
        **{name: value for name, value in fields.items() if name != "total_token_throughput"},
        "total_output_tokens_retokenized": fields["total_output_tokens"],
        "input_throughput": _read(fields),
        "accept_length": None,
    }
    for short, statistic, ms in served.latencies():
        if recent or statistic not in ("p90", "p95"):
            found[f"{statistic}_{'e2e_latency' if short == 'e2el' else short}_ms"] = ms
    if recent:
        found["total_throughput"] = fields["total_token_throughput"]
        found["max_concurrent_requests"] = 2 * served.asked
        found["server_info"] = None
    return found
