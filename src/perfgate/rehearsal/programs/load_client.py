"""Mock programs for the load clients: each asks the server once, and reports synthetic numbers.

TensorRT-LLM's benchmark_serving, vLLM's client as a command and as the script that it was before,
and SGLang's bench_serving. They play the options of a release from its recorded page, and its
report as its source writes it (``load_client.toml``): what is in the table, which keys the result
has, and what becomes of a server that does not answer.
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, crash, here
from perfgate.rehearsal.programs.http_json import complete
from perfgate.rehearsal.programs.report_format import facts, option_values, printed, result
from perfgate.rehearsal.synthetic_metrics import Load

_SPREAD = 0.1  # standard deviation of a latency, relative to its mean
# Share of a random prompt's tokens by which it differs once it is text, at most: 126.9 of 128.
_LOST_AS_TEXT = 0.02
_NOT_FIRST_ASKED_SINCE = (0, 14)  # of vLLM; a first request that must go well, until then
_MORE_ROWS_SINCE = (0, 5, 5)  # of SGLang, the first sampled release with TPOT, tails, peaks
_TEXT, _CHAT = "/v1/completions", "/v1/chat/completions"


class _Latencies(NamedTuple):
    """The latencies of a report.

    Attributes:
        names: of those that are reported, in any order.
        percentiles: of each.
        left_out: metrics and statistics that are saved but not printed.
        is_titled: whether each has a line of its own above its rows.
        of_request: the latency of a whole request, as rows call it.
    """

    names: Collection[str]
    percentiles: Sequence[float]
    left_out: Collection[str] = ()
    is_titled: bool = True
    of_request: str = "E2EL"


def benchmark_serving(argv: Sequence[str]) -> None:
    """``python -m tensorrt_llm.serve.scripts.benchmark_serving``."""
    playbook, given = started("benchmark_serving", argv)
    is_chat = given.get("--backend", "") == "openai-chat"
    model = given.get("--model", "")
    if not given.has("--no-test-input"):
        path = _CHAT if is_chat else given.get("--endpoint", _TEXT)
        _require_answer(given, path, given.get("--served-model-name", "") or model)
    print("Traffic request rate: inf\nBurstiness factor: 1.0 (Poisson process)")
    _measure("benchmark_serving", playbook, given, model, _as_asked(given))


def vllm(argv: Sequence[str]) -> None:
    """``vllm bench serve``, or the script that it was before, named by the first word."""
    program, *words = argv
    announce(program)
    playbook = here("vllm", as_client=True)
    given = read(playbook, program, words)
    print(f"Namespace(num_prompts={given.get('--num-prompts', 1000)})", flush=True)
    model = given.get("--model", "")
    is_command = program == "vllm bench serve"
    is_sharegpt = given.get("--dataset-name", "") == "sharegpt"
    if is_sharegpt and not json.loads(Path(given.get("--dataset-path", "")).read_text()):
        raise SystemExit(1)
    _require_ratio(given, is_fixed=playbook.numbers < ((0, 9) if is_command else (0, 8)))
    if playbook.numbers < _NOT_FIRST_ASKED_SINCE or given.get("--ready-check-timeout-sec", 0):
        _require_answer(given, given.get("--endpoint", _TEXT), model)
    latencies = _as_asked(given)._replace(left_out=["std"])
    _measure("vllm", playbook, given, model, latencies, is_command=is_command)


def sglang(argv: Sequence[str]) -> None:
    """``python -m sglang.bench_serving``.

    It has no row for failed requests, a result file that is added to, infinity as bare text, and
    lengths that are those which were asked for.
    """
    program = "sglang.bench_serving"
    playbook = here("sglang", as_client=True)
    announce(program)
    given = read(playbook, program, argv)
    print(f"Namespace(num_prompts={given.get('--num-prompts', 1000)})\n", flush=True)
    if given.get("--dataset-name", "") == "random-ids":
        _require_one_length(given.get("--random-range-ratio", 0.0))
    warmups = given.get("--warmup-requests", 1)
    print(f"Starting warmup with {warmups} sequences...", flush=True)
    if warmups:
        path = _CHAT if "chat" in given.get("--backend", "") else _TEXT
        _require_answer(given, path, given.get("--model", ""), "Warmup")
    latencies = _Latencies(["ttft", "tpot", "itl", "e2el"], [90.0, 95.0, 99.0], ["std"], False)
    if playbook.numbers < _MORE_ROWS_SINCE:
        latencies = latencies._replace(percentiles=[99.0], left_out=["std", "tpot"])
    _measure("sglang", playbook, given, "", latencies._replace(of_request="E2E Latency"))


def _require_answer(
    given: GivenOptions, path: str, model: str, what: str = "Initial test run"
) -> None:
    """The first prompt; a failing one ends the client."""
    if what == "Initial test run":
        print("Starting initial single prompt test run...", flush=True)
    host, port = given.get("--host", "127.0.0.1"), given.get("--port", 8000)
    refused = complete((given.get("--base-url", "") or f"http://{host}:{port}") + path, model)
    if refused is not None:
        told = "Please make sure benchmark arguments are correctly specified."
        crash(f"ValueError: {what} failed - {told} Error: {refused}")
    if what == "Initial test run":
        print("Initial test run completed. Starting main benchmark run...", flush=True)


def _require_ratio(given: GivenOptions, *, is_fixed: bool) -> None:
    """One word, two meanings: what is a fixed length to the one is an error to the other."""
    if given.get("--dataset-name", "random") != "random":
        return
    ratio = given.get("--random-range-ratio", 0.0)
    if is_fixed:
        _require_one_length(ratio)
    elif ratio >= 1.0:
        crash("ValueError: range_ratio must be in [0, 1).")


def _require_one_length(ratio: float) -> None:
    if ratio < 1.0:
        crash("perfgate rehearsal: this ratio gives prompts of many lengths, which none asks for")


def _as_asked(given: GivenOptions) -> _Latencies:
    names = given.get("--percentile-metrics", "ttft,tpot,itl").split(",")
    return _Latencies(names, [*map(float, given.get("--metric-percentiles", "99").split(","))])


def _measure(
    client: str,
    playbook: Playbook,
    given: GivenOptions,
    model: str,
    latencies: _Latencies,
    *,
    is_command: bool = False,
) -> None:
    """Print what the client did and the server showed, and save it where the options say so.

    Args:
        client: its name in ``load_client.toml``.
        playbook: of this program.
        given: options, spelled as all clients do.
        model: name of the model.
        latencies: what is reported of them.
        is_command: whether it is a command of the engine, and not a script.
    """
    if client != "sglang":
        limit = given.get("--max-concurrency", "None")
        print(f"Maximum request concurrency: {limit}", flush=True)
    fault = playbook.inject_client_fault()
    asked = option_values(__file__, "every", given)
    limit, number = asked["limit"], asked["num_prompts"]
    done, in_flight = playbook.completed(number), int(limit or number)
    failed = number - done
    isl, osl = _lengths(playbook, given)
    load = Load(done, in_flight, isl, osl, playbook.scenario_part.gpus)
    value = playbook.performance(playbook.probe or f"c{in_flight}", load)
    saved, lines = _rows(value, latencies)
    tokens = value.get("acceptance_length", 1.0)
    values: dict[str, Any] = {
        **value,
        **asked,
        SYNTHETIC: True,
        "is_command": is_command,
        "is_script": not is_command,
        "date": time.strftime("%Y%m%d-%H%M%S"),
        "backend": asked["backend"] or given.get("--endpoint-type", "openai"),
        "model_id": model,
        "short_name": model.rpartition("/")[2],
        "tokenizer_id": given.get("--tokenizer", model),
        "rate_number": float(asked["rate"]),
        "request_rate": asked["rate"] if asked["rate"] == "inf" else float(asked["rate"]),
        "limit": limit or "not set",
        "max_concurrency": limit and int(limit),
        "completed": done,
        "failed": failed,
        "errors": "".join(f"Error {one}: Server disconnected\n" for one in range(failed)[:10]),
        "total_input_tokens": round(done * isl),
        "total_output_tokens": round(done * osl),
        "input_throughput": value["total_token_throughput"] - value["output_throughput"],
        "peak_throughput": 3 * value["output_throughput"],
        "peak_in_flight": 2 * in_flight,
        "twice_asked": 2 * number,
        "avg_decoded_tokens_per_iter": {"mean": tokens, "min": tokens, "max": tokens, "std": 0.0},
        "latencies": "\n".join(lines),
    }
    if fault == "no_metrics":
        return
    print(playbook.halved(printed(__file__, client, playbook.numbers, values).rstrip("\n")))
    content = result(__file__, client, playbook.numbers, values) | saved
    text = playbook.halved(json.dumps(content))
    if client == "sglang":
        with Path(given.get("--output-file", "result.jsonl")).open("a") as file:
            file.write(text + "\n")
    elif given.has("--save-result"):
        named = given.get("--result-filename", "")
        name = named or facts(__file__, client)["file"].format_map(values)
        path = Path(given.get("--result-dir", ""), name)
        path.write_text(text)
        if client == "benchmark_serving":
            beside = path.with_name(f"{path.stem}.pytorch.json")
            beside.write_text(json.dumps([{SYNTHETIC: True}]))


def _lengths(playbook: Playbook, given: GivenOptions) -> tuple[float, float]:
    """Mean input and output tokens of a request."""
    documented = playbook.scenario_part
    if given.get("--dataset-name", "") not in ("random", "random-ids"):
        return documented.isl, documented.osl
    isl = given.get("--random-input-len", 1024) + given.get("--random-prefix-len", 0)
    is_documented = abs(documented.isl - isl) <= _LOST_AS_TEXT * isl
    return documented.isl if is_documented else isl, given.get("--random-output-len", 128)


def _rows(value: Mapping[str, float], latencies: _Latencies) -> tuple[dict[str, float], list[str]]:
    """The latencies, in milliseconds, as they are saved and as they are printed."""
    saved: dict[str, float] = {}
    lines: list[str] = []
    for short, title in facts(__file__, "latencies").items():
        if short not in latencies.names:
            continue
        name = latencies.of_request if short == "e2el" else short.upper()
        found = {one: value[f"{short}_{one}_ms"] for one in ("mean", "median")}
        found["std"] = _SPREAD * found["mean"]
        found |= {f"p{one:g}": _at(value, short, one) for one in latencies.percentiles}
        lines += [f"{title:-^50}"] if latencies.is_titled else []
        for statistic, ms in found.items():
            saved[f"{statistic}_{name.lower().replace(' ', '_')}_ms"] = ms
            if not {short, statistic}.intersection(latencies.left_out):
                word = "Std Dev" if statistic == "std" else statistic.capitalize()
                lines.append(f"{f'{word} {name} (ms):':<40} {ms:<10.2f}")
    return saved, lines


def _at(value: Mapping[str, float], short: str, percentile: float) -> float:
    """A percentile between those that were drawn."""
    median, p90, p99 = (value[f"{short}_{spot}_ms"] for spot in ("median", "p90", "p99"))
    spots = [(0.0, 0.8 * median), (50.0, median), (90.0, p90), (99.0, p99), (100.0, 1.05 * p99)]
    for (low, below), (high, above) in pairwise(spots):
        if percentile <= high:
            return below + (above - below) * (percentile - low) / (high - low)
    return spots[-1][1]
