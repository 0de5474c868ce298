"""Read lm_eval's scores without its samples: from the tables it prints, or from a results file.

For people who only have that. A run of the suite reads results and samples together
(`lm_eval_results`), since answers can be paired with those of a baseline and scores cannot.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from perfgate.clients.report_lines import Line, number
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import accuracy_name, is_accuracy

_COLUMNS = ("version", "filter", "n-shot", "metric", "", "value", "", "stderr")
WORDS = ("n-shot",)


class Row(NamedTuple):
    """One row of such a table, as it is printed; the task's name where the table leaves it blank.

    Attributes:
        task: the task.
        filter_name: what made an answer of the text.
        shots: examples before each question.
        metric: what is told.
        value: the score.
        stderr: its standard error; ``N/A`` or empty: none is told.
        line: where it stands.
    """

    task: str
    filter_name: str
    shots: str
    metric: str
    value: str
    stderr: str
    line: Line


def is_table(lines: Sequence[Line]) -> bool:
    """Whether such a table begins somewhere in these lines."""
    return any(_is_head(_cells(line)) for line in lines)


def is_results(fields: object) -> bool:
    """Whether decoded JSON is a results file of lm_eval."""
    return (
        isinstance(fields, dict) and "results" in fields and bool({"n-shot", "configs"} & {*fields})
    )


def parse(lines: Sequence[Line]) -> Measurement:
    """Read the tables.

    Raises:
        RunError: ``no_metrics`` (no row, or a value that is no fraction) or ``truncated_output``.
    """
    metrics: dict[str, float] = {}
    facts: dict[str, Json] = {"evaluator": "lm_eval"}
    for row in rows(lines):
        evidence = row.line.evidence
        score = _fraction(number(row.value), evidence)
        name = _name(row.task, row.metric, row.filter_name, evidence)
        if metrics.setdefault(name, score) != score:
            raise RunError("no_metrics", f"{name} appears twice", evidence=(evidence,))
        facts[f"stderr:{row.task}:{row.metric}:{row.filter_name}"] = _finite(number(row.stderr))
        facts["fewshot"] = _finite(number(row.shots))
    if not metrics:
        raise RunError("no_metrics", "the table has no rows")
    return Measurement(metrics, facts)


def parse_results(fields: Mapping[str, Any]) -> Measurement:
    """Read a decoded results file.

    Raises:
        RunError: ``no_metrics`` (no score, or one that is no fraction) or ``incomplete`` (it tells
            that questions were left out).
    """
    metrics: dict[str, float] = {}
    facts: dict[str, Json] = {
        "evaluator": "lm_eval",
        "evaluator_version": str(fields.get("lm_eval_version")),
    }
    for task, result in _mapping(fields.get("results")).items():
        for key, value in _mapping(result).items():
            metric, comma, filter_name = str(key).partition(",")
            if not comma or metric.endswith("_stderr"):
                continue
            evidence = f'"{key}": {json.dumps(value)}'
            name = _name(task, metric, filter_name, evidence)
            metrics[name] = _fraction(value, evidence)
            stderr = result.get(f"{metric}_stderr,{filter_name}")
            facts[f"stderr:{task}:{metric}:{filter_name}"] = _finite(stderr)
        counts = _mapping(_mapping(fields.get("n-samples")).get(task))
        if counts:
            facts[f"questions:{task}"] = counts.get("effective")
    if not metrics:
        raise RunError("no_metrics", "the results file has no scores")
    return Measurement(metrics, facts)


def rows(lines: Sequence[Line]) -> Iterator[Row]:
    """The rows below every head.

    Raises:
        RunError: ``truncated_output`` or ``no_metrics``, a row is not whole.
    """
    width, task, inside = 0, "", False
    last = next((line for line in reversed(lines) if line.text), None)
    for line in lines:
        cells = _cells(line)
        if _is_head(cells):
            width, inside = len(cells), True
        elif not line.text.startswith("|"):
            inside = False
        elif inside and not _is_rule(cells):
            if len(cells) != width:
                what = "truncated_output" if line is last else "no_metrics"
                raise RunError(what, "a row of the table is incomplete", evidence=(line.evidence,))
            task = cells[0].lstrip("- ") or task
            _, _, filter_name, shots, metric, _, value, _, stderr = cells
            yield Row(task, filter_name, shots, metric, value, stderr, line)


def _cells(line: Line) -> tuple[str, ...]:
    if not line.text.startswith("|"):
        return ()
    whole = line.text.endswith("|") and len(line.text) > 1
    return tuple(cell.strip() for cell in line.text[1 : -1 if whole else None].split("|"))


def _is_head(cells: tuple[str, ...]) -> bool:
    """Task or group, then the known columns; the columns of arrows and signs have no name."""
    return len(cells) == len(_COLUMNS) + 1 and tuple(x.lower() for x in cells[1:]) == _COLUMNS


def _is_rule(cells: tuple[str, ...]) -> bool:
    return all(set(cell) <= {"-", ":"} for cell in cells)


def _name(task: str, metric: str, filter_name: str, evidence: str) -> str:
    name = accuracy_name(task, metric, filter_name)
    if not is_accuracy(name):
        raise RunError("no_metrics", f"no task, metric and filter: {name}", evidence=(evidence,))
    return name


def _fraction(value: object, evidence: str) -> float:
    if isinstance(value, int | float) and 1 < value <= 100:
        raise RunError(
            "no_metrics",
            f"a score is {value:g}: a percentage, where lm_eval writes fractions up to 1",
            evidence=(evidence,),
            hint="trtllm-eval says in the line above its table that it is one: give the whole log. "
            "Without that line none is read, as of 1 and below nobody can tell whether it is one",
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise RunError("no_metrics", "a score is no fraction above 0", evidence=(evidence,))
    return float(value)


def _finite(value: object) -> Json:
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
