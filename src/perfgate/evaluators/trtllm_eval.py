"""TensorRT-LLM's own evaluators, on the model inside one process: trtllm-eval for GPQA diamond,
GSM8K and MMLU, and before it gpqa_llmapi.py for GPQA diamond alone.

How they are called depends on the release: `perfgate.engines.tensorrt_llm`. trtllm-eval's scores
are percent, from 0 to 100; they become fractions here. It prints a table of lm_eval below a line
that says so, or one line for MMLU; newer releases also leave ``samples_<task>.json``. What it
prints as "average accuracy" is the mean over the filters of one task, and is not read.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.clients import datasets
from perfgate.clients.base import Offline
from perfgate.clients.logs import Line, last_line, left, logged, no_report, printed, require
from perfgate.clients.report_tables import number, positive
from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import accuracy_name
from perfgate.core.programs.command import Step
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import TENSORRT_LLM_PYTHON
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm import checkout, programs
from perfgate.evaluators.base import evaluator
from perfgate.evaluators.lm_eval_results import answered, rows
from perfgate.scenarios.scenario import AccuracyTask, Scenario

EVALUATOR = "trtllm-eval"
SCORES: Mapping[str, frozenset[str]] = {
    "gpqa_diamond": frozenset({"exact_match:strict-match"}),
    "gsm8k": frozenset({"exact_match:strict-match", "exact_match:flexible-extract"}),
    "mmlu": frozenset({"accuracy:none"}),
}
# The tasks' names in lm_eval, where the command line has others (tensorrt_llm/evaluate/lm_eval.py).
_LM_EVAL_NAMES = {"gpqa_diamond": "gpqa_diamond_cot_zeroshot_aa"}
_NAMES = {lm_eval: name for name, lm_eval in _LM_EVAL_NAMES.items()}
_HEAD = re.compile(r"lm-eval (?P<task>\S+) results \(scores normalized to range 0~100\):")
_MMLU = re.compile(r"MMLU weighted average accuracy: (?P<value>\S+) \((?P<questions>\d{1,9})\)")
_SECONDS = re.compile(r"TRTLLM execution time: (?P<seconds>[\d.]+) seconds\.")
WORDS = ("scores normalized", "n-shot", "mmlu weighted average")
_DIGIT = 0.00005  # half of the last digit of a value in the table, in percent
_VERSION_WITHIN_S = 60


@evaluator(EVALUATOR)
class TrtllmEval(Offline):
    """The tasks that TensorRT-LLM evaluates by itself, from 0.20 on."""

    @classmethod
    def scores(cls) -> Mapping[str, frozenset[str]]:
        """See `MeasuringProgram.scores`."""
        return SCORES

    def require(self, locations: Locations) -> None:
        """See `MeasuringProgram.require`.

        Raises:
            MissingProgram: lm_eval is not beside it, which it would tell after the weights are
                loaded.
        """
        if not locations.on_paper:
            code = "from importlib.metadata import version; print(version('lm_eval'))"
            argv = (*locations.find(TENSORRT_LLM_PYTHON), "-c", code)
            answer = locations.ask(argv, _VERSION_WITHIN_S, of_engine=True)
            if not answer.is_good:
                raise MissingProgram(
                    f"trtllm-eval lacks lm_eval: {answer.trouble}",
                    hint="install the lm_eval that TensorRT-LLM's requirements-dev.txt names into "
                    "its environment",
                )

    def steps(
        self, scenario: Scenario, build: EngineBuild, what: AccuracyTask, locations: Locations
    ) -> tuple[Step, ...]:
        """See `Offline.steps`."""
        folder = datasets.of_trtllm_eval(what.task, locations)
        questions = None if folder is None else str(folder)
        command = programs.evaluate(scenario, build, what, questions, locations)
        return (Step("evaluator", command, probe=what.task),)

    def parse(self, what: AccuracyTask, folder: Path) -> Measurement:
        """See `Offline.parse`."""
        return of_task(what, printed(self.name, folder, "benchmark", WORDS, is_report), folder)


def is_report(lines: Sequence[Line]) -> bool:
    """Whether its scores begin somewhere in these lines."""
    return any(_HEAD.search(line.text) or _MMLU.search(line.text) for line in lines)


def of_task(task: AccuracyTask, lines: Sequence[Line], folder: Path) -> Measurement:
    """What a finished evaluation of `task` left in its log and in `folder`.

    Raises:
        RunError: ``truncated_output``, ``no_metrics`` (no score, or not one of this task),
            ``incomplete`` (not all questions that were asked).
    """
    measured = parse(lines)
    its = programs.TASKS[task.task]
    asked = its.questions if task.limit is None else min(task.limit, its.questions)
    wanted = {accuracy_name(task.task, *score.split(":")) for score in SCORES[task.task]}
    message = f"the scores printed are not those of {task.task}"
    scores = sorted(measured.metrics) or ["none"]
    require(set(measured.metrics) == wanted, "no_metrics", message, *scores)
    questions = measured.facts.get(f"questions:{task.task}")
    if questions not in (asked, None):
        raise RunError("incomplete", f"{questions} of {asked} questions were answered")
    shots = measured.facts.get("fewshot", task.fewshot)
    if shots != task.fewshot:
        raise RunError("incomplete", f"{shots} examples were shown, not {task.fewshot}")
    facts = {key: value for key, value in measured.facts.items() if ":" not in key}
    facts |= {"questions": asked, "fewshot": task.fewshot}
    for name, score in measured.metrics.items():
        metric, filter_name = name.split(":")[2:]
        if metric == "exact_match":  # a share of right answers, printed to four digits
            _require_count(name, score, asked)
        facts[f"stderr:{metric}:{filter_name}"] = math.sqrt(score * (1 - score) / asked)
    samples = folder / f"samples_{_LM_EVAL_NAMES.get(task.task, task.task)}.json"
    answers = _answers(task, left(samples), measured.metrics, asked) if samples.exists() else {}
    return Measurement(measured.metrics, facts, answers)


def parse(lines: Sequence[Line]) -> Measurement:
    """The scores that are printed, as fractions; whatever task they are of.

    Raises:
        RunError: ``truncated_output`` or ``no_metrics``.
    """
    metrics: dict[str, float] = {}
    facts: dict[str, Json] = {"evaluator": EVALUATOR}
    for name, score, evidence, about in _scores(lines):
        if metrics.setdefault(name, score) != score:
            raise RunError("no_metrics", f"{name} appears twice", evidence=(evidence,))
        facts |= about
    for line in lines:
        if seconds := _SECONDS.search(line.text):
            facts["duration_s"] = number(seconds["seconds"])
    last = next((line.text for line in reversed(lines) if line.text), "")
    is_cut = _HEAD.search(last) or last.startswith("|")
    failure = "truncated_output" if is_cut else "no_metrics"
    message = "no score below the line that announces them"
    require(metrics, failure, message, *last_line(tuple(lines)))
    return Measurement(metrics, facts)


def _scores(lines: Sequence[Line]) -> Iterator[tuple[str, float, str, dict[str, Json]]]:
    """Metric, fraction, the line that says it, as evidence, and facts about it.

    In tables: the rows below each line that says that they are percent.
    """
    heads = [(at, head) for at, line in enumerate(lines) if (head := _HEAD.search(line.text))]
    ends = [*(at for at, _ in heads[1:]), len(lines)]
    for (at, head), end in zip(heads, ends, strict=False):
        task = _NAMES.get(head["task"], head["task"])
        for row in rows(lines[at + 1 : end]):
            message = f"the table below {head['task']} is of {row.task}"
            require(row.task == head["task"], "no_metrics", message, row.evidence)
            score = _fraction(row.value, row.evidence)
            facts: dict[str, Json] = {"fewshot": int(row.shots)} if row.shots.isdecimal() else {}
            error = number(row.stderr)
            if error is not None and 0 < error < float("inf"):
                facts[f"stderr:{task}:{row.metric}:{row.filter_name}"] = round(error / 100, 6)
                # A mean of zeros and ones has the standard error √(p(1-p)/(n-1)), which tells n.
                facts[f"questions:{task}"] = round(score * (1 - score) / (error / 100) ** 2) + 1
            yield accuracy_name(task, row.metric, row.filter_name), score, row.evidence, facts
    for line in lines:
        if told := _MMLU.search(line.text):
            facts = {"questions:mmlu": int(told["questions"])}
            name = accuracy_name("mmlu", "accuracy", "none")
            yield name, _fraction(told["value"], line.evidence), line.evidence, facts


def _fraction(value: str, evidence: str) -> float:
    percent = positive(value, evidence)
    require(percent <= 100, "no_metrics", f"a score of {percent:g} percent", evidence)
    return round(percent / 100, 6)  # four digits are printed at most


def _require_count(name: str, score: float, asked: int) -> None:
    """Refuse a score that no number of right answers gives: other questions were asked."""
    right = score * asked
    if abs(right - round(right)) > asked * _DIGIT / 100 + 1e-9:
        message = f"{name} is {score:.6g}, which is no whole number of {asked} answers"
        raise RunError("incomplete", message)


def _answers(
    task: AccuracyTask, document: Any, metrics: Mapping[str, float], asked: int
) -> dict[str, dict[str, bool]]:
    """Metric → question → answered right, from the file that newer releases leave."""
    samples = document.get("samples") if isinstance(document, dict) else None
    of_task = samples.get(_LM_EVAL_NAMES.get(task.task, task.task)) if samples else None
    if not isinstance(of_task, list) or not all(isinstance(row, dict) for row in of_task):
        raise RunError("no_metrics", f"the file of samples has none of {task.task}")
    found: dict[str, dict[str, bool]] = {}
    for name, score in metrics.items():
        metric, filter_name = name.split(":")[2:]
        of_filter = [row for row in of_task if row.get("filter") == filter_name]
        found[name] = answered(of_filter, metric, name, score, asked, off=2 * _DIGIT / 100)
    return found


# gpqa_llmapi.py: "Finished in 123.456 seconds", "Average accuracy: 0.683", and on standard error
# a bar of the questions done; the answers themselves it keeps to itself.
GPQA = "trtllm-gpqa"
GPQA_TASK = "gpqa_diamond"
GPQA_METRIC = accuracy_name(GPQA_TASK, "accuracy", "none")
_ACCURACY = re.compile(r"Average accuracy:\s*(?P<value>.*)")
_FINISHED = re.compile(r"Finished in (?P<seconds>[\d.]+) seconds")
_BAR = "Processing requests:"
_DONE = re.compile(r"\|\s*(?P<done>\d{1,9})/(?P<all>\d{1,9}) \[")
GPQA_WORDS = ("average accuracy:", _BAR.lower())


@evaluator(GPQA)
class TrtllmGpqa(Offline):
    """All 198 questions of GPQA diamond, as TensorRT-LLM's own CI asks them."""

    @classmethod
    def scores(cls) -> Mapping[str, frozenset[str]]:
        """See `MeasuringProgram.scores`."""
        return {GPQA_TASK: frozenset({"accuracy:none"})}

    def steps(
        self, scenario: Scenario, build: EngineBuild, what: AccuracyTask, locations: Locations
    ) -> tuple[Step, ...]:
        """See `Offline.steps`."""
        questions = str(datasets.gpqa_diamond(locations))
        command = checkout.gpqa(scenario, build, what, questions, locations)
        return (Step("evaluator", command, probe=what.task),)

    def parse(self, what: AccuracyTask, folder: Path) -> Measurement:
        """See `Offline.parse`."""
        lines = tuple(line for log in logged(folder, "benchmark", GPQA_WORDS) for line in log)
        if not is_gpqa_report(lines):
            raise no_report(GPQA, folder, "benchmark")
        return parse_gpqa(lines, what.limit or checkout.GPQA_QUESTIONS)


def is_gpqa_report(lines: tuple[Line, ...]) -> bool:
    """Whether the accuracy is in these lines."""
    return any(_ACCURACY.fullmatch(line.text) for line in lines)


def parse_gpqa(lines: tuple[Line, ...], asked: int = checkout.GPQA_QUESTIONS) -> Measurement:
    """Read the accuracy.

    Args:
        lines: what the program printed.
        asked: how many questions were to be asked.

    Raises:
        RunError: ``no_metrics`` (no number, or not a share), ``incomplete``
            (not all questions were answered).
    """
    found = [(match["value"], line) for line in lines if (match := _ACCURACY.fullmatch(line.text))]
    require(len(found) == 1, "no_metrics", f"{len(found)} accuracies were printed, not one")
    text, line = found[0]
    score = positive(text, line.evidence)
    _require_all(lines, asked)
    require(score <= 1, "no_metrics", f"an accuracy of {score:g}", line.evidence)
    error = math.sqrt(score * (1 - score) / asked)
    facts: dict[str, Json] = {"evaluator": GPQA, "questions": asked, "stderr:accuracy:none": error}
    seconds = next((m["seconds"] for ln in lines if (m := _FINISHED.fullmatch(ln.text))), None)
    facts |= {} if seconds is None else {"duration_s": number(seconds)}
    return Measurement({GPQA_METRIC: score}, facts)


def _require_all(lines: tuple[Line, ...], asked: int) -> None:
    """All questions were answered, unless the last state of the bar says otherwise."""
    bars = [
        (match, line)
        for line in lines
        if (match := _DONE.search(line.text.rpartition(_BAR)[2])) and _BAR in line.text
    ]
    for bar, line in bars[-1:]:
        is_whole = int(bar["done"]) == asked == int(bar["all"])
        message = f"{bar['done']} of {asked} questions were answered"
        require(is_whole, "incomplete", message, line.evidence)
