"""vLLM's load client, which works against any OpenAI-compatible server.

``vllm bench serve`` (documented in the GPUStack H200 lab, section "Benchmark Script", 0.11.0), and
benchmark_serving.py before it, from vLLM's source alone.
"""

from perfgate.clients.base import Target, client, program_version
from perfgate.clients.releases import VLLM, BenchOptions
from perfgate.clients.serving_client import (
    COMPLETIONS_PATHS,
    ServingClient,
    reporting,
    requests,
)
from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import VLLM as VLLM_PROGRAM
from perfgate.core.programs import VLLM_SCRIPT
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Workload

_PERCENTILES = "90,95,99"
_VERSION_WITHIN_S = 120


@client("vllm-benchmark-serving")
class VllmBenchmarkServing(ServingClient):
    """Random prompts of one length, or ShareGPT's. Its release is that of the vLLM which its
    interpreter has: a script has none.
    """

    name = "vllm-benchmark-serving"
    source = "vllm"
    program = VLLM_SCRIPT
    page = "benchmark_serving.py"
    tables = VLLM
    words: tuple[str, ...] = ()

    def argv(self, target: Target, workload: Workload, point: LoadPoint) -> list[str]:
        """See `ServingClient.argv`."""
        options = self.options(target)
        if not workload.streaming:
            raise options.refused("workload.streaming", "false", "true: it streams every answer")
        argv = [*target.locations.find(self.program), *self.words]
        argv += ["--model", target.endpoint.model, *options.api(workload)]
        argv += ["--endpoint", COMPLETIONS_PATHS[workload.api]]
        prompts = self.prompts(target, workload)
        options.given("dataset", prompts[1], field="workload.dataset")  # or refused
        argv += prompts
        argv += options.fixed_length() if workload.dataset == "synthetic" else []
        argv += requests(workload, point)
        if point.warmup_requests:
            warmups = point.warmup_requests
            argv += options.given("warmups", warmups, field="workload.warmup_requests")
        argv += _end_of_answers(options, workload)
        if options.has("temperature"):  # without the option 0 is what the release sends
            argv += options.given("temperature", 0, field="workload")
        if options.table.ready_check_s is not None:
            argv += options.given("ready_check", options.table.ready_check_s, field="workload")
        return [*argv, *reporting(target, workload, point), "--metric-percentiles", _PERCENTILES]


@client("vllm-bench")
class VllmBench(VllmBenchmarkServing):
    """The same client, from when it became a command of vllm."""

    name = "vllm-bench"
    program = VLLM_PROGRAM
    page = "vllm bench serve"
    words = ("bench", "serve")

    def version(self, build: EngineBuild, locations: Locations) -> str:
        """See `Client.version`.

        The program imports all of vLLM before it tells, ten seconds on a quiet machine and minutes
        on a busy one: it is asked only where its Python cannot be.
        """
        try:
            return super().version(build, locations)
        except MissingProgram:
            return program_version(self.program, locations, _VERSION_WITHIN_S)


def _end_of_answers(options: BenchOptions, workload: Workload) -> list[str]:
    """Whether an answer ends at EOS; where the release ignores it unasked, it is told not to."""
    if workload.ignore_eos:
        return ["--ignore-eos"]
    if workload.dataset == "synthetic" and options.table.forces_eos:
        return options.body({"ignore_eos": False}, field="workload.ignore_eos")
    return []
