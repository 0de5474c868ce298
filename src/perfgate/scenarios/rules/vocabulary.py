"""Vocabulary: what scenarios may name of what rooms above this one register, and engines' rules.

A scenario is refused where it is loaded if it names an engine, client or evaluator that is not
registered by then, or gives one of them a word that it does not know in any release.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from perfgate.core.errors import did_you_mean
from perfgate.core.metrics import is_accuracy
from perfgate.scenarios.rules.metric_rules import named_metrics
from perfgate.scenarios.rules.scenario_rules import Rule
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import Keys, Problem

Words = Mapping[str, Collection[str]]

_REGISTERED = ("engine", "client", "evaluator")
_BY = "`--import MODULE`, or pytest_plugins in conftest.py"


@dataclass(frozen=True)
class Vocabulary:
    """What is registered.

    Attributes:
        engines: engine → its settings whose value is one of a few words → those of any release.
        clients: what can be a load's client.
        smoke_clients: what can ask for a first answer.
        evaluators: evaluator → its tasks whose scores are known → their ``<metric>:<filter>``.
        refused_extras: engine → which of a scenario's extra options it is not given.
        rules: of the engines' documents.
    """

    engines: Mapping[str, Words]
    clients: Collection[str]
    smoke_clients: Collection[str]
    evaluators: Mapping[str, Words]
    refused_extras: Mapping[str, Rule] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()


def unknown_names(scenario: Scenario, known: Vocabulary) -> Iterator[Problem]:
    """Each name in the scenario that the vocabulary lacks; paths from the scenario down."""
    engine, load, smoke = scenario.engine, scenario.workload, scenario.smoke
    yield from _unknown(("engine", "name"), engine.name, "engine", known.engines)
    for setting, words in known.engines.get(engine.name, {}).items():
        value = getattr(engine.settings, setting)
        if value is not None:
            yield from _unknown(("engine", "settings", setting), value, setting, words)
    if engine.name in known.refused_extras:
        yield from known.refused_extras[engine.name](scenario)
    if load is not None:
        yield from _unknown(("workload", "client"), load.client, "client", known.clients)
    if smoke is not None:
        yield from _unknown(("smoke", "client"), smoke.client, "client", known.smoke_clients)
    for position, task in enumerate(scenario.accuracy):
        path = ("accuracy", position, "evaluator")
        yield from _unknown(path, task.evaluator, "evaluator", known.evaluators)
    yield from _unknown_scores(scenario, known)


def _unknown_scores(scenario: Scenario, known: Vocabulary) -> Iterator[Problem]:
    """Scores whose metric or filter the task does not have, where its scores are known."""
    scores: dict[str, list[str]] = {}
    for task in scenario.accuracy:
        told = known.evaluators.get(task.evaluator, {}).get(task.task)
        if told is not None:
            scores[task.task] = [f"accuracy:{task.task}:{score}" for score in sorted(told)]
    for path, name in named_metrics(scenario):
        task_name = name.split(":")[1] if is_accuracy(name) else None
        if task_name in scores:
            yield from _unknown(path, name, f"metric or filter of {task_name}", scores[task_name])


def _unknown(path: Keys, name: str, kind: str, known: Collection[str]) -> Iterator[Problem]:
    if name not in known:
        expected = "one of " + ", ".join(sorted(known))
        hint = did_you_mean(name, known)
        if kind in _REGISTERED:
            hint = hint or f"import the module that registers your own {kind}: {_BY}"
        yield Problem(path, f"unknown {kind}", name, expected, hint)
