"""What is compiled and captured: CUDA graphs and torch.compile as options of `vllm serve`.

``--enforce-eager`` switches both off; the JSON value of the compilation's own option says one
without the other.
"""

import json
from collections.abc import Iterator

from perfgate.engines.arguments import Argument
from perfgate.engines.refusal import refusal
from perfgate.engines.vllm.releases import Release
from perfgate.engines.vllm.releases.table import SERVE
from perfgate.scenarios.scenario import EngineSettings, Scenario

_GRAPHS = "engine.settings.cuda_graphs"
_COMPILE = "engine.settings.torch_compile"
_FULL, _NOTHING = 3, 0  # levels of compilation, under their later name of modes, too


def arguments(scenario: Scenario, settings: EngineSettings, known: Release) -> Iterator[Argument]:
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
        yield Argument("compilation", in_json(config), _COMPILE)
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


def in_json(value: object) -> str:
    """A value of an option that takes JSON, as vLLM's documentation writes it."""
    return json.dumps(value, separators=(",", ":"))
