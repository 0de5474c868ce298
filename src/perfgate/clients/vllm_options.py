"""The command line of vLLM's load client, by its own release.

Documented in the GPUStack H200 lab, section "Benchmark Script" (`vllm bench serve` of 0.11.0).
"""

from perfgate.clients import serving_client as serving
from perfgate.clients.base import Target
from perfgate.clients.bench_options import COMPLETIONS_PATHS, BenchOptions
from perfgate.clients.releases import VLLM, release
from perfgate.core.command import Command
from perfgate.core.programs import Program
from perfgate.scenarios.scenario import LoadPoint, Workload

COMMAND = "vllm bench serve"
SCRIPT = "benchmark_serving.py"
_PERCENTILES = "90,95,99"


def command(
    client: str,
    program: tuple[Program, str, tuple[str, ...]],
    target: Target,
    workload: Workload,
    point: LoadPoint,
) -> Command:
    """The command that measures one sweep point.

    Args:
        client: name of the client, for messages.
        program: what is called, its name on recorded pages, and its first words.
        target: with the client's release; unknown, the newest one's spelling is used.
        workload: what is asked.
        point: how much of it.

    Raises:
        InputError: what this release cannot do, or does otherwise than is asked.
    """
    called, page, words = program
    options = BenchOptions(client, release(VLLM, target.client_version, page), page)
    if not workload.streaming:
        raise options.refused("workload.streaming", "false", "true: it streams every answer")
    argv = [*target.locations.find(called), *words, "--model", target.endpoint.model]
    argv += [*options.api(workload), "--endpoint", COMPLETIONS_PATHS[workload.api]]
    prompts = serving.prompts(client, target, workload)
    options.given("dataset", prompts[1], field="workload.dataset")  # or refused
    argv += prompts
    argv += options.fixed_length() if workload.dataset == "synthetic" else []
    argv += serving.requests(workload, point)
    if point.warmup_requests:
        argv += options.given("warmups", point.warmup_requests, field="workload.warmup_requests")
    argv += _end_of_answers(options, workload)
    if options.has("temperature"):  # without the option 0 is what the release sends
        argv += options.given("temperature", 0, field="workload")
    if options.table.ready_check_s is not None:
        argv += options.given("ready_check", options.table.ready_check_s, field="workload")
    argv += serving.reporting(target, workload, point)
    return Command((*argv, "--metric-percentiles", _PERCENTILES))


def _end_of_answers(options: BenchOptions, workload: Workload) -> list[str]:
    """Whether an answer ends at EOS; where the release ignores it unasked, it is told not to."""
    if workload.ignore_eos:
        return ["--ignore-eos"]
    if workload.dataset == "synthetic" and options.table.forces_eos:
        return options.body({"ignore_eos": False}, field="workload.ignore_eos")
    return []
