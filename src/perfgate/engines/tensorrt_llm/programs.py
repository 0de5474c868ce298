"""`trtllm-serve`, `trtllm-bench throughput` and `trtllm-eval`: the calls of one scenario.

The server is what load clients and lm_eval talk to. The benchmark measures one load point with the
engine inside the program; so does `trtllm-eval`, of 0.20 and newer (#3483), the accuracy.
"""

from typing import NamedTuple

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_BENCH, TRTLLM_EVAL, TRTLLM_SERVE
from perfgate.engines.arguments import Argument, of_settings
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.refusal import refusal
from perfgate.engines.tensorrt_llm.llm_program import LlmProgram
from perfgate.engines.tensorrt_llm.table import BENCH, EVAL, SERVE, THROUGHPUT, Release, release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint, Scenario

# Settings that are options of a program which serves, or evaluates, a model.
SETTINGS = (
    "max_batch_size",
    "max_num_tokens",
    "max_seq_len",
    "kv_cache_fraction",
    "tp",
    "ep",
    "pp",
    "trust_remote_code",
)


def serve(
    scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
) -> Command:
    """The command that serves the scenario's model on `endpoint`.

    Raises:
        InputError: a setting that this release cannot express.
        MissingProgram: the program is not installed.
    """
    program = LlmProgram.of(SERVE, scenario, build)
    arguments = [
        Argument("host", endpoint.host, "listen.host"),
        Argument("port", endpoint.port, "listen.port"),
        program.backend,
        *of_settings(program.settings, *SETTINGS),
        program.yaml_file,
    ]
    return program.command(
        (
            *locations.find(TRTLLM_SERVE),
            reference(scenario, locations).where,
            *program.words(arguments),
            *program.extra_words(arguments),
        )
    )


REPORT = "report.json"
_BENCH_SETTINGS = (
    "max_batch_size",
    "max_num_tokens",
    "max_seq_len",
    "tp",
    "ep",
    "pp",
    "kv_cache_fraction",
)


def throughput(
    scenario: Scenario, build: EngineBuild, point: LoadPoint, dataset: str, locations: Locations
) -> Command:
    """The command that measures `point` and leaves its report in ``report.json``.

    Args:
        scenario: what to run.
        build: the release that is told.
        point: concurrency and requests.
        dataset: the prompts' file, as the program will see it.
        locations: where program and model are.

    Raises:
        InputError: a setting that this release cannot express.
        MissingProgram: the program is not installed.
    """
    program = LlmProgram.of(THROUGHPUT, scenario, build)
    known, model = program.release, reference(scenario, locations)
    top = [
        Argument("model", model.name, "model.name"),
        Argument("model_path", None if model.path is None else str(model.path), "model.folder"),
    ]
    own = [
        program.backend,
        *_load(scenario, point, dataset, known),
        *of_settings(program.settings, *_BENCH_SETTINGS, *_chunked(known)),
        program.yaml_file,
        Argument("report", REPORT, "workload.client"),
    ]
    return program.command(
        (
            *locations.find(TRTLLM_BENCH),
            *program.words(top, BENCH),
            "throughput",
            *program.words(own),
            *program.extra_words((*top, *own)),
        )
    )


def _chunked(known: Release) -> tuple[str, ...]:
    """Chunked context, unless this release has it in the YAML file alone."""
    return () if known.spelling.bench_chunked_prefill else ("chunked_context",)


def _load(
    scenario: Scenario, point: LoadPoint, dataset: str, known: Release
) -> tuple[Argument, ...]:
    """Prompts and their load. Concurrency -1 is the program's word for no limit (GB200 recipe)."""
    streaming = scenario.workload is not None and scenario.workload.streaming
    warmup = None if point.warmup_requests == known.bench_warmup else point.warmup_requests
    return (
        Argument("dataset", dataset, "workload.dataset"),
        Argument("requests", point.requests, "workload.requests"),
        Argument("concurrency", point.concurrency if point.capped else -1, "workload"),
        Argument("warmup_requests", warmup, "workload.warmup_requests"),
        Argument("streaming", streaming, "workload.streaming"),
    )


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
