"""A mock program for TensorRT-LLM's benchmark_serving: asks the server once; synthetic numbers."""

import json
import time
from collections.abc import Sequence
from typing import Any

from perfgate.rehearsal import serving_report as serving
from perfgate.rehearsal.fault_injection import completed, inject_client_fault
from perfgate.rehearsal.http_requests import require_answer
from perfgate.rehearsal.options import GivenOptions, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook
from perfgate.rehearsal.synthetic_metrics import Load

_PROGRAM = "benchmark_serving"
_TOTALS_SHOWN_FROM = (1, 2)


def main(argv: Sequence[str]) -> None:
    """Read the command line, ask the server, report."""
    playbook, given = started(_PROGRAM, argv)
    endpoint = given.text("--endpoint", "/v1/completions")
    if given.text("--backend") == "openai-chat":
        endpoint = "/v1/chat/completions"
    if not given.has("--no-test-input"):
        name = given.text("--served-model-name") or given.text("--model")
        require_answer(serving.server_url(given), endpoint, name)
    print("Traffic request rate: inf\nBurstiness factor: 1.0 (Poisson process)")
    print(f"Maximum request concurrency: {given.text('--max-concurrency', 'None')}", flush=True)
    fault = inject_client_fault(playbook)
    served = measured(playbook, given, fault)
    if fault == "no_metrics":
        return
    date = time.strftime("%Y%m%d-%H%M%S")
    backend, rate = given.text("--backend", "openai"), given.text("--request-rate", "inf")
    name = f"{backend}-{rate}qps-{given.text('--model').rpartition('/')[2]}-{date}.json"
    result = {"date": date, "backend": backend, **_result(given, served)}
    path = serving.report(given, _lines(playbook, served), result, name, fault)
    if path is not None:
        path.with_name(f"{path.stem}.pytorch.json").write_text(json.dumps([{SYNTHETIC: True}]))


# Share of a random prompt's tokens by which it differs once it is text, at most: 126.9 of 128.
_LOST_AS_TEXT = 0.02


def measured(playbook: Playbook, given: GivenOptions, fault: str | None) -> serving.Served:
    """What the run showed.

    Args:
        playbook: of this program.
        given: options, spelled as benchmark_serving and `vllm bench serve` both do.
        fault: of the client.
    """
    asked = given.integer("--num-prompts", 1000)
    done = completed(asked, fault)
    in_flight = given.integer("--max-concurrency", asked)
    isl, osl = playbook.scenario_part.isl, playbook.scenario_part.osl
    if given.text("--dataset-name") == "random":
        documented = isl
        isl = given.integer("--random-input-len", 1024) + given.integer("--random-prefix-len", 0)
        osl = given.integer("--random-output-len", 128)
        if abs(documented - isl) <= _LOST_AS_TEXT * isl:
            isl = documented
    load = Load(done, in_flight, isl, osl, playbook.scenario_part.gpus)
    values = playbook.performance(playbook.probe or f"c{in_flight}", load)
    return serving.Served(
        asked=asked,
        completed=done,
        isl=isl,
        osl=osl,
        metrics=given.text("--percentile-metrics", "ttft,tpot,itl").split(","),
        percentiles=[float(p) for p in given.text("--metric-percentiles", "99").split(",")],
        values=values,
    )


def _lines(playbook: Playbook, served: serving.Served) -> list[str]:
    shows_totals = playbook.numbers >= _TOTALS_SHOWN_FROM
    lines = [serving.heading()]
    lines += [serving.row("Total requests", served.asked, None)] if shows_totals else []
    lines.append(serving.row("Successful requests", served.completed, None))
    lines += [serving.row("Failed requests", served.failed, None)] if shows_totals else []
    user = served.values["output_throughput_per_user"]
    lines += [*serving.total_rows(served), serving.row("User throughput (tok/s)", user)]
    if served.failed:
        lines += [
            "=======================!FAILED REQUESTS!=======================",
            f"Total failed requests: {served.failed}",
            "=====================!CHECK LOG FOR ERRORS!====================",
        ]
    return [*lines, *serving.latency_rows(served, deviations=True)]


def _result(given: GivenOptions, served: serving.Served) -> dict[str, Any]:
    said = (item.partition("=") for item in given.all("--metadata"))
    tokens = served.values.get("acceptance_length", 1.0)
    decoded = dict.fromkeys(("mean", "min", "max", "median"), tokens)
    percentiles = {f"p{p}": tokens for p in served.percentiles}
    return {
        **serving.request_fields(given, served, given.text("--model")),
        **{name.strip(): value.strip() for name, _, value in said},
        **serving.totals(served),
        "request_goodput:": None,  # the real one writes this colon, too
        "user_throughput": served.values["output_throughput_per_user"],
        "avg_decoded_tokens_per_iter": {**decoded, "std": 0.0, "percentiles": percentiles},
        **serving.latency_fields(served),
    }
