"""vllm bench serve: vLLM's load client, which works against any OpenAI-compatible server."""

from pathlib import Path
from typing import Literal

from perfgate.clients import serving_client as serving
from perfgate.clients import vllm_options
from perfgate.clients.base import Client, Target, client, program_version
from perfgate.clients.package_version import package_version
from perfgate.clients.releases import VLLM as VLLM_RELEASES
from perfgate.clients.releases import release
from perfgate.core.command import Command
from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import VLLM
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Workload

CLIENT = "vllm-bench"
_CALLED = (VLLM, vllm_options.COMMAND, ("bench", "serve"))
_VERSION_WITHIN_S = 120


@client(CLIENT)
class VllmBench(Client):
    """Random prompts of one length, or ShareGPT's."""

    name = CLIENT
    source = "vllm"

    def version(self, build: EngineBuild, locations: Locations) -> str:  # noqa: ARG002
        """See `Client.version`; the client's own, whatever engine it measures.

        The program imports all of vLLM before it tells, ten seconds on a quiet machine and minutes
        on a busy one: it is asked only where its Python cannot be.
        """
        try:
            return package_version(VLLM, "vllm", locations)
        except MissingProgram:
            return program_version(VLLM, locations, _VERSION_WITHIN_S)

    def input_counted_by(self, version: str) -> Literal["client", "server"]:
        """See `Client.input_counted_by`."""
        return release(VLLM_RELEASES, version, vllm_options.COMMAND).input_counted_by

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
        return vllm_options.command(CLIENT, _CALLED, target, workload, point)

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`."""
        return serving.parse(CLIENT, workload, point, folder)
