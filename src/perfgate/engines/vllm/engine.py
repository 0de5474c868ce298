"""vLLM as perfgate's engine: each question goes to the module that answers it."""

from collections.abc import Iterable, Mapping, Sequence

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.programs import VLLM_PYTHON, VLLM_SERVE
from perfgate.engines.base import Endpoint, EngineBuild, ReleaseImage, engine
from perfgate.engines.checkpoint_engine import CheckpointEngine
from perfgate.engines.in_force import InForce
from perfgate.engines.installed_pages import verify_pages
from perfgate.engines.vllm import checks, discovery, resolved_settings, serve
from perfgate.engines.vllm.program_calls import calls
from perfgate.engines.vllm.releases import Release, all_releases, release, told_by, uncovered
from perfgate.engines.vllm.releases.table import SERVE
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import Scenario


@engine("vllm")
class Vllm(CheckpointEngine):
    """vLLM's OpenAI-compatible server, 0.6.6 and newer, on GPUs or CPUs."""

    name = "vllm"
    distribution = "vllm"
    is_named = True
    is_rehearsed = True
    image = ReleaseImage("vllm/vllm-openai", "v{version}", VLLM_SERVE.executable)
    interpreter = VLLM_PYTHON
    programs = (VLLM_SERVE, VLLM_PYTHON)
    settings_paths = resolved_settings.PATHS
    settings_words = resolved_settings.WORDS

    @classmethod
    def words(cls) -> Mapping[str, frozenset[str]]:
        """See `Engine.words`."""
        known = (word for table in all_releases() for word in table.choices(SERVE, "moe_backend"))
        return {"moe_backend": frozenset(known)}

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
        return uncovered(version)

    def served_model(self, scenario: Scenario, locations: Locations) -> str:  # noqa: ARG002
        """See `Engine.served_model`: the public name, which a local folder is served under, too."""
        return scenario.model.name

    def verify(
        self, build: EngineBuild, commands: Sequence[Command], locations: Locations
    ) -> tuple[str, ...]:
        """See `Engine.verify`."""
        known: Release = release(build.version)
        return verify_pages(
            build,
            known.title,
            commands,
            lambda command: calls(command.argv, known, locations),
            told_by,
            locations,
        )

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        """See `Engine.serve`."""
        return serve.serve(scenario, build, endpoint, locations)

    def in_force(
        self, scenario: Scenario, told: Mapping[str, Json], log: Iterable[str]
    ) -> InForce | None:
        """See `Engine.in_force`."""
        return resolved_settings.in_force(scenario, told, log)
