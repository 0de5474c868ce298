"""Pinning: a default that moved between releases is spelled out, lest it pass for a regression.

At exactly the document's release nothing is added: the command is the document's. At any other
release each of them that the scenario leaves open gets the value that was the default then.
"""

from dataclasses import replace

from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.table import TABLES, Defaults, release
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Scenario


def pinned(scenario: Scenario, build: EngineBuild, program: str) -> EngineSettings:
    """The scenario's settings, with the document's defaults in the place of what it leaves open.

    Args:
        scenario: the scenario; without the document's release there is nothing to pin to.
        build: the release under test.
        program: name of the program that is told, as in the release tables.

    Raises:
        InputError: one of the two versions has no release table.
    """
    documented = scenario.source.engine_version
    settings = scenario.engine.settings
    if documented is None or TABLES.same(documented, build.version):
        return settings
    defaults = release(documented).defaults.get(program)
    if defaults is None:
        return settings
    filled = _filled(settings, defaults, scenario)
    now = release(build.version).defaults.get(program)
    if filled.moe_backend is None and now and now.moe_backend != defaults.moe_backend:
        return replace(filled, moe_backend=defaults.moe_backend)
    return filled


def _filled(settings: EngineSettings, defaults: Defaults, scenario: Scenario) -> EngineSettings:
    variable = release(scenario.source.engine_version or "").pdl_variable
    told = variable in scenario.environment

    def kept(value: bool | None, default: bool) -> bool:
        return default if value is None else value

    return replace(
        settings,
        backend=settings.backend or defaults.backend,
        overlap_scheduler=kept(settings.overlap_scheduler, defaults.overlap_scheduler),
        cuda_graphs=settings.cuda_graphs or _graphs(settings, defaults),
        chunked_context=kept(settings.chunked_context, defaults.chunked_context),
        pdl=settings.pdl if told else kept(settings.pdl, defaults.pdl),
    )


def _graphs(settings: EngineSettings, defaults: Defaults) -> CudaGraphs | None:
    """What `trtllm-bench` sets depends on the batch size; one that it chooses cannot be told."""
    if defaults.cuda_graphs == "off":
        return CudaGraphs(enabled=False)
    if defaults.cuda_graphs == "on":
        return CudaGraphs()
    if settings.max_batch_size is None:
        return None
    return CudaGraphs(padding=True, max_batch_size=settings.max_batch_size)
