"""Toolchain whose engine and client say what a test wants them to."""

from dataclasses import replace
from typing import Any

from building import SCENARIO

from perfgate.core.locations import Locations
from perfgate.engines.base import Engine, EngineBuild
from perfgate.plan.toolchain import BuildOverride, Toolchain


class Made(Engine):
    """An engine of which everything can be said beforehand."""

    name = "made"

    def __init__(self, **says: Any) -> None:
        self.says = says

    def _say(self, what: str, otherwise: Any) -> Any:
        said = self.says.get(what, otherwise)
        if isinstance(said, Exception):
            raise said
        return said

    def build(self, locations) -> EngineBuild:
        return self._say("build", EngineBuild("made", "1.2", "0123456789abcdef"))

    def check(self, scenario, build) -> None:
        self._say("check", None)

    def model_facts(self, scenario, locations):
        return self._say("model", {"name": "Small-1B", "bytes": 3 * 2**30, "shards": 4})

    def served_model(self, scenario, locations):
        raise NotImplementedError

    serve = tokenizer = served_model


class Asking(Made):
    """The same, whose options can be asked for."""

    def verify(self, build, commands, locations) -> tuple[str, ...]:
        return self._say("options", ())

    def moved_defaults(self, commands, locations) -> tuple[str, ...]:
        return self._say("defaults", ())


class Client:
    """A client that tells its version or why it cannot."""

    name = "aiperf"

    def __init__(self, version: Any = "0.13.0") -> None:
        self.says = version

    def version(self, build: EngineBuild, locations) -> str:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def tools(engine: Engine, client: Client | None = None, **changes) -> Toolchain:
    scenario, clients = replace(SCENARIO, **changes), {"aiperf": client or Client()}
    return Toolchain(scenario, engine, clients, {}, Locations(), BuildOverride())
