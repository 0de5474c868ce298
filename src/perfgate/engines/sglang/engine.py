"""SGLang as perfgate's engine: each question goes to the module that answers it.

`words` lists what settings can be called in any release; any other word is a typing error, found
where a scenario file is read.
"""

from collections.abc import Iterable, Mapping, Sequence

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.programs import SGLANG_CLI, SGLANG_PYTHON, SGLANG_SERVE
from perfgate.engines.base import Endpoint, EngineBuild, ReleaseImage, engine
from perfgate.engines.checkpoint_engine import CheckpointEngine
from perfgate.engines.in_force import InForce
from perfgate.engines.sglang import checks, discovery, installed_options, resolved, serve
from perfgate.engines.sglang.releases import all_releases, release, uncovered
from perfgate.engines.sglang.releases.table import SERVE
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import Scenario

_SETTINGS = ("kv_cache_dtype", "quantization", "attention_backend", "moe_backend")


def words() -> Mapping[str, frozenset[str]]:
    """Setting → what any release takes for it.

    Raises:
        InputError: a table of releases cannot be read.
    """
    tables = all_releases()
    return {
        setting: frozenset(word for table in tables for word in table.choices(SERVE, setting))
        for setting in _SETTINGS
    }


@engine("sglang")
class SGLang(CheckpointEngine):
    """SGLang's own server, 0.4.2 and newer."""

    name = "sglang"
    distribution = "sglang"
    image = ReleaseImage("lmsysorg/sglang", "v{version}")
    is_rehearsed = True
    is_named = True
    programs = (SGLANG_SERVE, SGLANG_PYTHON, SGLANG_CLI)
    # /health generates a token from 0.5 on, and gives up after 20 s (SGLANG_HEALTH_CHECK_TIMEOUT).
    health_within_s = 30.0
    settings_paths = resolved.PATHS
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
        return uncovered(version)

    def foreseen(self, scenario: Scenario, build: EngineBuild) -> tuple[str, ...]:
        """See `Engine.foreseen`."""
        return tuple(checks.foreseen(scenario, release(build.version)))

    def served_model(self, scenario: Scenario, locations: Locations) -> str:  # noqa: ARG002
        """See `Engine.served_model`: the public name, which a folder's model is given."""
        return scenario.model.name

    def verify(
        self, build: EngineBuild, commands: Sequence[Command], locations: Locations
    ) -> tuple[str, ...]:
        """See `Engine.verify`."""
        return installed_options.verify(build, commands, locations)

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        """See `Engine.serve`."""
        return serve.serve(scenario, build, endpoint, locations)

    def in_force(
        self, scenario: Scenario, told: Mapping[str, Json], log: Iterable[str]
    ) -> InForce | None:
        """See `Engine.in_force`."""
        return resolved.in_force(scenario, told, log)
