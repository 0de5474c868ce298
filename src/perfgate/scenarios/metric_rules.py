"""Rules about metrics: every name in a scenario is known, will be measured, and can gate."""

import difflib
from collections.abc import Iterator

from perfgate.errors import InputError
from perfgate.metrics import METRICS, is_accuracy, lookup
from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.scenario import Expected, Floor, Scenario

# Metrics that only exist where tokens arrive one by one.
_STREAMED = ("ttft_", "tpot_", "itl_", "output_speed_per_user")


def _named_metrics(scenario: Scenario) -> Iterator[tuple[Keys, str]]:
    """Every place that names a metric, with the name."""
    for position, name in enumerate(scenario.gate.metrics):
        yield ("gate", "metrics", position), name
    for name in scenario.gate.bands:
        yield ("gate", "bands", name), name
    for position, documented in enumerate(scenario.expected):
        yield ("expected", position, "metric"), documented.metric
    for position, floor in enumerate(scenario.floors):
        yield ("floors", position, "metric"), floor.metric


def _metrics_are_known(scenario: Scenario) -> Iterator[Problem]:
    for path, name in _named_metrics(scenario):
        try:
            lookup(name)
        except InputError as error:
            close = difflib.get_close_matches(name, METRICS, n=1)
            hint = f"did you mean {close[0]}?" if close else None
            yield Problem(path, error.problem, error.found, error.expected, hint)


def _metrics_are_measured(scenario: Scenario) -> Iterator[Problem]:
    load = scenario.workload
    for path, name in _named_metrics(scenario):
        if name not in METRICS:
            continue
        if load is None:
            yield Problem(path, "metric needs a workload", name, "accuracy metrics only")
        elif not load.streaming and name.startswith(_STREAMED):
            yield Problem(
                path,
                "metric does not exist without streaming",
                name,
                hint="set workload.streaming to true, or leave the metric out",
            )


def _scores_belong_to_a_task(scenario: Scenario) -> Iterator[Problem]:
    tasks = {task.task for task in scenario.accuracy}
    for path, name in _named_metrics(scenario):
        if is_accuracy(name) and name.split(":")[1] not in tasks:
            expected = "accuracy:<task>:… of " + (", ".join(sorted(tasks)) or "a declared task")
            yield Problem(path, "score of a task that is not measured", name, expected)


def _tasks_are_declared_once(scenario: Scenario) -> Iterator[Problem]:
    seen: set[str] = set()
    for position, task in enumerate(scenario.accuracy):
        if task.task in seen:
            yield Problem(("accuracy", position, "task"), "task declared twice", task.task, "once")
        seen.add(task.task)


def _points_are_in_the_sweep(scenario: Scenario) -> Iterator[Problem]:
    sweep = scenario.workload.concurrency if scenario.workload else ()
    sections: dict[str, tuple[Expected | Floor, ...]] = {
        "expected": scenario.expected,
        "floors": scenario.floors,
    }
    for section, values in sections.items():
        for position, value in enumerate(values):
            if value.concurrency is None:
                continue
            path = (section, position, "concurrency")
            if is_accuracy(value.metric):
                yield Problem(path, "a score has no sweep point", hint="take concurrency away")
            elif value.concurrency not in sweep:
                points = ", ".join(map(str, sweep)) or "nothing"
                yield Problem(path, "not a point of the sweep", value.concurrency, points)


def _gate_metrics_can_gate(scenario: Scenario) -> Iterator[Problem]:
    gate = scenario.gate
    for position, name in enumerate(gate.metrics):
        path = ("gate", "metrics", position)
        if name in gate.metrics[:position]:
            yield Problem(path, "metric named twice", name, "once")
        elif name in METRICS and METRICS[name].family.band is None and name not in gate.bands:
            yield Problem(
                path,
                "metric is only reported, unless it gets a band",
                name,
                hint=f"add it to gate.bands, e.g. {name}: 0.25, or take it out",
            )


def _bands_are_of_gate_metrics(scenario: Scenario) -> Iterator[Problem]:
    for name in scenario.gate.bands:
        known = name in METRICS or is_accuracy(name)
        if known and name not in scenario.gate.metrics:
            yield Problem(
                ("gate", "bands", name),
                "band of a metric that does not gate",
                expected="one of " + ", ".join(scenario.gate.metrics),
                hint="add the metric to gate.metrics, or take the band out",
            )


METRIC_RULES = (
    _metrics_are_known,
    _metrics_are_measured,
    _scores_belong_to_a_task,
    _tasks_are_declared_once,
    _points_are_in_the_sweep,
    _gate_metrics_can_gate,
    _bands_are_of_gate_metrics,
)
