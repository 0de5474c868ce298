"""`trtllm-bench throughput`: one load point, measured with the engine inside the program."""

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_BENCH
from perfgate.engines.arguments import Argument, of_settings
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.llm_program import LlmProgram
from perfgate.engines.tensorrt_llm.table import BENCH, THROUGHPUT, Release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import LoadPoint, Scenario

REPORT = "report.json"
_SETTINGS = (
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
        *of_settings(program.settings, *_SETTINGS, *_chunked(known)),
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
