"""Pinning: a default that moved between releases is spelled out, lest it pass for a regression.

At exactly the document's release nothing is added: the command is the document's. At any other
release the overlap scheduler under speculation is as it was then. All other defaults of settings
are the same in every release, the seed among them: a new one at each start; or they are made from
the GPU's memory, the same of one GPU.
"""

from dataclasses import replace

from perfgate.engines.base import EngineBuild
from perfgate.engines.sglang.releases import release, same_release
from perfgate.scenarios.scenario import EngineSettings, Scenario


def pinned(scenario: Scenario, build: EngineBuild) -> EngineSettings:
    """The scenario's settings, with the document's defaults in the place of what it leaves open.

    Args:
        scenario: the scenario; without the document's release there is nothing to pin to.
        build: the release under test.

    Raises:
        InputError: one of the two versions has no release table.
    """
    documented, settings = scenario.source.engine_version, scenario.engine.settings
    speculates = settings.mtp is not None and settings.mtp.layers > 0
    if documented is None or not speculates or settings.overlap_scheduler is not None:
        return settings
    if same_release(documented, build.version):
        return settings
    then = release(documented).overlap_with_speculation
    if then == release(build.version).overlap_with_speculation:
        return settings
    return replace(settings, overlap_scheduler=then)
