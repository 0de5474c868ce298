"""vLLM as perfgate's engine: its server's options, and what is really its own."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perfgate.core.measurement import Json
from perfgate.core.programs import VLLM_PYTHON, VLLM_SERVE
from perfgate.engines.arguments import Argument
from perfgate.engines.base import Endpoint, ReleaseImage, engine
from perfgate.engines.in_force import InForce
from perfgate.engines.refusal import Refused
from perfgate.engines.served.engine import ServedEngine
from perfgate.engines.vllm import options, resolved_settings
from perfgate.engines.vllm.table import FACTS, TABLES, Release
from perfgate.engines.weights import ModelReference
from perfgate.scenarios.scenario import EngineSettings, Scenario

# Of what moved between releases. How many requests and tokens vLLM takes at once without being told
# depends on the GPU, too, and is left to it.
_PINNED = ("kv_cache_fraction", "kv_cache_reuse", "chunked_context", "overlap_scheduler", "seed")


@engine("vllm")
class Vllm(ServedEngine):
    """vLLM's OpenAI-compatible server, 0.6.6 and newer, on GPUs or CPUs."""

    name = "vllm"
    distribution = "vllm"
    is_rehearsed = True
    image = ReleaseImage("vllm/vllm-openai", "v{version}", VLLM_SERVE.executable)
    interpreter = VLLM_PYTHON
    programs = (VLLM_SERVE, VLLM_PYTHON)
    settings_paths = resolved_settings.PATHS
    settings_words = resolved_settings.WORDS
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
        """See `ServedEngine.arguments`: the documents' options first."""
        return (
            *options.arguments(scenario, settings, known),
            Argument("served_name", None if model.path is None else endpoint.model, "model.name"),
            Argument("host", endpoint.host, "listen.host"),
            Argument("port", endpoint.port, "listen.port"),
        )

    def refusals(self, scenario: Scenario) -> Iterator[Refused]:
        """See `ServedEngine.refusals`."""
        yield from _attention_is_parallel_by_dp(scenario)
        graphs = scenario.engine.settings.cuda_graphs
        if graphs is not None and graphs.padding is False:
            expected = "true, or nothing: batches are padded to the next captured size"
            yield Refused("engine.settings.cuda_graphs.padding", False, expected)

    def defaults(self, settings: EngineSettings, known: Release) -> Mapping[str, Any]:
        """See `ServedEngine.defaults`."""
        left_open = (name for name in _PINNED if getattr(settings, name) is None)
        return {name: getattr(known.defaults, name) for name in left_open}

    def environment(self, scenario: Scenario, known: Release) -> dict[str, str]:
        """See `ServedEngine.environment`: the attention's kernels once had no option."""
        return options.environment(scenario, known)

    def in_force(
        self, scenario: Scenario, told: Mapping[str, Json], log: Iterable[str]
    ) -> InForce | None:
        """See `Engine.in_force`."""
        return resolved_settings.in_force(scenario, told, log)


def _attention_is_parallel_by_dp(scenario: Scenario) -> Iterator[Refused]:
    """Data parallelism of a model with experts is that of its attention; ranks are tp × pp × dp."""
    settings, gpus = scenario.engine.settings, scenario.hardware.gpus or 1
    dp = settings.dp or 1
    if settings.attention_dp and dp == 1:
        expected = "not to be set alone: dp says over how many ranks, and tp × pp × dp = GPUs"
        hint = (
            f"write dp: {gpus} and tp: 1, with ep: {gpus} to spread the experts"
            if gpus > 1
            else None
        )
        yield Refused("engine.settings.attention_dp", True, expected, hint)
    product = settings.tp * settings.stages * dp
    if dp > 1 and product != gpus:
        found = f"{dp}, with tp {settings.tp} and pp {settings.stages} on {gpus} GPUs"
        yield Refused("engine.settings.dp", found, "tp × pp × dp = GPUs: each part has its own")
    ranks = settings.tp * dp
    if settings.ep not in (None, 1, ranks):
        expected = f"1, or {ranks}: the experts are spread over all of tp × dp, or over none"
        yield Refused("engine.settings.ep", settings.ep, expected)
