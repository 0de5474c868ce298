"""TensorRT-LLM as perfgate's engine: each question goes to the module that answers it.

`words` lists what settings can be called in any release; any other word is a typing error, found
where a scenario file is read.
"""

from collections.abc import Iterable, Mapping, Sequence

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.programs import (
    BENCHMARK_SERVING,
    TENSORRT_LLM_PYTHON,
    TRTLLM_BENCH,
    TRTLLM_EVAL,
    TRTLLM_LAUNCH,
    TRTLLM_SERVE,
)
from perfgate.engines.base import Endpoint, Engine, EngineBuild, ReleaseImage, engine
from perfgate.engines.in_force import InForce
from perfgate.engines.tensorrt_llm import checks, discovery, installed_options, programs, resolved
from perfgate.engines.tensorrt_llm.table import QUICKSTART, SERVE, TABLES, THROUGHPUT
from perfgate.engines.weights import reference
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import Scenario

# Beside those that the tables name. Sources, up to 1.3: for the kernels of the experts
# `MoeConfig.backend` in `tensorrt_llm/llmapi/llm_args.py`, for those of the attention
# `get_attention_backend` in `tensorrt_llm/_torch/attention_backend/utils.py`, which takes TRTLLM
# for any word that it does not know.
_ANY_RELEASE: Mapping[str, frozenset[str]] = {
    "backend": frozenset({"tensorrt"}),
    "moe_backend": frozenset(
        {
            "AUTO",
            "CUTEDSL",
            "CUTLASS",
            "DEEPGEMM",
            "DENSEGEMM",
            "MARLIN",
            "MEGAMOE_DEEPGEMM",
            "TRITON",
            "TRTLLM",
            "VANILLA",
            "WIDEEP",
        }
    ),
    "attention_backend": frozenset(
        {"FLASHINFER", "FLASHINFER_STAR_ATTENTION", "TRTLLM", "VANILLA"}
    ),
}


def words() -> Mapping[str, frozenset[str]]:
    """Setting → what any release takes for it.

    Raises:
        InputError: a table of releases cannot be read.
    """
    found = {setting: set(known) for setting, known in _ANY_RELEASE.items()}
    for table in TABLES.all():
        found["moe_backend"] |= table.moe_backends or frozenset()
        for setting in found:
            for program in (THROUGHPUT, SERVE, QUICKSTART):
                found[setting].update(table.choices(program, setting))
    return {setting: frozenset(known) for setting, known in found.items()}


@engine("tensorrt-llm")
class TensorRTLLM(Engine):
    """TensorRT-LLM on NVIDIA GPUs, 0.19 and newer."""

    name = "tensorrt-llm"
    distribution = "tensorrt_llm"
    image = ReleaseImage("nvcr.io/nvidia/tensorrt-llm/release")
    is_rehearsed = True
    quantized_by_file = True
    interpreter = TENSORRT_LLM_PYTHON
    programs = (
        TRTLLM_BENCH,
        TRTLLM_SERVE,
        TRTLLM_EVAL,
        TRTLLM_LAUNCH,
        TENSORRT_LLM_PYTHON,
        BENCHMARK_SERVING,
    )
    settings_words = resolved.WORDS

    @classmethod
    def words(cls) -> Mapping[str, frozenset[str]]:
        """See `Engine.words`."""
        return words()

    def check(self, scenario: Scenario, build: EngineBuild) -> None:
        """See `Engine.check`."""
        checks.check(scenario, build)

    @classmethod
    def refused_extras(cls, scenario: Scenario) -> Iterable[Problem]:
        """See `Engine.refused_extras`."""
        return checks.refused_extras(scenario)

    def build(self, locations: Locations) -> EngineBuild:
        """See `Engine.build`."""
        return discovery.installed(locations)

    def uncovered(self, version: str) -> str | None:
        """See `Engine.uncovered`."""
        return TABLES.uncovered(version)

    def served_model(self, scenario: Scenario, locations: Locations) -> str:
        """See `Engine.served_model`: the server shows the last part of a folder, or the name.

        Source: `OpenAIServer.__init__` in `tensorrt_llm/serve/openai_server.py`.
        """
        model = reference(scenario, locations)
        return model.name if model.path is None else model.path.name

    def verify(
        self, build: EngineBuild, commands: Sequence[Command], locations: Locations
    ) -> tuple[str, ...]:
        """See `Engine.verify`."""
        return installed_options.verify(build, commands, locations)

    def moved_defaults(self, commands: Sequence[Command], locations: Locations) -> tuple[str, ...]:
        """See `Engine.moved_defaults`."""
        return installed_options.moved_defaults(commands, locations)

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        """See `Engine.serve`."""
        return programs.serve(scenario, build, endpoint, locations)

    def in_force(
        self, scenario: Scenario, told: Mapping[str, Json], log: Iterable[str]
    ) -> InForce | None:
        """See `Engine.in_force`."""
        return resolved.in_force(scenario, told, log)
