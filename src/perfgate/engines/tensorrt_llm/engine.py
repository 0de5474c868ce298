"""TensorRT-LLM as perfgate's engine: each question goes to the module that answers it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.locations import Places
from perfgate.core.measurement import Json
from perfgate.engines.base import Endpoint, Engine, EngineBuild, engine
from perfgate.engines.tensorrt_llm import checks, discovery, installed_options, serve, weights
from perfgate.engines.tensorrt_llm.model import reference
from perfgate.scenarios.scenario import Scenario


@engine("tensorrt-llm")
class TensorRTLLM(Engine):
    """TensorRT-LLM on NVIDIA GPUs, 0.19 and newer."""

    name = "tensorrt-llm"

    def check(self, scenario: Scenario, build: EngineBuild) -> None:
        """See `Engine.check`."""
        checks.check(scenario, build)

    def build(self, places: Places) -> EngineBuild:
        """See `Engine.build`."""
        return discovery.installed(places)

    def served_model(self, scenario: Scenario, places: Places) -> str:
        """See `Engine.served_model`: the server shows the last part of a folder, or the name.

        Source: `OpenAIServer.__init__` in `tensorrt_llm/serve/openai_server.py`.
        """
        model = reference(scenario, places)
        return model.name if model.path is None else model.path.name

    def verify(self, build: EngineBuild, commands: Sequence[Command], places: Places) -> None:
        """See `Engine.verify`."""
        installed_options.verify(build, commands, places)

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, places: Places
    ) -> Command:
        """See `Engine.serve`."""
        return serve.serve(scenario, build, endpoint, places)

    def tokenizer(self, scenario: Scenario, cache: Path, places: Places) -> str:  # noqa: ARG002
        """See `Engine.tokenizer`."""
        return reference(scenario, places).where

    def model_facts(self, scenario: Scenario, places: Places) -> Mapping[str, Json]:
        """See `Engine.model_facts`."""
        return weights.model_facts(scenario, places)
