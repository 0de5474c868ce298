"""What no served engine can honour, whatever its options are called."""

from collections.abc import Iterator, Mapping

from perfgate.engines.refusal import Refused
from perfgate.scenarios.scenario import Scenario

# Programs that hold another engine themselves.
_OF_TENSORRT_LLM = ("trtllm-bench", "trtllm-quickstart", "trtllm-gpqa", "trtllm-eval")


def refusals(scenario: Scenario, title: str, foreign: Mapping[str, str]) -> Iterator[Refused]:
    """What of a scenario one server on one machine cannot honour.

    Args:
        scenario: the scenario.
        title: name of the engine, for people.
        foreign: settings of other engines → what is written instead.
    """
    for name, instead in foreign.items():
        value = getattr(scenario.engine.settings, name)
        if value is not None:
            expected = f"not to be set with {title}: {instead}"
            yield Refused(f"engine.settings.{name}", value, expected)
    yield from _graph_sizes_are_given_once(scenario)
    if scenario.hardware.nodes > 1:
        expected = f"1: {title} is started on one machine"
        yield Refused("hardware.nodes", scenario.hardware.nodes, expected)
    yield from _programs_ask_a_server(scenario)


def _graph_sizes_are_given_once(scenario: Scenario) -> Iterator[Refused]:
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


def _programs_ask_a_server(scenario: Scenario) -> Iterator[Refused]:
    named = [("accuracy", task.evaluator) for task in scenario.accuracy]
    if scenario.workload is not None:
        named.append(("workload.client", scenario.workload.client))
    if scenario.smoke is not None:
        named.append(("smoke.client", scenario.smoke.client))
    for field, name in named:
        if name in _OF_TENSORRT_LLM:
            yield Refused(field, name, "a client or evaluator that asks a server")
