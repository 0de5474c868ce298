"""Pinning: a default that moved between releases is spelled out, lest it pass for a regression.

At exactly the document's release nothing is added: the command is the document's. At any other
release each of them that the scenario leaves open gets the value that was the default then. How
many requests and tokens vLLM takes at once when it is not told depends on the GPU, too, and is
left to it.
"""

from dataclasses import replace

from perfgate.engines.base import EngineBuild
from perfgate.engines.vllm.releases import release, same_release
from perfgate.scenarios.scenario import EngineSettings, Scenario

_PINNED = ("kv_cache_fraction", "kv_cache_reuse", "chunked_context", "overlap_scheduler", "seed")


def pinned(scenario: Scenario, build: EngineBuild) -> EngineSettings:
    """The scenario's settings, with the document's defaults in the place of what it leaves open.

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
