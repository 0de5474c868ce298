"""Mock programs for the load clients: each asks the server once, and reports synthetic numbers.

TensorRT-LLM's benchmark_serving, vLLM's client as a command and as the script that it was before,
and SGLang's bench_serving. They play the options of a release from its recorded page, and its
report as its source writes it (``load_client.toml``): what is in the table, which keys the result
has, and what becomes of a server that does not answer.
"""

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import (
    SYNTHETIC,
    Playbook,
    announce,
    completed,
    crash,
    halved,
    here,
)
from perfgate.rehearsal.programs.http_json import complete, served_models
from perfgate.rehearsal.programs.report_format import printed, result
from perfgate.rehearsal.synthetic_metrics import Load

_TITLES = {
    "ttft": "Time to First Token",
    "tpot": "Time per Output Token (excl. 1st token)",
    "itl": "Inter-token Latency",
    "e2el": "End-to-end Latency",
}
_CLIENTS = {
    "vllm bench serve": "vllm",
    "benchmark_serving.py": "vllm",
    "sglang.bench_serving": "sglang",
}
_NAMES = {("sglang", "e2el"): "E2E Latency"}  # of a latency, where it is not its short name
_SPREAD = 0.1  # standard deviation of a latency, relative to its mean
# Share of a random prompt's tokens by which it differs once it is text, at most: 126.9 of 128.
_LOST_AS_TEXT = 0.02
_NOT_FIRST_ASKED_SINCE = (0, 14)  # of vLLM; a first request that must go well, until then
_MORE_ROWS_SINCE = (0, 5, 5)  # of SGLang, the first sampled release with TPOT, tails, peaks


@dataclass(frozen=True)
class _Run:
    """What a load client did.

    Attributes:
        client: its name in ``load_client.toml``.
        release: numbers of its release.
        values: by the names of ``load_client.toml``.
        latencies: (metric, statistic, milliseconds) in the order of the report.
        fault: that hits the client.
    """

    client: str
    release: tuple[int, ...]
    values: Mapping[str, Any]
    latencies: Sequence[tuple[str, str, float]]
    fault: str | None

    def print_table(self, left_out: Collection[str] = ()) -> None:
        """Print the client's rows, then those of the latencies; some metrics, statistics not."""
        lines = printed(__file__, self.client, self.release, self.values).splitlines()
        for short, statistic, ms in self.latencies:
            if statistic == "mean" and self.client != "sglang":
                lines.append(f"{_TITLES[short]:-^50}")
            if short not in left_out and statistic not in left_out:
                word = "Std Dev" if statistic == "std" else statistic.capitalize()
                label = f"{word} {_NAMES.get((self.client, short), short.upper())} (ms):"
                lines.append(f"{label:<40} {ms:<10.2f}")
        print(halved("\n".join([*lines, "=" * 50]), self.fault))

    def as_json(self) -> str:
        """What is saved, as JSON."""
        found = result(__file__, self.client, self.release, self.values)
        for short, statistic, ms in self.latencies:
            name = _NAMES.get((self.client, short), short).lower().replace(" ", "_")
            found[f"{statistic}_{name}_ms"] = ms
        return halved(json.dumps(found), self.fault)

    def save(self, given: GivenOptions, name: str) -> Path | None:
        """Write the result where the options say so, in a file called `name` if they do not."""
        if not given.has("--save-result"):
            return None
        path = Path(given.text("--result-dir"), given.text("--result-filename", name))
        path.write_text(self.as_json())
        return path


def benchmark_serving(argv: Sequence[str]) -> None:
    """``python -m tensorrt_llm.serve.scripts.benchmark_serving``."""
    playbook, given = started("benchmark_serving", argv)
    path = given.text("--endpoint", "/v1/completions")
    if given.text("--backend") == "openai-chat":
        path = "/v1/chat/completions"
    model = given.text("--model")
    if not given.has("--no-test-input"):
        _require_answer(given, path, given.text("--served-model-name") or model)
    print("Traffic request rate: inf\nBurstiness factor: 1.0 (Poisson process)")
    _print_limit(given)
    run = _measured("benchmark_serving", playbook, given, model)
    if run.fault == "no_metrics":
        return
    run.print_table()
    value = run.values
    name = f"{value['backend']}-{value['rate']}qps-{model.rpartition('/')[2]}-{value['date']}.json"
    saved = run.save(given, name)
    if saved is not None:
        saved.with_name(f"{saved.stem}.pytorch.json").write_text(json.dumps([{SYNTHETIC: True}]))


def vllm_script(argv: Sequence[str]) -> None:
    """``benchmarks/benchmark_serving.py`` of vLLM, before it became a command."""
    announce("benchmark_serving.py")
    vllm(argv, "benchmark_serving.py")


def vllm(argv: Sequence[str], program: str = "vllm bench serve") -> None:
    """``vllm bench serve``, or its script: `program` is as a recorded page names it."""
    playbook = here("vllm", as_client=True)
    given = read(playbook, program, argv)
    print(f"Namespace(num_prompts={given.integer('--num-prompts', 1000)})", flush=True)
    model = given.text("--model") or next(iter(served_models(_server_url(given))), "")
    _require_dataset(given)
    _require_ratio(playbook, program, given)
    if playbook.numbers < _NOT_FIRST_ASKED_SINCE or given.integer("--ready-check-timeout-sec", 0):
        _require_answer(given, given.text("--endpoint", "/v1/completions"), model)
    _print_limit(given)
    run = _measured(program, playbook, given, model)
    if run.fault == "no_metrics":
        return
    failed = run.values["failed"]
    if failed and playbook.numbers >= _NOT_FIRST_ASKED_SINCE:
        print("Failed requests during benchmark run detected (capping to 10):")
        print(
            "\n".join(f"Error {number}: Server disconnected" for number in range(min(10, failed)))
        )
    run.print_table(left_out=["std"])
    run.save(given, "{backend}-{rate}qps-{date}.json".format(**run.values))


def sglang(argv: Sequence[str]) -> None:
    """``python -m sglang.bench_serving``.

    It has no row for failed requests, a result file that is added to, infinity as bare text, and
    lengths that are those which were asked for.
    """
    program = "sglang.bench_serving"
    playbook = here("sglang", as_client=True)
    announce(program)
    given = read(playbook, program, argv)
    print(f"Namespace(num_prompts={given.integer('--num-prompts', 1000)})\n", flush=True)
    if given.text("--dataset-name") == "random-ids":
        _require_one_length(given.number("--random-range-ratio", 0))
    warmups = given.integer("--warmup-requests", 1)
    print(f"Starting warmup with {warmups} sequences...", flush=True)
    path = "/v1/chat/completions" if "chat" in given.text("--backend") else "/v1/completions"
    if warmups:
        _require_answer(given, path, given.text("--model"), "Warmup")
    recent = playbook.numbers >= _MORE_ROWS_SINCE
    tails = (90.0, 95.0, 99.0) if recent else (99.0,)
    run = _measured(program, playbook, given, "", list(_TITLES), tails)
    if run.fault == "no_metrics":
        return
    run.print_table(left_out=["std"] if recent else ["std", "tpot"])
    with Path(given.text("--output-file", "result.jsonl")).open("a") as file:
        file.write(run.as_json() + "\n")


def _server_url(given: GivenOptions) -> str:
    host, port = given.text("--host", "127.0.0.1"), given.integer("--port", 8000)
    return given.text("--base-url") or f"http://{host}:{port}"


def _require_answer(
    given: GivenOptions, path: str, model: str, what: str = "Initial test run"
) -> None:
    """The first prompt; a failing one ends the client."""
    url = _server_url(given)
    if what == "Initial test run":
        print("Starting initial single prompt test run...", flush=True)
    try:
        refused = complete(url, path, model)
    except OSError as error:
        place = urlsplit(url)
        refused = (
            f"Cannot connect to host {place.hostname}:{place.port} ssl:default "
            f"[Connect call failed ('{place.hostname}', {place.port})]: {error}"
        )
    if refused is not None:
        crash(
            f"ValueError: {what} failed - Please make sure benchmark arguments are correctly "
            f"specified. Error: {refused}"
        )
    if what == "Initial test run":
        print("Initial test run completed. Starting main benchmark run...", flush=True)


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
    if playbook.numbers < ((0, 9) if program.startswith("vllm ") else (0, 8)):
        _require_one_length(ratio)
    elif ratio >= 1.0:
        crash("ValueError: range_ratio must be in [0, 1).")


def _require_one_length(ratio: float) -> None:
    if ratio < 1.0:
        crash("perfgate rehearsal: this ratio gives prompts of many lengths, which none asks for")


def _print_limit(given: GivenOptions) -> None:
    print(f"Maximum request concurrency: {given.text('--max-concurrency', 'None')}", flush=True)


def _measured(
    program: str,
    playbook: Playbook,
    given: GivenOptions,
    model: str,
    latencies: Sequence[str] | None = None,
    percentiles: Sequence[float] | None = None,
) -> _Run:
    """What the client did, and the server showed.

    Args:
        program: as a recorded page names it.
        playbook: of this program.
        given: options, spelled as all clients do.
        model: name of the model.
        latencies: that are reported; None: as the options say.
        percentiles: likewise.
    """
    fault = playbook.inject_client_fault()
    asked = given.integer("--num-prompts", 1000)
    done = completed(asked, fault)
    limit = given.text("--max-concurrency")
    in_flight = int(limit or asked)
    isl, osl = playbook.scenario_part.isl, playbook.scenario_part.osl
    if given.text("--dataset-name") in ("random", "random-ids"):
        documented = isl
        isl = given.integer("--random-input-len", 1024) + given.integer("--random-prefix-len", 0)
        osl = given.integer("--random-output-len", 128)
        if abs(documented - isl) <= _LOST_AS_TEXT * isl:
            isl = documented
    load = Load(done, in_flight, isl, osl, playbook.scenario_part.gpus)
    value = playbook.performance(playbook.probe or f"c{in_flight}", load)
    if latencies is None:
        latencies = given.text("--percentile-metrics", "ttft,tpot,itl").split(",")
    if percentiles is None:
        percentiles = [float(p) for p in given.text("--metric-percentiles", "99").split(",")]
    rate = given.text("--request-rate", "inf")
    tokens = value.get("acceptance_length", 1.0)
    decoded = dict.fromkeys(("mean", "min", "max", "median"), tokens)
    tails = {f"p{percentile}": tokens for percentile in percentiles}
    values: dict[str, Any] = {
        **value,
        SYNTHETIC: True,
        "is_command": program == "vllm bench serve",
        "is_script": program == "benchmark_serving.py",
        "date": time.strftime("%Y%m%d-%H%M%S"),
        "backend": given.text("--backend") or given.text("--endpoint-type", "openai"),
        "model_id": model,
        "tokenizer_id": given.text("--tokenizer", model),
        "dataset_name": given.text("--dataset-name"),
        "num_prompts": asked,
        "rate": rate,
        "rate_number": float(rate),
        "request_rate": rate if rate == "inf" else float(rate),
        "burstiness": given.number("--burstiness", 1.0),
        "random_range_ratio": given.number("--random-range-ratio", 0.0),
        "limit": limit or "not set",
        "max_concurrency": int(limit) if limit else None,
        "completed": done,
        "failed": asked - done,
        "total_input_tokens": round(done * isl),
        "total_output_tokens": round(done * osl),
        "input_throughput": value["total_token_throughput"] - value["output_throughput"],
        "peak_throughput": 3 * value["output_throughput"],
        "peak_in_flight": 2 * in_flight,
        "twice_asked": 2 * asked,
        "avg_decoded_tokens_per_iter": {**decoded, "std": 0.0, "percentiles": tails},
    }
    rows = list(_latencies(value, latencies, percentiles))
    return _Run(_CLIENTS.get(program, program), playbook.numbers, values, rows, fault)


def _latencies(
    value: Mapping[str, float], latencies: Sequence[str], percentiles: Sequence[float]
) -> Iterator[tuple[str, str, float]]:
    for short in _TITLES:
        if short in latencies:
            mean = value[f"{short}_mean_ms"]
            yield short, "mean", mean
            yield short, "median", value[f"{short}_median_ms"]
            yield short, "std", _SPREAD * mean
            for percentile in percentiles:
                yield short, f"p{percentile:g}", _at(value, short, percentile)


def _at(value: Mapping[str, float], short: str, percentile: float) -> float:
    """A percentile between those that were drawn."""
    median, p90, p99 = (value[f"{short}_{spot}_ms"] for spot in ("median", "p90", "p99"))
    spots = [(0.0, 0.8 * median), (50.0, median), (90.0, p90), (99.0, p99), (100.0, 1.05 * p99)]
    for (low, below), (high, above) in pairwise(spots):
        if percentile <= high:
            return below + (above - below) * (percentile - low) / (high - low)
    return spots[-1][1]
