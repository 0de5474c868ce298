"""`trtllm-bench throughput`: one load point, measured with the engine inside the program."""

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_BENCH
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm import extra_options, llm_api_yaml
from perfgate.engines.tensorrt_llm.arguments import Argument, of_settings, spelled
from perfgate.engines.tensorrt_llm.environment import environment
from perfgate.engines.tensorrt_llm.model import reference
from perfgate.engines.tensorrt_llm.pinning import pinned
from perfgate.engines.tensorrt_llm.refusal import refusal
from perfgate.engines.tensorrt_llm.releases import Release, release
from perfgate.engines.tensorrt_llm.releases.table import BENCH, THROUGHPUT
from perfgate.scenarios.scenario import EngineSettings, LoadPoint, Scenario

REPORT = "report.json"
_CPP, _CPP_SHORT = "tensorrt", "trt"
_BACKEND = "engine.settings.backend"
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
    known = release(build.version)
    settings = pinned(scenario, build, THROUGHPUT)
    file = llm_api_yaml.document(scenario, settings, known, THROUGHPUT)
    file = extra_options.merged(scenario, known, THROUGHPUT, file)
    model = reference(scenario, locations)
    top = [
        Argument("model", model.name, "model.name"),
        Argument("model_path", None if model.path is None else str(model.path), "model.folder"),
    ]
    own = [
        Argument("backend", backend(scenario, settings, known, THROUGHPUT), _BACKEND),
        *_load(scenario, point, dataset, known),
        *of_settings(settings, *_SETTINGS, *_chunked(known)),
        Argument("yaml_file", f"./{llm_api_yaml.FILE}" if file else None, "engine.settings"),
        Argument("report", REPORT, "workload.client"),
    ]
    return Command(
        (
            *locations.find(TRTLLM_BENCH),
            *spelled(scenario, known, BENCH, top),
            "throughput",
            *spelled(scenario, known, THROUGHPUT, own),
            *extra_options.words(scenario, known, THROUGHPUT, (*top, *own)),
        ),
        env=environment(scenario, settings, known),
        files={llm_api_yaml.FILE: llm_api_yaml.text(file)} if file else {},
        asked_by=extra_options.asked_by(scenario),
    )


def backend(
    scenario: Scenario, settings: EngineSettings, known: Release, program: str
) -> str | None:
    """The word for `--backend`; None where leaving it out is the only way to say it.

    The C++ engine has no word up to 0.21: it is what the programs use when they are not told. It
    left with 1.3 (#15918, #16369).

    Raises:
        InputError: the program has no such backend.
    """
    choices = known.choices(program, "backend")
    asked = settings.backend
    if asked is None or asked in choices:
        return asked
    if asked == _CPP and _CPP_SHORT in choices:
        return _CPP_SHORT
    if asked == known.defaults[program].backend:
        return None
    expected = "one of " + ", ".join(sorted(choices))
    raise refusal(scenario, _BACKEND, asked, known, expected)


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
