"""`trtllm-serve`, `trtllm-bench throughput` and `trtllm-eval`: the calls of one scenario.

The server is what load clients and lm_eval talk to. The benchmark measures one load point with the
engine inside the program; so does `trtllm-eval`, of 0.20 and newer (#3483), the accuracy.
"""

from collections.abc import Iterator
from typing import NamedTuple

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_BENCH, TRTLLM_EVAL, TRTLLM_SERVE
from perfgate.engines.arguments import Argument, of_settings
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.refusal import Refused, require_none
from perfgate.engines.tensorrt_llm.llm_program import LlmProgram, only_pytorch
from perfgate.engines.tensorrt_llm.table import BENCH, EVAL, SERVE, THROUGHPUT, Release, release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint, Scenario

# Settings that are options of a program which serves, or evaluates, a model.
_SIZES = ("max_batch_size", "max_num_tokens", "max_seq_len")
SETTINGS = (*_SIZES, "kv_cache_fraction", "tp", "ep", "pp", "trust_remote_code")


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
    streaming = scenario.workload is not None and scenario.workload.streaming
    warmup = None if point.warmup_requests == known.bench_warmup else point.warmup_requests
    # Chunked context, unless this release has it in the YAML file alone.
    chunked = () if known.spelling.bench_chunked_prefill else ("chunked_context",)
    own = [
        program.backend,
        Argument("dataset", dataset, "workload.dataset"),
        Argument("requests", point.requests, "workload.requests"),
        # -1 is the program's word for no limit (GB200 recipe).
        Argument("concurrency", point.concurrency if point.capped else -1, "workload"),
        Argument("warmup_requests", warmup, "workload.warmup_requests"),
        Argument("streaming", streaming, "workload.streaming"),
        *of_settings(program.settings, *_SIZES, "tp", "ep", "pp", "kv_cache_fraction", *chunked),
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
    require_none(scenario, known, _refusals(known, task))
    program = LlmProgram.of(EVAL, scenario, build)
    why = "evaluate another with lm_eval on the served model"
    require_none(scenario, known, only_pytorch(program.settings, why))
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


def _refusals(known: Release, task: AccuracyTask) -> Iterator[Refused]:
    """Of releases without the program or the task, and what it cannot be told."""
    if f"{EVAL} {task.task}" not in known.programs:
        hint = "at 0.19 evaluate GPQA with trtllm-gpqa, any task with lm_eval on the served model"
        if EVAL in known.programs:
            yield Refused("accuracy.task", task.task, f"one of {', '.join(sorted(TASKS))}", hint)
        expected = "0.20 or newer: trtllm-eval has these tasks since then (#3483)"
        yield Refused("accuracy.evaluator", task.evaluator, expected, hint)
    its = TASKS[task.task]
    if task.fewshot != its.fewshot:
        expected = f"{its.fewshot}: the examples of trtllm-eval {task.task}"
        yield Refused("accuracy.fewshot", task.fewshot, expected)
    if task.limit is not None and task.limit % its.subjects:
        expected = f"a multiple of {its.subjects}: it counts for each of the subjects"
        yield Refused("accuracy.limit", task.limit, expected)
    unset = AccuracyTask(task.evaluator, task.task, task.fewshot)
    greedy = "left out: trtllm-eval is greedy, and has no option for it"
    in_flight = "left out: all questions are in flight, max_batch_size holds them back"
    for field, expected in (
        *dict.fromkeys(("temperature", "add_special_tokens", "extra_body"), greedy).items(),
        *dict.fromkeys(("concurrency", "batch_size"), in_flight).items(),
    ):
        if getattr(task, field) != getattr(unset, field):
            yield Refused(f"accuracy.{field}", getattr(task, field), expected)
