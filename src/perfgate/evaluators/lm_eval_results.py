"""Read what lm_eval left behind: scores, and for every question whether it was answered right.

A run of the suite reads results and samples together (`parse`), since answers can be paired with
those of a baseline and scores cannot. For people who only have them, scores are also read from the
tables that it prints (`parse_tables`), or from a results file alone (`parse_results`).
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perfgate.clients.logs import Line, decoded, left, require
from perfgate.clients.report_tables import number
from perfgate.core.errors import RunError
from perfgate.core.files.json_text import LARGEST_LINE
from perfgate.core.files.remembered import toml_beside
from perfgate.core.files.untrusted_files import open_regular
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import accuracy_name, is_accuracy
from perfgate.core.programs import raw_log
from perfgate.core.redaction import redact
from perfgate.scenarios.scenario import AccuracyTask

WORDS = ("n-shot",)
_COLUMNS = ("version", "filter", "n-shot", "metric", "", "value", "", "stderr")
_HASH_DIGITS = 16  # 64 bits of each of lm_eval's SHA-256; two questions of one key are refused
_MOST_QUESTIONS = 1_000_000  # of one task; MMLU has 14,042
_ENDS = toml_beside(__file__, "lm_eval_causes")
_CAUSES = [(re.compile(one["pattern"]), one["failure"], one["next_step"]) for one in _ENDS["cause"]]
_CAUSE_WORDS: tuple[str, ...] = tuple(_ENDS["words"])


def diagnose(log: Iterable[str]) -> RunError | None:
    """The first cause that the log of a failed evaluation shows; None if no line tells."""
    for line in log:
        for pattern, failure, hint in _CAUSES:
            if found := pattern.search(line):
                # Progress bars are written over: what counts is around the match.
                shown = redact(line)  # before it is cut: half a secret is not recognised
                place = max(0, shown.find(found[0]))
                around = shown[max(0, place - 120) : place + len(found[0]) + 120].strip()
                return RunError(failure, "lm_eval failed", evidence=(around,), hint=hint)
    return None


def parse(task: AccuracyTask, folder: Path) -> Measurement:
    """Read the results of `task` in `folder`.

    Raises:
        RunError: they are missing, cut, incomplete, or the score is not that of the answers.
    """
    file = _only(folder, "results_*.json")
    report = _object(left(file), "the results file")
    scores = _scores(report, task)
    sample_file = _only(folder, f"samples_{task.task}_*.jsonl")
    count = _require_asked(report, task)
    samples = _samples(sample_file, {one.metric for one in scores}, count * len(scores))
    metrics, answers = {}, {}
    facts: dict[str, Json] = {
        "evaluator": "lm_eval",
        "evaluator_version": str(report.get("lm_eval_version")),
        "task_version": str(_object(report.get("versions"), "versions").get(task.task)),
        "questions": count,
        "fewshot": task.fewshot,
    }
    for _, metric, filter_name, score, stderr, *_ in scores:
        name = accuracy_name(task.task, metric, filter_name)
        rows = [row for row in samples if row.get("filter") == filter_name]
        answers[name] = answered(rows, metric, name, score, count)
        metrics[name] = float(score)
        facts[f"stderr:{metric}:{filter_name}"] = _finite(stderr)
        invalid = sum(row.get("filtered_resps") == ["[invalid]"] for row in rows)
        facts[f"invalid_share:{filter_name}"] = invalid / count
    return Measurement(metrics, facts, answers)


class Score(NamedTuple):
    """One score: of a results file, or a row of a table, as text; a blank task is that above.

    Attributes:
        task: the task.
        metric: what is told.
        filter_name: what made an answer of the text.
        value: the score.
        stderr: its standard error; ``N/A`` or empty: none is told.
        evidence: where it stands.
        shots: examples before each question, where they stand beside it.
    """

    task: str
    metric: str
    filter_name: str
    value: Any
    stderr: Any
    evidence: str
    shots: str = ""


def _only(folder: Path, pattern: str) -> Path:
    """The one file of that name; lm_eval puts it into a folder named after the model."""
    found = sorted(folder.glob(f"*/{pattern}"))
    names = [str(path.relative_to(folder)) for path in found]
    require(len(found) < 2, "no_metrics", f"{len(found)} files are {pattern}", *names[:4])
    if found:
        return found[0]
    for log in sorted(folder.glob("*.err")):
        if cause := diagnose(line for _, line in raw_log.lines_with(log, _CAUSE_WORDS)):
            raise cause
    raise RunError("no_metrics", f"lm_eval left no {pattern}")


def _samples(path: Path, metrics: Collection[str], most: int) -> list[dict[str, Any]]:
    """What is used of each sample; prompts and answers would fill the memory."""
    used = {"filter", "filtered_resps", "doc_hash", "target_hash", *metrics}
    samples: list[dict[str, Any]] = []
    with open_regular(path) as file:
        while line := file.readline(LARGEST_LINE + 1):
            name = f"{path.name} line {len(samples) + 1}"
            if len(line) <= LARGEST_LINE and not line.endswith(b"\n"):
                raise RunError("truncated_output", f"{path.name} is truncated within a line")
            require(len(samples) < most, "incomplete", f"{path.name} has more than {most} answers")
            sample = _object(decoded(line, name, limit=LARGEST_LINE), name)
            samples.append({key: value for key, value in sample.items() if key in used})
    require(samples, "truncated_output", f"{path.name} is empty")
    return samples


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RunError("no_metrics", f"{what} is {type(value).__name__}, not an object")
    return value


def _scores(report: dict[str, Any], task: AccuracyTask) -> list[Score]:
    """Everything that is reported of a task with a score."""
    results = _object(report.get("results"), "results")
    require(task.task in results, "no_metrics", f"no result of {task.task}", *[*results][:5])
    result = _object(results[task.task], task.task)
    found = [*_reported(task.task, result)]
    for _, metric, filter_name, value, *_ in found:
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            score = f"{metric},{filter_name} of {task.task}"
            raise RunError("incomplete", f"{score} is {value}, not a fraction")
    require(found, "no_metrics", f"no score of {task.task}", *[*result][:5])
    return found


def _reported(task: str, result: Mapping[str, Any]) -> Iterator[Score]:
    """Each score in a task's results."""
    for key, value in result.items():
        metric, comma, name = key.partition(",")
        if comma and not metric.endswith("_stderr"):
            stderr = result.get(f"{metric}_stderr,{name}")
            yield Score(task, metric, name, value, stderr, f'"{key}": {json.dumps(value)}')


def _require_asked(report: dict[str, Any], task: AccuracyTask) -> int:
    """How many questions were asked, once all that the report shows is as it should be."""
    counts = _object(_object(report.get("n-samples"), "n-samples").get(task.task), "n-samples")
    done, size = counts.get("effective"), counts.get("original")
    if not isinstance(done, int) or not isinstance(size, int) or not 1 <= done <= _MOST_QUESTIONS:
        raise RunError("no_metrics", f"n-samples of {task.task} is {counts}")
    asked = size if task.limit is None else min(task.limit, size)
    require(done == asked, "incomplete", f"{done} of {asked} questions were answered")
    fewshot = _object(report.get("n-shot"), "n-shot").get(task.task)
    message = f"{fewshot} examples were shown, not {task.fewshot}"
    require(fewshot == task.fewshot, "incomplete", message)
    config = _object(report.get("config"), "config")
    sampling = _object(config.get("gen_kwargs"), "gen_kwargs")
    wanted = {"temperature": task.temperature, **task.extra_body}
    if task.add_special_tokens is not None:
        wanted["add_special_tokens"] = task.add_special_tokens
    for name, value in wanted.items():
        given = sampling.get(name)
        require(given == value, "incomplete", f"{name} was {given}, not {value}")
    return done


def answered(
    rows: list[dict[str, Any]], metric: str, name: str, score: float, count: int, off: float = 1e-6
) -> dict[str, bool]:
    """Question key → answered right; the key stays the same as long as the question does.

    A key is the first 16 digits of lm_eval's ``doc_hash`` and ``target_hash``, joined by a colon.

    Args:
        rows: samples of one filter, as lm_eval logs them.
        metric: what is read of each.
        name: the score's name, for messages.
        score: as it is reported.
        count: how many there must be.
        off: how far the score may be off the mean of the answers.

    Raises:
        RunError: ``no_metrics`` (neither right nor wrong, or twice, or the score is not that of
            the answers), ``incomplete``.
    """
    found: dict[str, bool] = {}
    for row in rows:
        value = row.get(metric)
        scored = f"{name}: an answer scored {value}, not 0 or 1"
        require(value in (0, 1), "no_metrics", scored)
        key = ":".join(str(row.get(name))[:_HASH_DIGITS] for name in ("doc_hash", "target_hash"))
        twice = f"{name}: one question appears twice, {key[:12]}…"
        require(key not in found, "no_metrics", twice)
        found[key] = value == 1
    logged = f"{name}: {len(found)} of {count} answers were logged"
    require(len(found) == count, "incomplete", logged)
    mean = sum(found.values()) / count
    if not math.isclose(mean, score, rel_tol=0, abs_tol=off):
        message = f"{name} is reported as {score:g}, but the logged answers give {mean:g}"
        hint = "check for files of another run in the folder"
        raise RunError("no_metrics", message, hint=hint)
    return found


def is_table(lines: Sequence[Line]) -> bool:
    """Whether such a table begins somewhere in these lines."""
    return any(_is_head(_cells(line)) for line in lines)


def is_results(fields: object) -> bool:
    """Whether decoded JSON is a results file of lm_eval."""
    known = _mapping(fields).keys()
    return "results" in known and bool(known & {"n-shot", "configs"})


def parse_tables(lines: Sequence[Line]) -> Measurement:
    """Read the tables.

    Raises:
        RunError: ``no_metrics`` (no row, or a value that is no fraction) or ``truncated_output``.
    """
    facts: dict[str, Json] = {"evaluator": "lm_eval"}
    scores: list[Score] = []
    for row in rows(lines):
        scores.append(row._replace(value=number(row.value), stderr=number(row.stderr)))
        facts["fewshot"] = _finite(number(row.shots))
    return _lone(scores, facts, "the table has no rows")


def parse_results(fields: Mapping[str, Any]) -> Measurement:
    """Read a decoded results file.

    Raises:
        RunError: ``no_metrics`` (no score, or one that is no fraction) or ``incomplete`` (it tells
            that questions were left out).
    """
    version = str(fields.get("lm_eval_version"))
    facts: dict[str, Json] = {"evaluator": "lm_eval", "evaluator_version": version}
    scores: list[Score] = []
    for task, result in _mapping(fields.get("results")).items():
        scores += _reported(task, _mapping(result))
        counts = _mapping(_mapping(fields.get("n-samples")).get(task))
        if counts:
            facts[f"questions:{task}"] = counts.get("effective")
    return _lone(scores, facts, "the results file has no scores")


def _lone(scores: Iterable[Score], facts: dict[str, Json], none: str) -> Measurement:
    """Scores without samples."""
    metrics: dict[str, float] = {}
    for task, metric, filter_name, value, stderr, evidence, _ in scores:
        score, name = _fraction(value, evidence), accuracy_name(task, metric, filter_name)
        require(is_accuracy(name), "no_metrics", f"no task, metric and filter: {name}", evidence)
        if metrics.setdefault(name, score) != score:
            raise RunError("no_metrics", f"{name} appears twice", evidence=(evidence,))
        facts[f"stderr:{task}:{metric}:{filter_name}"] = _finite(stderr)
    require(metrics, "no_metrics", none)
    return Measurement(metrics, facts)


def rows(lines: Sequence[Line]) -> Iterator[Score]:
    """The rows of tables, below every head.

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
            what = "truncated_output" if line is last else "no_metrics"
            require(len(cells) == width, what, "a row of the table is incomplete", line.evidence)
            task = cells[0].lstrip("- ") or task
            _, _, filter_name, shots, metric, _, value, _, stderr = cells
            yield Score(task, metric, filter_name, value, stderr, line.evidence, shots)


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
