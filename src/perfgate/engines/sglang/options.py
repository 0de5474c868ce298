"""Settings of a scenario as arguments of SGLang's server. No option is named here."""

from collections.abc import Iterator

from perfgate.engines.arguments import Argument, of_graphs, of_settings
from perfgate.engines.refusal import refusal
from perfgate.engines.sglang.table import FACTS, SERVE, Release
from perfgate.scenarios.scenario import EngineSettings, Scenario

_CHUNKS_OFF = -1
_EAGLE = "EAGLE"


def arguments(scenario: Scenario, settings: EngineSettings, known: Release) -> tuple[Argument, ...]:
    """All that the server is told of `settings`.

    Args:
        scenario: for messages.
        settings: the scenario's, with the document's defaults in the place of what it leaves open.
        known: the release that is told.

    Raises:
        CannotDo: a value that the release cannot express, where no option is missing for it.
    """
    return (
        Argument("tp", settings.tp),
        *_parallelism(scenario, settings, known),
        *_chunks(settings),
        *(of_graphs(settings.cuda_graphs) if settings.cuda_graphs is not None else ()),
        *_speculation(settings),
        *of_settings(settings, *FACTS.settings),
    )


def _parallelism(
    scenario: Scenario, settings: EngineSettings, known: Release
) -> Iterator[Argument]:
    """Of the attention and of replicas, which share an option up to 0.5.21; of the experts."""
    options = known.options(SERVE)
    if attention_is_divided_alone(settings) and known.attention_dp_alone == "fails":
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


def attention_is_divided_alone(settings: EngineSettings) -> bool:
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
