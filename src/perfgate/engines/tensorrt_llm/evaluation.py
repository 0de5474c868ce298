"""`trtllm-eval`: accuracy of a model inside one process, of 0.20 and newer (#3483)."""

from typing import NamedTuple

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_EVAL
from perfgate.engines.arguments import Argument, of_settings
from perfgate.engines.base import EngineBuild
from perfgate.engines.refusal import refusal
from perfgate.engines.tensorrt_llm.llm_program import LlmProgram
from perfgate.engines.tensorrt_llm.serve import SETTINGS
from perfgate.engines.tensorrt_llm.table import EVAL, Release, release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import AccuracyTask, Scenario


class EvalTask(NamedTuple):
    """A task of `trtllm-eval`; scenarios call it as its command line does.

    Attributes:
        fewshot: examples before each question.
        questions: how many there are.
        subjects: the limit counts for each of so many subjects.
    """

    fewshot: int
    questions: int
    subjects: int = 1


# Few-shot examples are those of the tasks' own files, tensorrt_llm/evaluate/lm_eval_tasks and
# mmlu.py; no option is given for them.
TASKS = {
    "gpqa_diamond": EvalTask(0, 198),
    "gsm8k": EvalTask(5, 1319),
    "mmlu": EvalTask(5, 14_042, subjects=57),
}


def evaluate(
    scenario: Scenario,
    build: EngineBuild,
    task: AccuracyTask,
    dataset: str | None,
    locations: Locations,
) -> Command:
    """The command that evaluates `task`; results and samples go into its working directory.

    Args:
        scenario: what to run.
        build: the release that is told.
        task: which questions, and how they are asked.
        dataset: a local folder with them, as the program will see it; None: from the hub.
        locations: where program and model are.

    Raises:
        InputError: the release has no such program or task, or a setting without an option.
        MissingProgram: the program is not installed.
    """
    known = release(build.version)
    _refuse(scenario, known, task)
    program = LlmProgram.of(EVAL, scenario, build)
    _refuse_backend(program)
    top = [
        Argument("model", reference(scenario, locations).where, "model.name"),
        Argument("backend", program.settings.backend),
        *of_settings(program.settings, *SETTINGS),
        program.yaml_file,
    ]
    subcommand = f"{EVAL} {task.task}"
    has_samples = "samples" in known.options(subcommand)
    own = [
        Argument("dataset", dataset, "accuracy.task"),
        Argument("limit", task.limit, "accuracy.limit"),
        Argument("samples", True if has_samples else None, "accuracy.evaluator"),
        Argument("results", "." if has_samples else None, "accuracy.evaluator"),
    ]
    return program.command(
        (
            *locations.find(TRTLLM_EVAL),
            *program.words(top),
            *program.extra_words(top),
            task.task,
            *program.words(own, subcommand),
        )
    )


def _refuse(scenario: Scenario, known: Release, task: AccuracyTask) -> None:
    """Refuse releases without the program or the task, and what it cannot be told."""
    if f"{EVAL} {task.task}" not in known.programs:
        tasks = ", ".join(sorted(TASKS))
        hint = "at 0.19 evaluate GPQA with trtllm-gpqa, any task with lm_eval on the served model"
        if EVAL in known.programs:
            raise refusal(scenario, "accuracy.task", task.task, known, f"one of {tasks}", hint)
        expected = "0.20 or newer: trtllm-eval has these tasks since then (#3483)"
        raise refusal(scenario, "accuracy.evaluator", task.evaluator, known, expected, hint)
    its = TASKS[task.task]
    if task.fewshot != its.fewshot:
        expected = f"{its.fewshot}: the examples of trtllm-eval {task.task}"
        raise refusal(scenario, "accuracy.fewshot", task.fewshot, known, expected)
    if task.limit is not None and task.limit % its.subjects:
        expected = f"a multiple of {its.subjects}: it counts for each of the subjects"
        raise refusal(scenario, "accuracy.limit", task.limit, known, expected)
    unset = AccuracyTask(task.evaluator, task.task, task.fewshot)
    for field in ("temperature", "add_special_tokens", "extra_body"):
        if getattr(task, field) != getattr(unset, field):
            expected = "left out: trtllm-eval is greedy, and has no option for it"
            raise refusal(scenario, f"accuracy.{field}", getattr(task, field), known, expected)
    for field in ("concurrency", "batch_size"):
        if getattr(task, field) != getattr(unset, field):
            expected = "left out: all questions are in flight, max_batch_size holds them back"
            raise refusal(scenario, f"accuracy.{field}", getattr(task, field), known, expected)


def _refuse_backend(program: LlmProgram) -> None:
    asked = program.settings.backend
    if asked not in (None, "pytorch"):
        expected = "pytorch: evaluate another with lm_eval on the served model"
        field = "engine.settings.backend"
        raise refusal(program.scenario, field, asked, program.release, expected)
