"""Rules about metrics: every name in a scenario is known, will be measured, and can gate."""

from collections.abc import Iterator

from perfgate.core.errors import InputError, did_you_mean
from perfgate.core.metrics import METRICS, is_accuracy, lookup
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import Keys, Problem

# Metrics that only exist where tokens arrive one by one.
_STREAMED = ("ttft_", "tpot_", "itl_", "output_speed_per_user")


def unknown_metric(path: Keys, name: str) -> Problem | None:
    """What is wrong with `name` as a metric's name; None: nothing."""
    try:
        lookup(name)
    except InputError as error:
        hint = did_you_mean(name, METRICS)
        return Problem(path, error.problem, error.found, error.expected, hint)
    return None


def unmeasured_metric(scenario: Scenario, path: Keys, name: str) -> Problem | None:
    """Why the scenario does not give the known metric `name`; None: it does."""
    load = scenario.workload
    if is_accuracy(name):
        tasks = {task.task for task in scenario.accuracy}
        if name.split(":")[1] in tasks:
            return None
        expected = "accuracy:<task>:… of " + (", ".join(sorted(tasks)) or "a declared task")
        return Problem(path, "score of a task that is not measured", name, expected)
    if load is None:
        return Problem(path, "metric needs a workload", name, "accuracy metrics only")
    if not load.streaming and name.startswith(_STREAMED):
        hint = "set workload.streaming to true, or leave the metric out"
        return Problem(path, "metric does not exist without streaming", name, hint=hint)
    return None


def misplaced_point(
    scenario: Scenario, path: Keys, metric: str, concurrency: int | None, missing: str = ""
) -> Problem | None:
    """What is wrong with a value of `metric` at that sweep point (None: no point is named).

    `missing`: what is expected before the points where a sweep of several must have one named;
    empty: none must.
    """
    sweep = scenario.workload.concurrency if scenario.workload else ()
    points = ", ".join(map(str, sweep)) or "nothing"
    if concurrency is None:
        if not missing or is_accuracy(metric) or len(sweep) < 2:
            return None
        return Problem(path, "missing", expected=f"{missing} {points}")
    if is_accuracy(metric):
        return Problem(path, "a score has no sweep point", hint="remove concurrency")
    if concurrency in sweep:
        return None
    return Problem(path, "not a point of the sweep", concurrency, points)


def named_metrics(scenario: Scenario) -> Iterator[tuple[Keys, str]]:
    """Every place that names a metric, with the name."""
    for position, name in enumerate(scenario.gate.metrics):
        yield ("gate", "metrics", position), name
    for name in scenario.gate.bands:
        yield ("gate", "bands", name), name
    for position, floor in enumerate(scenario.floors):
        yield ("floors", position, "metric"), floor.metric


def metric_rules(scenario: Scenario) -> Iterator[Problem]:
    """All that is wrong with the metrics, the tasks and the points that a scenario names."""
    for path, name in named_metrics(scenario):
        if problem := unknown_metric(path, name) or unmeasured_metric(scenario, path, name):
            yield problem
    seen: set[str] = set()
    for position, task in enumerate(scenario.accuracy):
        if task.task in seen:
            yield Problem(("accuracy", position, "task"), "task declared twice", task.task, "once")
        seen.add(task.task)
    for position, floor in enumerate(scenario.floors):
        at = ("floors", position, "concurrency")
        if problem := misplaced_point(scenario, at, floor.metric, floor.concurrency):
            yield problem
    yield from _gate_metrics_can_gate(scenario)


def _gate_metrics_can_gate(scenario: Scenario) -> Iterator[Problem]:
    """A first answer alone has no metric; a load or an evaluation without one judges nothing."""
    gate = scenario.gate
    if not gate.metrics and (scenario.workload or scenario.accuracy):
        expected = "at least one metric; only a scenario with nothing but smoke has none"
        yield Problem(("gate", "metrics"), "nothing gates", "an empty list", expected)
    for position, name in enumerate(gate.metrics):
        path = ("gate", "metrics", position)
        if name in gate.metrics[:position]:
            yield Problem(path, "metric named twice", name, "once")
        elif name in METRICS and METRICS[name].family.band is None and name not in gate.bands:
            hint = f"add it to gate.bands, e.g. {name}: 0.25, or remove it"
            yield Problem(path, "metric is only reported, unless it gets a band", name, hint=hint)
    for name in gate.bands:
        if (name in METRICS or is_accuracy(name)) and name not in gate.metrics:
            at, expected = ("gate", "bands", name), "one of " + ", ".join(gate.metrics)
            hint = "add the metric to gate.metrics, or remove the band"
            yield Problem(at, "band of a metric that does not gate", None, expected, hint)
