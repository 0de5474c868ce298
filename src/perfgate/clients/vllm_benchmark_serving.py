"""benchmark_serving.py: vLLM's load client before `vllm bench serve`, from its source alone."""

from pathlib import Path
from typing import Literal

from perfgate.clients import serving_client as serving
from perfgate.clients import vllm_options
from perfgate.clients.base import Client, Target, client
from perfgate.clients.package_version import package_version
from perfgate.clients.releases import VLLM as VLLM_RELEASES
from perfgate.clients.releases import release
from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import VLLM_SCRIPT
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Workload

CLIENT = "vllm-benchmark-serving"
_CALLED = (VLLM_SCRIPT, vllm_options.SCRIPT, ())


@client(CLIENT)
class VllmBenchmarkServing(Client):
    """Random prompts of one length, or ShareGPT's."""

    name = CLIENT
    source = "vllm"

    def version(self, build: EngineBuild, locations: Locations) -> str:  # noqa: ARG002
        """See `Client.version`: that of the vLLM which its interpreter has, a script has none."""
        return package_version(VLLM_SCRIPT, "vllm", locations)

    def input_counted_by(self, version: str) -> Literal["client", "server"]:
        """See `Client.input_counted_by`."""
        return release(VLLM_RELEASES, version, vllm_options.SCRIPT).input_counted_by

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
