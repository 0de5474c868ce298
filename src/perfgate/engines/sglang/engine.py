"""SGLang as perfgate's engine: its server's options, and what is really its own."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perfgate.core.measurement import Json
from perfgate.core.programs import SGLANG_CLI, SGLANG_PYTHON, SGLANG_SERVE
from perfgate.engines.arguments import Argument
from perfgate.engines.base import Endpoint, EngineBuild, ReleaseImage, engine
from perfgate.engines.in_force import InForce, in_flight
from perfgate.engines.refusal import Refused
from perfgate.engines.served.engine import ServedEngine
from perfgate.engines.sglang import options, resolved
from perfgate.engines.sglang.table import FACTS, TABLES, Release
from perfgate.engines.weights import ModelReference
from perfgate.scenarios.extra_options import extra_options
from perfgate.scenarios.scenario import EngineSettings, Scenario

# `ServerArgs` of 0.4.6 to 0.5.23: what holds where nothing else is said.
_UNDER_SPECULATION = 48
_COMPILED = 32
_COMPILED_BY = "--torch-compile-max-bs"


@engine("sglang")
class SGLang(ServedEngine):
    """SGLang's own server, 0.4.2 and newer."""

    name = "sglang"
    distribution = "sglang"
    image = ReleaseImage("lmsysorg/sglang", "v{version}")
    is_rehearsed = True
    programs = (SGLANG_SERVE, SGLANG_PYTHON, SGLANG_CLI)
    # /health generates a token from 0.5 on, and gives up after 20 s (SGLANG_HEALTH_CHECK_TIMEOUT).
    health_within_s = 30.0
    settings_paths = resolved.PATHS
    settings_words = resolved.WORDS
    facts = FACTS
    tables = TABLES

    def arguments(
        self,
        scenario: Scenario,
        settings: EngineSettings,
        known: Release,
        model: ModelReference,
        endpoint: Endpoint,
    ) -> tuple[Argument, ...]:
        """See `ServedEngine.arguments`."""
        device = "cpu" if scenario.hardware.gpu == "none" else None
        return (
            Argument("model", model.where, "model"),
            Argument("host", endpoint.host, "listen.host"),
            Argument("port", endpoint.port, "listen.port"),
            Argument("served_name", None if model.path is None else endpoint.model, "model.name"),
            Argument("device", device, "hardware.gpu"),
            *options.arguments(scenario, settings, known),
        )

    def refusals(self, scenario: Scenario) -> Iterator[Refused]:
        """See `ServedEngine.refusals`."""
        settings = scenario.engine.settings
        parts = settings.dp or 1
        if settings.attention_dp and settings.tp % parts:
            expected = f"a divisor of tp {settings.tp}, which it divides"
            yield Refused("engine.settings.dp", parts, expected)

    def defaults(self, settings: EngineSettings, known: Release) -> Mapping[str, Any]:
        """See `ServedEngine.defaults`: of the overlap scheduler under speculation.

        All other defaults are the same in every release, the seed (a new one at each start) among
        them, or follow from the GPU's memory.
        """
        speculates = settings.mtp is not None and settings.mtp.layers > 0
        return {"overlap_scheduler": known.overlap_with_speculation} if speculates else {}

    def foreseen(self, scenario: Scenario, build: EngineBuild) -> tuple[str, ...]:
        """See `Engine.foreseen`: a running server reports the same (`resolved`)."""
        return tuple(_foreseen(scenario, self.tables.release(build.version)))

    def in_force(
        self, scenario: Scenario, told: Mapping[str, Json], log: Iterable[str]
    ) -> InForce | None:
        """See `Engine.in_force`."""
        return resolved.in_force(scenario, told, log)


def _foreseen(scenario: Scenario, known: Release) -> Iterator[str]:
    """What SGLang is known to ignore or to bound, but for what is inert: one line for each."""
    settings, inert = scenario.engine.settings, scenario.engine.inert or {}
    alone = options.attention_is_divided_alone(settings) and known.attention_dp_alone == "off"
    if alone and "attention_dp" not in inert:
        yield (
            f"attention_dp: SGLang {known.version} switches it off without a word where dp is not "
            f"above 1; dp: {settings.tp} divides the attention"
        )
    asked = in_flight(scenario)
    admitted = settings.max_batch_size
    if settings.mtp is not None and settings.mtp.layers and admitted is None:
        admitted = _UNDER_SPECULATION
        if asked > admitted:
            yield (
                f"mtp: SGLang runs at most {admitted} requests at once under speculative decoding, "
                f"{asked} are in flight; max_batch_size says otherwise"
            )
    is_sized = any(one.name == _COMPILED_BY for one in extra_options(scenario.engine))
    if settings.torch_compile and not is_sized and min(asked, admitted or asked) > _COMPILED:
        yield (
            f"torch_compile: SGLang compiles for batches of up to {_COMPILED} requests, {asked} "
            f"are in flight; {_COMPILED_BY} under extra_args says otherwise"
        )
