"""An entry of pytest-benchmark's JSON: one metric of one test. Pure.

Its values are one for each fresh start, in the metric's unit; none is a time that a call took.
"""

from collections.abc import Mapping
from typing import Any

from pytest_benchmark.stats import Stats

from perfgate.core.measured import MeasuredMetric
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Judgement
from perfgate.reports.overview import known
from perfgate.reports.run_report import TestResult

Record = Mapping[str, Any]


def benchmark_entry(
    line: Record,
    measured: MeasuredMetric,
    judgement: Judgement | None,
    *,
    include_data: bool = True,
) -> dict[str, Any]:
    """The entry as plain values.

    Args:
        line: the record of the test's verdict.
        measured: the metric.
        judgement: what the gate says of it; None: it was not judged.
        include_data: whether the values of the single fresh starts are among them.
    """
    stats = Stats()
    for value in measured.values:
        stats.update(value)
    fullname = full_name(line, measured)
    return {
        "group": _group(line, measured),
        "name": fullname.rpartition("::")[2],
        "fullname": fullname,
        "params": None,
        "param": line["test"].partition("[")[2].removesuffix("]"),
        "extra_info": _extra_info(line, measured, judgement),
        "options": {},
        "stats": {
            **stats.as_dict(),
            **({"data": stats.data} if include_data else {}),
            "iterations": 1,
        },
    }


def full_name(line: Record, measured: MeasuredMetric) -> str:
    """The test's id and the metric."""
    return f"{line['test']} {measured.metric}"


def _group(line: Record, measured: MeasuredMetric) -> str:
    """``SCENARIO: METRIC [UNIT], more is better``: the title of a table of pytest-benchmark."""
    metric = known(measured.metric)
    better = {"higher": ", more is better", "lower": ", less is better"}
    side = "" if metric is None else better[metric.direction]
    return f"{line['scenario']}: {measured.metric} [{measured.unit}]{side}"


def as_line(result: TestResult) -> Record:
    """What `benchmark_entry` reads of a record, of a result of a report."""
    return {
        "test": result.test,
        "verdict": result.verdict,
        "synthetic": result.synthetic,
        "resumed_from": result.resumed_from or None,
        "injected": list(result.injected),
        "scenario": result.scenario,
        "probe": result.probe,
        "build": to_plain(result.build),
        "extra_options": result.extra_options,
        "settings": list(result.settings),
        "compared_with": result.compared_with,
    }


def _extra_info(line: Record, measured: MeasuredMetric, judged: Judgement | None) -> dict[str, Any]:
    metric = known(measured.metric)
    return {
        "metric": measured.metric,
        "unit": measured.unit,
        "direction": None if metric is None else metric.direction,
        "value": measured.value,
        "n": measured.n,
        "verdict": line["verdict"],
        "judgement": None
        if judged is None
        else {
            "verdict": judged.verdict.value,
            "baseline": judged.baseline,
            "change": judged.change,
            "interval": judged.interval,
            "band": judged.band,
            "against": judged.against,
        },
        "synthetic": line["synthetic"],
        "resumed_from": line.get("resumed_from"),
        "injected": line["injected"],
        "scenario": line["scenario"],
        "probe": line["probe"],
        "build": line.get("build"),
        "extra_options": line.get("extra_options", ""),
        "settings": line.get("settings", []),
        "compared_with": line["compared_with"],
    }
