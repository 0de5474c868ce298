"""benchmark_serving: the load client that comes with TensorRT-LLM; its command.

Options as in the DeepSeek-R1 quick start recipe, section "Benchmarking Performance". Whether the
installed release has the client and knows them, the engine finds out before anything is started.
"""

from perfgate.clients.base import Target, client
from perfgate.clients.serving_client import (
    COMPLETIONS_PATHS,
    ServingClient,
    reporting,
    requests,
)
from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.core.programs import BENCHMARK_SERVING
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.checkout import require_package
from perfgate.scenarios.scenario import LoadPoint, Workload


@client("benchmark_serving")
class BenchmarkServing(ServingClient):
    """Random prompts of one length, or ShareGPT's. Its release is the engine's."""

    name = "benchmark_serving"
    of_engine = True
    program = BENCHMARK_SERVING

    def version(self, build: EngineBuild, locations: Locations) -> str:
        """See `Client.version`; it is part of TensorRT-LLM."""
        require_package(self.program, locations)
        return build.version

    def argv(self, target: Target, workload: Workload, point: LoadPoint) -> list[str]:
        """See `ServingClient.argv`.

        Raises:
            InputError: prompts or warm-up requests that this client does not make.
        """
        if point.warmup_requests:
            raise InputError(
                f"{self.name} makes no warm-up requests except one of its own",
                field="workload.warmup_requests",
                found=point.warmup_requests,
                expected="0",
            )
        chat = workload.api == "chat"
        argv = [*target.locations.find(self.program), "--model", target.endpoint.model]
        argv += ["--backend", "openai-chat" if chat else "openai"]
        argv += ["--endpoint", COMPLETIONS_PATHS["chat"]] if chat else []
        synthetic = workload.dataset == "synthetic"
        argv += self.prompts(target, workload)
        argv += ["--random-prefix-len", "0", "--random-ids"] if synthetic else []
        argv += requests(workload, point)
        argv += ["--ignore-eos"] if workload.ignore_eos else []
        # Prompts as token ids have exactly the asked length; a chat message can only be text.
        argv += ["--tokenize-on-client"] if synthetic and not chat else []
        argv += [] if workload.streaming else ["--non-streaming"]
        return [*argv, *reporting(target, workload, point)]
