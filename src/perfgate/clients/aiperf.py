"""AIPerf: NVIDIA's load client against an OpenAI-compatible server; its command.

Its results are read by `aiperf_results`.
"""

from pathlib import Path

from perfgate.clients import aiperf_results
from perfgate.clients.base import Client, Target, client, program_version
from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import AIPERF
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Workload

_VERSION_WITHIN_S = 60
ONE_WORKER = 32  # requests in flight that one worker of AIPerf keeps up with


@client("aiperf")
class AIPerf(Client):
    """AIPerf with synthetic prompts of one length and answers of one length."""

    name = "aiperf"

    def version(self, build: EngineBuild, locations: Locations) -> str:  # noqa: ARG002
        """See `Client.version`."""
        return program_version(AIPERF, locations, _VERSION_WITHIN_S)

    def command(
        self, target: Target, workload: Workload, point: LoadPoint, folder: Path
    ) -> Command:
        """See `Client.command`.

        Raises:
            InputError: the workload is of a kind that this client does not make.
        """
        isl, osl = aiperf_results.lengths(workload)
        endpoint_type = "completions" if workload.api == "completions" else "chat"
        argv = [*target.locations.find(AIPERF), "profile", "--model", target.endpoint.model]
        argv += ["--url", target.endpoint.url, "--endpoint-type", endpoint_type]
        argv += ["--streaming"] if workload.streaming else []
        argv += ["--tokenizer", target.tokenizer]
        argv += ["--isl", str(isl), "--isl-stddev", "0", "--osl", str(osl), "--osl-stddev", "0"]
        argv += ["--random-seed", str(point.seed)]
        argv += _load(workload, point)
        argv += ["--use-legacy-max-tokens", "--extra-inputs", "temperature:0"]
        if workload.ignore_eos:
            argv += ["--extra-inputs", "ignore_eos:true"]
        # Counted by the server: the text of the answer, tokenized again, has often fewer tokens
        # than were generated, so that lengths and throughputs would depend on what was said.
        argv += ["--use-server-token-count"]
        # A connection taken from a pool at the moment the server closes it fails the request.
        argv += ["--connection-reuse-strategy", "never"]
        if point.concurrency <= ONE_WORKER:
            # No more processes than needed: they may share the machine with the server.
            argv += ["--workers-max", "1", "--record-processors", "1"]
        argv += ["--ui", "none", "--no-gpu-telemetry", "--no-server-metrics"]
        results = folder if target.locations.on_paper else folder.resolve()
        argv += ["--export-level", "summary", "--output-artifact-dir", str(results)]
        # AIPerf refuses a tokenizer's folder in offline mode and takes any non-empty value as "on".
        env = {"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "", "DO_NOT_TRACK": "1"}
        return Command(tuple(argv), env)

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`."""
        return aiperf_results.parse(workload, point, folder)


def _load(workload: Workload, point: LoadPoint) -> list[str]:
    """How many requests, how many of them at once, how fast."""
    argv = ["--concurrency", str(point.concurrency), "--request-count", str(point.requests)]
    if point.warmup_requests:
        argv += ["--warmup-request-count", str(point.warmup_requests)]
    if workload.max_request_rate is not None:
        # Without a rate AIPerf 0.13 keeps one core busy while it waits for a free slot.
        rate = format(workload.max_request_rate, "g")
        argv += ["--request-rate", rate, "--arrival-pattern", "constant"]
    return argv
