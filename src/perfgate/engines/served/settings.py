"""Settings on their way to an engine: what none can honour, and defaults that moved, pinned.

A default that moved between releases is spelled out, lest it pass for a regression. At exactly the
document's release nothing is added: the command is the document's.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from perfgate.engines.base import EngineBuild
from perfgate.engines.refusal import Refused
from perfgate.engines.release_tables import ReleaseTables
from perfgate.engines.served.description import Description
from perfgate.scenarios.scenario import EngineSettings, Scenario

# Programs that hold TensorRT-LLM themselves.
OFFLINE = ("trtllm-bench", "trtllm-quickstart", "trtllm-gpqa", "trtllm-eval")


def refused_settings(scenario: Scenario, engine: Description) -> Iterator[Refused]:
    """Settings that no release of the engine honours."""
    for name, instead in engine.foreign.items():
        value = getattr(scenario.engine.settings, name)
        if value is not None:
            expected = f"not to be set with {engine.title}: {instead}"
            yield Refused(f"engine.settings.{name}", value, expected)
    graphs, field = scenario.engine.settings.cuda_graphs, "engine.settings.cuda_graphs"
    if graphs is None:
        return
    sizes = [name for name in ("batch_sizes", "max_batch_size") if getattr(graphs, name)]
    padding = ["padding"] if graphs.padding is not None else []
    if not graphs.enabled and (sizes or padding):
        found = f"enabled: false, with {', '.join(sizes + padding)}"
        yield Refused(field, found, "nothing else where graphs are off")
    if len(sizes) > 1:
        yield Refused(field, " and ".join(sizes), "one of them", "take one away")


def refused_by_one_server(scenario: Scenario, title: str) -> Iterator[Refused]:
    """What of a scenario one server on one machine cannot honour."""
    if scenario.hardware.nodes > 1:
        expected = f"1: {title} is started on one machine"
        yield Refused("hardware.nodes", scenario.hardware.nodes, expected)
    for field, name in askers(scenario):
        if name in OFFLINE:
            yield Refused(field, name, "a client or evaluator that asks a server")


def askers(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The scenario's clients and evaluators, each with its field."""
    yield from (("accuracy", task.evaluator) for task in scenario.accuracy)
    if scenario.workload is not None:
        yield "workload.client", scenario.workload.client
    if scenario.smoke is not None:
        yield "smoke.client", scenario.smoke.client


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
