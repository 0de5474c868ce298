"""TensorRT-LLM's gpqa_llmapi.py: GPQA diamond on the model inside one process.

How it is called depends on the release: `perfgate.engines.tensorrt_llm.checkout`. It prints
``Finished in 123.456 seconds`` and ``Average accuracy: 0.683``, and on standard error a bar of the
questions done; the answers themselves it keeps to itself.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

from perfgate.clients import datasets
from perfgate.clients.base import Offline
from perfgate.clients.logs import logged, no_report
from perfgate.clients.report_lines import Line, number, positive
from perfgate.core.command import Step
from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import accuracy_name
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm import checkout
from perfgate.evaluators.base import evaluator
from perfgate.scenarios.scenario import AccuracyTask, Scenario

EVALUATOR = "trtllm-gpqa"
TASK = "gpqa_diamond"
METRIC = accuracy_name(TASK, "accuracy", "none")
_ACCURACY = re.compile(r"Average accuracy:\s*(?P<value>.*)")
_FINISHED = re.compile(r"Finished in (?P<seconds>[\d.]+) seconds")
_BAR = "Processing requests:"
_DONE = re.compile(r"\|\s*(?P<done>\d{1,9})/(?P<all>\d{1,9}) \[")
WORDS = ("average accuracy:", _BAR.lower())


@evaluator(EVALUATOR)
class TrtllmGpqa(Offline):
    """All 198 questions of GPQA diamond, as TensorRT-LLM's own CI asks them."""

    name = EVALUATOR

    @classmethod
    def scores(cls) -> Mapping[str, frozenset[str]]:
        """See `Evaluator.scores`."""
        return {TASK: frozenset({"accuracy:none"})}

    def steps(
        self, scenario: Scenario, build: EngineBuild, what: AccuracyTask, locations: Locations
    ) -> tuple[Step, ...]:
        """See `Offline.steps`."""
        questions = str(datasets.gpqa_diamond(locations))
        command = checkout.gpqa(scenario, build, what, questions, locations)
        return (Step("evaluator", command, probe=what.task),)

    def parse(self, _scenario: Scenario, what: AccuracyTask, folder: Path) -> Measurement:
        """See `Offline.parse`."""
        lines = tuple(line for log in logged(folder, "benchmark", WORDS) for line in log)
        if not is_report(lines):
            raise no_report(EVALUATOR, folder, "benchmark")
        return parse(lines, what.limit or checkout.GPQA_QUESTIONS)


def is_report(lines: tuple[Line, ...]) -> bool:
    """Whether the accuracy is in these lines."""
    return any(_ACCURACY.fullmatch(line.text) for line in lines)


def parse(lines: tuple[Line, ...], asked: int = checkout.GPQA_QUESTIONS) -> Measurement:
    """Read the accuracy.

    Args:
        lines: what the program printed.
        asked: how many questions were to be asked.

    Raises:
        RunError: ``no_metrics`` (no number, or not a share), ``incomplete``
            (not all questions were answered).
    """
    found = [(match["value"], line) for line in lines if (match := _ACCURACY.fullmatch(line.text))]
    if len(found) != 1:
        raise RunError("no_metrics", f"{len(found)} accuracies were printed, not one")
    text, line = found[0]
    score = positive(text, line.evidence)
    questions = _questions(lines, asked)
    if score > 1:
        raise RunError("no_metrics", f"an accuracy of {score:g}", evidence=(line.evidence,))
    facts: dict[str, Json] = {
        "evaluator": EVALUATOR,
        "questions": questions,
        "stderr:accuracy:none": math.sqrt(score * (1 - score) / questions),
    }
    seconds = next((m["seconds"] for ln in lines if (m := _FINISHED.fullmatch(ln.text))), None)
    facts |= {} if seconds is None else {"duration_s": number(seconds)}
    return Measurement({METRIC: score}, facts)


def _questions(lines: tuple[Line, ...], asked: int) -> int:
    """How many questions were answered: all, unless the last state of the bar says otherwise."""
    bars = [
        (match, line)
        for line in lines
        if (match := _DONE.search(line.text.rpartition(_BAR)[2])) and _BAR in line.text
    ]
    if not bars:
        return asked
    bar, line = bars[-1]
    if int(bar["done"]) != asked or int(bar["all"]) != asked:
        message = f"{bar['done']} of {asked} questions were answered"
        raise RunError("incomplete", message, evidence=(line.evidence,))
    return asked
