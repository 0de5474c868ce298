"""sglang.bench_serving: SGLang's load client, as it measures any OpenAI-compatible server."""

from pathlib import Path

from perfgate.clients import serving_client as serving
from perfgate.clients.base import Client, Target, client
from perfgate.clients.bench_options import BenchOptions
from perfgate.clients.package_version import package_version
from perfgate.clients.releases import SGLANG, release
from perfgate.clients.sglang_results import read_jsonl, result_name
from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import SGLANG_BENCH
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Workload

CLIENT = "sglang-bench"
PROGRAM = "sglang.bench_serving"


@client(CLIENT)
class SglangBench(Client):
    """Random token ids of one length, or ShareGPT's conversations."""

    name = CLIENT
    source = "sglang"

    def version(self, build: EngineBuild, locations: Locations) -> str:  # noqa: ARG002
        """See `Client.version`; the client's own, whatever engine it measures."""
        return package_version(SGLANG_BENCH, "sglang", locations)

    def command(
        self,
        target: Target,
        workload: Workload,
        point: LoadPoint,
        folder: Path,  # noqa: ARG002
    ) -> Command:
        """See `Client.command`.

        Raises:
            InputError: what this release of the client does not do.
        """
        table = release(SGLANG, target.client_version, PROGRAM)
        options = BenchOptions(CLIENT, table, PROGRAM)
        argv = [*target.locations.find(SGLANG_BENCH), *options.api(workload)]
        argv += ["--model", target.endpoint.model]
        # `random` would draw from ShareGPT, and download it.
        argv += serving.prompts(CLIENT, target, workload, generated="random-ids")
        argv += options.fixed_length() if workload.dataset == "synthetic" else []
        argv += serving.requests(workload, point)
        argv += options.given("warmups", point.warmup_requests, field="workload.warmup_requests")
        # Some releases put neither into a chat request unless it is said here.
        body = {"temperature": 0, "ignore_eos": workload.ignore_eos}
        argv += options.body(body, field="workload.ignore_eos")
        if not workload.ignore_eos:
            argv += options.given("heed_eos", field="workload.ignore_eos")
        if not workload.streaming:
            argv += options.given("no_stream", field="workload.streaming")
        argv += ["--output-file", result_name(point)]
        return Command((*argv, *serving.asked_of(target, point)))

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`."""
        return serving.parse(CLIENT, workload, point, folder, read_jsonl)
