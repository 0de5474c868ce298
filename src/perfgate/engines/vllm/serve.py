"""`vllm serve`: the server that the load clients and lm_eval talk to."""

from collections.abc import Iterator
from dataclasses import replace

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import VLLM_SERVE
from perfgate.engines.arguments import Argument, of_settings, spelled
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.extra_option_refusal import asked_by
from perfgate.engines.model_reference import ModelReference, reference
from perfgate.engines.refusal import refusal
from perfgate.engines.vllm import compilation, extra_options
from perfgate.engines.vllm.releases import Release, release, same_release
from perfgate.engines.vllm.releases.table import SERVE
from perfgate.scenarios.scenario import EngineSettings, Scenario

# Settings that are options as they stand.
SETTINGS = (
    "max_batch_size",
    "max_num_tokens",
    "max_seq_len",
    "kv_cache_fraction",
    "kv_cache_dtype",
    "kv_cache_reuse",
    "chunked_context",
    "overlap_scheduler",
    "quantization",
    "moe_backend",
    "stream_interval",
    "iteration_log",
    "trust_remote_code",
    "seed",
)


def serve(
    scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
) -> Command:
    """The command that serves the scenario's model on `endpoint`.

    A model in a local folder is served under its public name; one of the hub has that by itself.

    Raises:
        InputError: a setting that this release cannot express.
        MissingProgram: the program is not installed.
    """
    known, settings = release(build.version), pinned(scenario, build)
    model = reference(scenario, locations)
    arguments = (
        *of_scenario(scenario, settings, known),
        *_of_endpoint(model, endpoint),
    )
    return Command(
        (
            *locations.find(VLLM_SERVE),
            "serve",
            model.where,
            *spelled(scenario, known, SERVE, arguments),
            *extra_options.words(scenario, known, arguments),
        ),
        env=environment(scenario, settings, known),
        asked_by=asked_by(scenario),
    )


def of_scenario(scenario: Scenario, settings: EngineSettings, known: Release) -> Iterator[Argument]:
    """The arguments that the settings become, the documents' first."""
    for name in ("tp", "pp", "dp"):
        count = getattr(settings, name)
        yield Argument(name, count if count and count > 1 else None, f"engine.settings.{name}")
    # Experts are spread over all ranks or over none; without the option they are not.
    is_spread = settings.ep is not None and settings.ep > 1
    yield Argument("expert_parallel", is_spread or None, "engine.settings.ep")
    yield from of_settings(settings, *SETTINGS)
    if known.attention_variable is None:
        yield from of_settings(settings, "attention_backend")
    yield from compilation.arguments(scenario, settings, known)
    if settings.mtp is not None and settings.mtp.layers:
        value = {"method": "deepseek_mtp", "num_speculative_tokens": settings.mtp.layers}
        yield Argument("speculation", compilation.in_json(value), "engine.settings.mtp")


def _of_endpoint(model: ModelReference, endpoint: Endpoint) -> Iterator[Argument]:
    name = None if model.path is None else endpoint.model
    yield Argument("served_name", name, "model.name")
    yield Argument("host", endpoint.host, "listen.host")
    yield Argument("port", endpoint.port, "listen.port")


_FIELD = "engine.settings.attention_backend"
_OLD = "VLLM_ATTENTION_BACKEND"  # a release that has an option instead may ignore it


def environment(scenario: Scenario, settings: EngineSettings, known: Release) -> dict[str, str]:
    """Variables to add to those of the caller.

    Raises:
        InputError: the scenario names the kernels of the attention twice, or by a variable that
            the release does not read.
    """
    said = scenario.environment.get(_OLD)
    if known.attention_variable is None:
        if said is not None:
            expected = "not to be set: the release ignores it, at most with a line in its log"
            hint = "write engine.settings.attention_backend instead"
            raise refusal(scenario, f"environment.{_OLD}", said, known, expected, hint)
        return dict(scenario.environment)
    asked = settings.attention_backend
    if asked is None:
        return dict(scenario.environment)
    if said not in (None, asked):
        expected = f"what environment says: {known.attention_variable} is {said} there"
        raise refusal(scenario, _FIELD, asked, known, expected)
    return {known.attention_variable: asked, **scenario.environment}


_PINNED = ("kv_cache_fraction", "kv_cache_reuse", "chunked_context", "overlap_scheduler", "seed")


def pinned(scenario: Scenario, build: EngineBuild) -> EngineSettings:
    """The scenario's settings, with the document's defaults for what the scenario leaves open.

    A default that moved between releases is written out, so that it cannot pass for a regression.
    At the document's own release nothing is added. At any other, each of `_PINNED` that the
    scenario leaves open gets the default of that time. How many requests and tokens vLLM takes at
    once without being told depends on the GPU, too, and is left to it.

    Args:
        scenario: the scenario; without the document's release there is nothing to pin to.
        build: the release under test.

    Raises:
        InputError: one of the two versions has no release table.
    """
    documented, settings = scenario.source.engine_version, scenario.engine.settings
    if documented is None or same_release(documented, build.version):
        return settings
    defaults = release(documented).defaults
    left_open = {
        name: getattr(defaults, name) for name in _PINNED if getattr(settings, name) is None
    }
    return replace(settings, **left_open)
