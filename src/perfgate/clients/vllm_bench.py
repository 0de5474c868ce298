"""vllm bench serve: vLLM's load client, which works against any OpenAI-compatible server.

Options as in the GPUStack H200 lab, section "Benchmark Script" (vLLM 0.11).
"""

from pathlib import Path

from perfgate.clients import serving_client as serving
from perfgate.clients.base import Client, Target, client
from perfgate.core.command import Command
from perfgate.core.errors import MissingProgram
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
        answer = locations.ask((*locations.find(VLLM), "--version"), _VERSION_WITHIN_S)
        if not answer.is_good:
            raise MissingProgram(f"vllm does not tell its version: {answer.trouble}")
        words = answer.stdout.split()
        if not words:
            raise MissingProgram("vllm does not tell its version: it printed nothing")
        return words[-1]

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
        if workload.dataset == "sharegpt":
            argv += serving.sharegpt(target)
        else:
            isl, osl = serving.require_synthetic(CLIENT, workload)
            argv += ["--dataset-name", "random", "--random-input-len", str(isl)]
            argv += ["--random-output-len", str(osl)]
        argv += ["--num-prompts", str(point.requests), *serving.capping(workload, point)]
        argv += ["--num-warmups", str(point.warmup_requests)] if point.warmup_requests else []
        argv += ["--ignore-eos"] if workload.ignore_eos else []
        argv += [] if workload.streaming else ["--no-stream"]
        argv += serving.percentile_metrics(workload)
        argv += [*serving.saving(point), *serving.addressing(target), "--seed", str(point.seed)]
        return Command(tuple(argv))

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`."""
        return serving.parse(CLIENT, workload, point, folder)
