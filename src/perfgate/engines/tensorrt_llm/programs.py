"""`trtllm-serve`, `trtllm-bench throughput` and `trtllm-eval`: the calls of one scenario.

They take LLM-API settings: options and YAML file of one scenario, for one release.
The server is what load clients and lm_eval talk to. The benchmark measures one load point with the
engine inside the program; so does `trtllm-eval`, of 0.20 and newer (#3483), the accuracy.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import TRTLLM_BENCH, TRTLLM_EVAL, TRTLLM_SERVE
from perfgate.engines.arguments import Argument, of_settings, spelled
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.refusal import Refused, asked_by, refusal, require_none
from perfgate.engines.served import settings as served_settings
from perfgate.engines.tensorrt_llm import extra_options, llm_api_yaml, table
from perfgate.engines.tensorrt_llm.table import EVAL, TABLES, THROUGHPUT, Release, release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import (
    AccuracyTask,
    CudaGraphs,
    EngineSettings,
    LoadPoint,
    Scenario,
)

_CPP, _CPP_SHORT = "tensorrt", "trt"
_BACKEND = "engine.settings.backend"
# Settings that are options of a program which serves, or evaluates, a model.
_SIZES = ("max_batch_size", "max_num_tokens", "max_seq_len")
SETTINGS = (*_SIZES, "kv_cache_fraction", "tp", "ep", "pp", "trust_remote_code")


@dataclass(frozen=True)
class LlmProgram:
    """One program of one release, told the settings of one scenario.

    Attributes:
        name: as the release tables call it.
        scenario: what to run.
        release: the release that is told.
        settings: the scenario's, with the document's defaults in the place of what it leaves open.
        file: content of the YAML file; empty: none is needed.
    """

    name: str
    scenario: Scenario
    release: Release
    settings: EngineSettings
    file: dict[str, Any]

    @classmethod
    def of(cls, name: str, scenario: Scenario, build: EngineBuild) -> "LlmProgram":
        """The program of `build`, which must have it.

        Raises:
            InputError: a setting, or an extra key, that the release's YAML file cannot take.
        """
        known = release(build.version)
        settings = pinned(scenario, build, name)
        file = llm_api_yaml.document(scenario, settings, known, name)
        file = extra_options.merged(scenario, known, name, file)
        return cls(name, scenario, known, settings, file)

    @property
    def backend(self) -> Argument:
        """The option that names the back end; left out where nothing else can say it.

        The C++ engine has no word up to 0.21: it is what the programs use when they are not told.
        It left with 1.3 (#15918, #16369). A deprecated option does not say the default.

        Raises:
            InputError: the program has no such back end.
        """
        choices = self.release.choices(self.name, "backend")
        asked = word = self.settings.backend
        if asked is not None and asked not in choices:
            if asked == _CPP and _CPP_SHORT in choices:
                word = _CPP_SHORT
            elif asked == self.release.defaults[self.name].backend:
                word = None
            else:
                expected = "one of " + ", ".join(sorted(choices))
                raise refusal(self.scenario, _BACKEND, asked, self.release, expected)
        option = self.release.options(self.name).get("backend")
        if option and option.deprecated and asked == self.release.defaults[self.name].backend:
            word = None
        return Argument("backend", word)

    @property
    def yaml_file(self) -> Argument:
        """The option that names the file; left out where none is needed."""
        name = f"./{llm_api_yaml.FILE}" if self.file else None
        return Argument("yaml_file", name, "engine.settings")

    def words(self, arguments: Iterable[Argument], program: str = "") -> tuple[str, ...]:
        """The words of `arguments`, of this program or of the one that it is a part of.

        Raises:
            InputError: the release has no option for one, or not this value of it.
        """
        return spelled(self.scenario, self.release, program or self.name, arguments)

    def extra_words(self, arguments: Iterable[Argument]) -> tuple[str, ...]:
        """The scenario's extra words for it, beside `arguments`.

        Raises:
            ExtraOptionRefused: an option that a field of the scenario, or perfgate, gives.
        """
        return extra_options.words(self.scenario, self.release, self.name, arguments)

    def command(self, argv: tuple[str, ...]) -> Command:
        """The call `argv`, with the environment and the file that belong to it."""
        return Command(
            argv,
            env=environment(self.scenario, self.settings, self.release),
            files={llm_api_yaml.FILE: llm_api_yaml.text(self.file)} if self.file else {},
            asked_by=asked_by(self.scenario),
        )


def environment(scenario: Scenario, settings: EngineSettings, release: Release) -> dict[str, str]:
    """Variables to add to those of the caller.

    Programmatic dependent launch is ``TRTLLM_ENABLE_PDL``: set by hand up to 1.1 (best-performance
    guide, "B200 min-latency"), on by default since 1.2 and switched off with 0.

    Raises:
        InputError: the release has no variable for a setting, or the scenario names it otherwise.
    """
    found = dict(release.environment)
    if settings.pdl is not None:
        field = "engine.settings.pdl"
        if release.pdl_variable is None:
            raise refusal(scenario, field, settings.pdl, release, "no pdl: no switch for it")
        value = "1" if settings.pdl else "0"
        said = scenario.environment.get(release.pdl_variable, value)
        if said != value:
            expected = f"what environment says: {release.pdl_variable} is {said} there"
            hint = "take one of the two out of the scenario"
            raise refusal(scenario, field, settings.pdl, release, expected, hint)
        found[release.pdl_variable] = value
    return {**found, **scenario.environment}


def only_pytorch(settings: EngineSettings, why: str) -> Iterator[Refused]:
    """Of programs that know no other backend: what else is asked for, refused with the reason."""
    if settings.backend not in (None, "pytorch"):
        yield Refused("engine.settings.backend", settings.backend, f"pytorch: {why}")


def pinned(scenario: Scenario, build: EngineBuild, program: str) -> EngineSettings:
    """See `settings.pinned`.

    Args:
        scenario: the scenario.
        build: the release under test.
        program: name of the program that is told, as in the release tables.
    """
    return served_settings.pinned(
        scenario,
        build,
        TABLES,
        lambda known: dict(_defaults(scenario, program, known)),
        ("moe_backend",),
    )


def _defaults(scenario: Scenario, program: str, known: Release) -> Iterator[tuple[str, Any]]:
    defaults, size = known.defaults.get(program), scenario.engine.settings.max_batch_size
    if defaults is None:
        return
    for name in ("backend", "overlap_scheduler", "chunked_context", "moe_backend"):
        yield name, getattr(defaults, name)
    if known.pdl_variable not in scenario.environment:
        yield "pdl", defaults.pdl
    # What `trtllm-bench` sets depends on the batch size; one that it chooses cannot be told.
    if defaults.cuda_graphs != "padded":
        yield "cuda_graphs", CudaGraphs(enabled=defaults.cuda_graphs == "on")
    elif size is not None:
        yield "cuda_graphs", CudaGraphs(padding=True, max_batch_size=size)


# Calls. -------------------------------------------------------------------------------------------


def serve(
    scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
) -> Command:
    """The command that serves the scenario's model on `endpoint`.

    Raises:
        InputError: a setting that this release cannot express.
        MissingProgram: the program is not installed.
    """
    program = LlmProgram.of(table.SERVE, scenario, build)
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
            *program.words(top, table.BENCH),
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
