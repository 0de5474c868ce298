"""vllm bench serve: vLLM's load client, which works against any OpenAI-compatible server.

Options as in the GPUStack H200 lab, section "Benchmark Script" (vLLM 0.11).
"""

from pathlib import Path

from perfgate.clients import serving_client as serving
from perfgate.clients.base import Client, Target, client, program_version
from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import VLLM
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Workload

CLIENT = "vllm-bench"
_VERSION_WITHIN_S = 120  # it imports all of vLLM first, some ten seconds


@client(CLIENT)
class VllmBench(Client):
    """Random prompts of one length, or ShareGPT's."""

    name = CLIENT

    def version(self, build: EngineBuild, locations: Locations) -> str:  # noqa: ARG002
        """See `Client.version`; the client's own, whatever engine it measures."""
        return program_version(VLLM, locations, _VERSION_WITHIN_S)

    def command(
        self,
        target: Target,
        workload: Workload,
        point: LoadPoint,
        folder: Path,  # noqa: ARG002
    ) -> Command:
        """See `Client.command`.

        Raises:
            InputError: prompts that this client does not make.
        """
        chat = workload.api == "chat"
        argv = [*target.locations.find(VLLM), "bench", "serve", "--model", target.endpoint.model]
        argv += ["--backend", "openai-chat" if chat else "openai"]
        argv += ["--endpoint", "/v1/chat/completions" if chat else "/v1/completions"]
        argv += serving.prompts(CLIENT, target, workload) + serving.requests(workload, point)
        argv += ["--num-warmups", str(point.warmup_requests)] if point.warmup_requests else []
        argv += ["--ignore-eos"] if workload.ignore_eos else []
        argv += [] if workload.streaming else ["--no-stream"]
        return Command((*argv, *serving.reporting(target, workload, point)))

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`."""
        return serving.parse(CLIENT, workload, point, folder)
