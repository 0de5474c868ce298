"""SGLang as perfgate's engine: settings as its server's options, and what is really its own."""

from collections.abc import Iterator

from perfgate.core.programs.programs import SGLANG_CLI, SGLANG_PYTHON, SGLANG_SERVE
from perfgate.engines.arguments import Argument, of_graphs, of_settings
from perfgate.engines.base import EngineBuild, ReleaseImage, engine
from perfgate.engines.effective_settings import in_flight
from perfgate.engines.refusal import Refused, refusal
from perfgate.engines.served.engine import ServedEngine
from perfgate.engines.sglang import resolved
from perfgate.engines.sglang.table import FACTS, SERVE, TABLES, Release
from perfgate.scenarios.rules.extra_options import extra_options
from perfgate.scenarios.scenario import EngineSettings, Scenario

_CHUNKS_OFF = -1
_EAGLE = "EAGLE"
# `ServerArgs` of 0.4.6 to 0.5.23: what holds where nothing else is said.
_UNDER_SPECULATION = 48
_COMPILED = 32
_COMPILED_BY = "--torch-compile-max-bs"


@engine("sglang")
class SGLang(ServedEngine):
    """SGLang's own server, 0.4.2 and newer."""

    distribution = "sglang"
    image = ReleaseImage("lmsysorg/sglang", "v{version}")
    is_rehearsed = True
    programs = (SGLANG_SERVE, SGLANG_PYTHON, SGLANG_CLI)
    # /health generates a token from 0.5 on, and gives up after 20 s (SGLANG_HEALTH_CHECK_TIMEOUT).
    health_within_s = 30.0
    settings_paths = resolved.PATHS
    settings_words = resolved.WORDS
    effective_settings = staticmethod(resolved.effective_settings)
    facts = FACTS
    tables = TABLES

    def arguments(
        self, scenario: Scenario, settings: EngineSettings, known: Release
    ) -> tuple[Argument, ...]:
        """See `ServedEngine.arguments`."""
        return (
            Argument("tp", settings.tp),
            *_parallelism(scenario, settings, known),
            *_chunks(settings),
            *(of_graphs(settings.cuda_graphs) if settings.cuda_graphs is not None else ()),
            *_speculation(settings),
            *of_settings(settings, *FACTS.settings),
        )

    def refusals(self, scenario: Scenario) -> Iterator[Refused]:
        """See `ServedEngine.refusals`."""
        settings = scenario.engine.settings
        parts = settings.dp or 1
        if settings.attention_dp and settings.tp % parts:
            expected = f"a divisor of tp {settings.tp}, which it divides"
            yield Refused("engine.settings.dp", parts, expected)

    def pinned(self, scenario: Scenario, build: EngineBuild) -> EngineSettings:
        """See `ServedEngine.pinned`: without speculation no default moved."""
        found, asked = super().pinned(scenario, build), scenario.engine.settings
        return found if asked.mtp is not None and asked.mtp.layers > 0 else asked

    def known_limitations(self, scenario: Scenario, build: EngineBuild) -> tuple[str, ...]:
        """See `Engine.known_limitations`: a running server reports the same (`resolved`)."""
        return tuple(_known_limitations(scenario, self.tables.release(build.version)))


def _known_limitations(scenario: Scenario, known: Release) -> Iterator[str]:
    """What SGLang is known to ignore or to bound, but for what is inert: one line for each."""
    settings, inert = scenario.engine.settings, scenario.engine.inert or {}
    alone = _attention_is_divided_alone(settings) and known.attention_dp_alone == "off"
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


def _parallelism(
    scenario: Scenario, settings: EngineSettings, known: Release
) -> Iterator[Argument]:
    """Of the attention and of replicas, which share an option up to 0.5.21; of the experts."""
    options = known.options(SERVE)
    if _attention_is_divided_alone(settings) and known.attention_dp_alone == "fails":
        field, found = "engine.settings.attention_dp", "true, without dp"
        expected = "dp above 1: the server ends with 'Please set a dp-size > 1'"
        raise refusal(scenario, field, found, known, expected, f"set dp, e.g. to {settings.tp}")
    if settings.attention_dp and settings.dp is not None and "attention_dp_parts" in options:
        yield Argument("attention_dp_parts", settings.dp, "engine.settings.dp")
    else:
        yield Argument("attention_dp", settings.attention_dp or None)
        yield Argument("dp", settings.dp)
    if settings.ep is None or "ep" in options:
        yield Argument("ep", settings.ep)
    elif settings.ep == settings.tp:
        yield Argument("ep_of_tp", settings.ep > 1, "engine.settings.ep")
    elif settings.ep != 1:
        expected = f"{settings.tp}, as tp: it spreads the experts over all of it, or not at all"
        raise refusal(scenario, "engine.settings.ep", settings.ep, known, expected)


def _attention_is_divided_alone(settings: EngineSettings) -> bool:
    """Whether attention DP is asked for without its number of parts."""
    return bool(settings.attention_dp) and settings.dp in (None, 1)


def _chunks(settings: EngineSettings) -> Iterator[Argument]:
    """Without chunks the tokens of a batch are limited by another option."""
    tokens = "engine.settings.max_num_tokens"
    if settings.chunked_context is False:
        yield Argument("chunk_size", _CHUNKS_OFF, "engine.settings.chunked_context")
        yield Argument("prefill_tokens", settings.max_num_tokens, tokens)
    else:
        yield Argument("chunk_size", settings.max_num_tokens, tokens)


def _speculation(settings: EngineSettings) -> Iterator[Argument]:
    """The three numbers go together; with one candidate a step, the tokens are one more."""
    layers, field = settings.mtp.layers if settings.mtp is not None else 0, "engine.settings.mtp"
    if not layers:
        return
    yield Argument("mtp", _EAGLE)
    yield Argument("mtp.steps", layers, field)
    yield Argument("mtp.topk", 1, field)
    yield Argument("mtp.draft_tokens", layers + 1, field)
