"""benchmark_serving: the load client that comes with TensorRT-LLM; its command.

Options as in the DeepSeek-R1 quick start recipe, section "Benchmarking Performance". Whether the
installed release has the client and knows them, the engine finds out before anything is started.
"""

from pathlib import Path

from perfgate.clients import serving_client as serving
from perfgate.clients.base import Client, Target, client
from perfgate.core.command import Command
from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import BENCHMARK_SERVING
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.checkout import require_package
from perfgate.scenarios.scenario import LoadPoint, Workload

CLIENT = "benchmark_serving"


@client(CLIENT)
class BenchmarkServing(Client):
    """Random prompts of one length, or ShareGPT's."""

    name = CLIENT
    of_engine = True

    def version(self, build: EngineBuild, locations: Locations) -> str:
        """See `Client.version`; it is part of TensorRT-LLM."""
        require_package(BENCHMARK_SERVING, locations)
        return build.version

    def command(
        self,
        target: Target,
        workload: Workload,
        point: LoadPoint,
        folder: Path,  # noqa: ARG002
    ) -> Command:
        """See `Client.command`.

        Raises:
            InputError: prompts or warm-up requests that this client does not make.
        """
        if point.warmup_requests:
            raise InputError(
                f"{CLIENT} makes no warm-up requests except one of its own",
                field="workload.warmup_requests",
                found=point.warmup_requests,
                expected="0",
            )
        chat = workload.api == "chat"
        argv = [*target.locations.find(BENCHMARK_SERVING), "--model", target.endpoint.model]
        argv += ["--backend", "openai-chat" if chat else "openai"]
        argv += ["--endpoint", "/v1/chat/completions"] if chat else []
        synthetic = workload.dataset == "synthetic"
        argv += serving.prompts(CLIENT, target, workload)
        argv += ["--random-prefix-len", "0", "--random-ids"] if synthetic else []
        argv += serving.requests(workload, point)
        argv += ["--ignore-eos"] if workload.ignore_eos else []
        # Prompts as token ids have exactly the asked length; a chat message can only be text.
        argv += ["--tokenize-on-client"] if synthetic and not chat else []
        argv += [] if workload.streaming else ["--non-streaming"]
        return Command((*argv, *serving.reporting(target, workload, point)))

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`."""
        return serving.parse(CLIENT, workload, point, folder)
