"""Pinning: a default that moved between releases is spelled out, lest it pass for a regression.

At exactly the document's release nothing is added: the command is the document's.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from perfgate.engines.base import EngineBuild
from perfgate.engines.release_tables import ReleaseTables
from perfgate.scenarios.scenario import EngineSettings, Scenario


def pinned(
    scenario: Scenario,
    build: EngineBuild,
    tables: ReleaseTables[Any],
    defaults: Callable[[Any], Mapping[str, Any]],
    moved_alone: Collection[str] = (),
) -> EngineSettings:
    """The scenario's settings, with the document's defaults for what the scenario leaves open.

    Args:
        scenario: the scenario; without the document's release there is nothing to pin to.
        build: the release under test.
        tables: of the engine's releases.
        defaults: what a release does where the scenario leaves settings open.
        moved_alone: settings that are written out only where their default moved since.

    Raises:
        InputError: one of the two versions has no release table.
    """
    documented, settings = scenario.source.engine_version, scenario.engine.settings
    if documented is None or tables.same(documented, build.version):
        return settings
    then, now = defaults(tables.release(documented)), defaults(tables.release(build.version))
    left_open = {
        name: value
        for name, value in then.items()
        if getattr(settings, name) is None
        and not (name in moved_alone and value == now.get(name, value))
    }
    return replace(settings, **left_open)
