"""Defaults of TensorRT-LLM's programs that moved between releases, and settings with them."""

from collections.abc import Iterator
from typing import Any

from perfgate.engines.base import EngineBuild
from perfgate.engines.served import settings
from perfgate.engines.tensorrt_llm.table import TABLES, Release
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Scenario


def pinned(scenario: Scenario, build: EngineBuild, program: str) -> EngineSettings:
    """See `settings.pinned`.

    Args:
        scenario: the scenario.
        build: the release under test.
        program: name of the program that is told, as in the release tables.
    """
    return settings.pinned(
        scenario,
        build,
        TABLES,
        lambda known: dict(_defaults(scenario, program, known)),
        ("moe_backend",),
    )


def _defaults(scenario: Scenario, program: str, known: Release) -> Iterator[tuple[str, Any]]:
    defaults, size = known.defaults.get(program), scenario.engine.settings.max_batch_size
    if defaults is None:
        return
    for name in ("backend", "overlap_scheduler", "chunked_context", "moe_backend"):
        yield name, getattr(defaults, name)
    if known.pdl_variable not in scenario.environment:
        yield "pdl", defaults.pdl
    # What `trtllm-bench` sets depends on the batch size; one that it chooses cannot be told.
    if defaults.cuda_graphs != "padded":
        yield "cuda_graphs", CudaGraphs(enabled=defaults.cuda_graphs == "on")
    elif size is not None:
        yield "cuda_graphs", CudaGraphs(padding=True, max_batch_size=size)
