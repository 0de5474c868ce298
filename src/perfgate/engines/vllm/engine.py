"""vLLM as perfgate's engine: settings as its server's options, and what is really its own.

``--enforce-eager`` switches CUDA graphs and torch.compile off together; the JSON value of the
compilation's own option says one without the other. No option is named here.
"""

import json
from collections.abc import Iterator

from perfgate.core.programs.programs import VLLM_PYTHON, VLLM_SERVE
from perfgate.engines.arguments import Argument, of_settings
from perfgate.engines.base import ReleaseImage, engine
from perfgate.engines.refusal import Refused, refusal
from perfgate.engines.served.engine import ServedEngine
from perfgate.engines.vllm import resolved_settings
from perfgate.engines.vllm.table import FACTS, SERVE, TABLES, Release
from perfgate.scenarios.scenario import EngineSettings, Scenario

_GRAPHS = "engine.settings.cuda_graphs"
_COMPILE = "engine.settings.torch_compile"
_FULL, _NOTHING = 3, 0  # levels of compilation, under their later name of modes, too
_FIELD = "engine.settings.attention_backend"
_OLD = "VLLM_ATTENTION_BACKEND"  # a release that has an option instead may ignore it


@engine("vllm")
class Vllm(ServedEngine):
    """vLLM's OpenAI-compatible server, 0.6.6 and newer, on GPUs or CPUs."""

    distribution = "vllm"
    is_rehearsed = True
    image = ReleaseImage("vllm/vllm-openai", "v{version}", VLLM_SERVE.executable)
    interpreter = VLLM_PYTHON
    programs = (VLLM_SERVE, VLLM_PYTHON)
    settings_paths = resolved_settings.PATHS
    settings_words = resolved_settings.WORDS
    effective_settings = staticmethod(resolved_settings.effective_settings)
    facts = FACTS
    tables = TABLES

    def arguments(
        self, scenario: Scenario, settings: EngineSettings, known: Release
    ) -> Iterator[Argument]:
        """See `ServedEngine.arguments`: the documents' options first."""
        for name in ("tp", "pp", "dp"):
            count = getattr(settings, name)
            yield Argument(name, count if count and count > 1 else None)
        # Experts are spread over all ranks or over none; without the option they are not.
        is_spread = settings.ep is not None and settings.ep > 1
        yield Argument("expert_parallel", is_spread or None, "engine.settings.ep")
        yield from of_settings(settings, *FACTS.settings)
        if known.attention_variable is None:
            yield from of_settings(settings, "attention_backend")
        yield from _compilation(scenario, settings, known)
        if settings.mtp is not None and settings.mtp.layers:
            value = {"method": "deepseek_mtp", "num_speculative_tokens": settings.mtp.layers}
            yield Argument("speculation", _in_json(value), "engine.settings.mtp")

    def refusals(self, scenario: Scenario) -> Iterator[Refused]:
        """See `ServedEngine.refusals`."""
        yield from _attention_is_parallel_by_dp(scenario)
        graphs = scenario.engine.settings.cuda_graphs
        if graphs is not None and graphs.padding is False:
            expected = "true, or nothing: batches are padded to the next captured size"
            yield Refused("engine.settings.cuda_graphs.padding", False, expected)

    def environment(self, scenario: Scenario, known: Release) -> dict[str, str]:
        """See `ServedEngine.environment`: the attention's kernels once had no option."""
        said, variable = scenario.environment.get(_OLD), known.attention_variable
        asked = scenario.engine.settings.attention_backend
        if variable is None and said is not None:
            expected = "not to be set: the release ignores it, at most with a line in its log"
            hint = "write engine.settings.attention_backend instead"
            raise refusal(scenario, f"environment.{_OLD}", said, known, expected, hint)
        given = super().environment(scenario, known)
        if variable is None or asked is None:
            return given
        if said not in (None, asked):
            expected = f"what environment says: {variable} is {said} there"
            raise refusal(scenario, _FIELD, asked, known, expected)
        return {variable: asked, **given}


def _attention_is_parallel_by_dp(scenario: Scenario) -> Iterator[Refused]:
    """Data parallelism of a model with experts is that of its attention; ranks are tp × pp × dp."""
    settings, gpus = scenario.engine.settings, scenario.hardware.gpus or 1
    dp = settings.dp or 1
    if settings.attention_dp and dp == 1:
        expected = "not to be set alone: dp says over how many ranks, and tp × pp × dp = GPUs"
        hint = f"write dp: {gpus} and tp: 1, with ep: {gpus} to spread the experts"
        yield Refused("engine.settings.attention_dp", True, expected, hint if gpus > 1 else None)
    product = settings.tp * settings.stages * dp
    if dp > 1 and product != gpus:
        found = f"{dp}, with tp {settings.tp} and pp {settings.stages} on {gpus} GPUs"
        yield Refused("engine.settings.dp", found, "tp × pp × dp = GPUs: each part has its own")
    ranks = settings.tp * dp
    if settings.ep not in (None, 1, ranks):
        expected = f"1, or {ranks}: the experts are spread over all of tp × dp, or over none"
        yield Refused("engine.settings.ep", settings.ep, expected)


def _compilation(
    scenario: Scenario, settings: EngineSettings, known: Release
) -> Iterator[Argument]:
    """The options of both settings.

    Raises:
        InputError: the release cannot capture these sizes, or not do one without the other.
    """
    graphs, compiled = settings.cuda_graphs, settings.torch_compile
    is_off = graphs is not None and not graphs.enabled
    config: dict[str, int | str] = {}
    if is_off and not compiled:
        yield Argument("eager", True, _GRAPHS)
    elif compiled is not None:
        config[known.compilation.level] = _FULL if compiled else _NOTHING
    if is_off and compiled:
        if known.compilation.graph_mode is None:
            expected = "torch_compile with CUDA graphs, or neither: nothing switches off one alone"
            raise refusal(scenario, _GRAPHS, "enabled: false", known, expected)
        config[known.compilation.graph_mode] = "NONE"
    if config:
        yield Argument("compilation", _in_json(config), _COMPILE)
    if not is_off:
        yield from _sizes(scenario, settings, known)


def _sizes(scenario: Scenario, settings: EngineSettings, known: Release) -> Iterator[Argument]:
    graphs = settings.cuda_graphs
    if graphs is None:
        return
    is_alone = known.lone_graph_size_is_largest
    if graphs.batch_sizes:
        if is_alone and len(graphs.batch_sizes) == 1:
            expected = "several sizes: a single one is taken for the largest"
            field = f"{_GRAPHS}.batch_sizes"
            raise refusal(scenario, field, list(graphs.batch_sizes), known, expected)
        yield Argument("graph_sizes", graphs.batch_sizes, f"{_GRAPHS}.batch_sizes")
    if graphs.max_batch_size is not None:
        name = "max_graph_size"
        if is_alone and name not in known.options(SERVE):
            name = "graph_sizes"
        yield Argument(name, graphs.max_batch_size, f"{_GRAPHS}.max_batch_size")


def _in_json(value: object) -> str:
    """A value of an option that takes JSON, as vLLM's documentation writes it."""
    return json.dumps(value, separators=(",", ":"))
