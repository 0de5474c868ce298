"""The example programs of TensorRT-LLM: a first answer, and GPQA as its README evaluates it."""

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.engines.arguments import Argument, of_graphs, of_settings, spelled
from perfgate.engines.base import EngineBuild
from perfgate.engines.refusal import refusal
from perfgate.engines.tensorrt_llm.checkout import script
from perfgate.engines.tensorrt_llm.llm_program import environment
from perfgate.engines.tensorrt_llm.pinning import pinned
from perfgate.engines.tensorrt_llm.table import GPQA, QUICKSTART, Release, release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import (
    AccuracyTask,
    CudaGraphs,
    EngineSettings,
    Mtp,
    Scenario,
    Smoke,
)

GPQA_FILE = "gpqa_diamond.csv"
GPQA_QUESTIONS = 198  # rows of gpqa_diamond.csv

# In the order of the commands. A setting that the release's table has no option for is refused.
_SIZES = ("tp", "pp", "ep", "max_batch_size", "max_num_tokens", "max_seq_len")
_SHARED = ("attention_dp", "kv_cache_dtype", "kv_cache_fraction", "iteration_log")
_MOE = ("moe_max_num_tokens", "moe_load_balancer")


def quickstart(
    scenario: Scenario, build: EngineBuild, smoke: Smoke, locations: Locations
) -> Command:
    """``quickstart_advanced.py``: load the model, answer a few prompts, end.

    The prompts are passed unless they are those that the release's example asks by itself.

    Raises:
        InputError: a setting without an option, or no checkout with the example.
        MissingProgram: no interpreter.
    """
    known = release(build.version)
    settings = pinned(scenario, build, QUICKSTART)
    _refuse_other_backends(scenario, settings, known, QUICKSTART)
    prompts = None if smoke.prompts == known.example_prompts else smoke.prompts
    arguments = [
        Argument("model", reference(scenario, locations).where, "model.name"),
        *of_settings(settings, *_SIZES, "attention_backend", *_SHARED, "moe_backend", *_MOE),
        *of_graphs(settings.cuda_graphs or CudaGraphs(enabled=False)),
        *of_settings(settings, "overlap_scheduler", "chunked_context", "torch_compile"),
        *of_settings(settings, "trust_remote_code", "stream_interval"),
        *_draft(settings.mtp, known),
        Argument("max_tokens", smoke.max_tokens, "smoke.max_tokens"),
        Argument("prompts", prompts, "smoke.prompts"),
    ]
    return Command(
        (
            *script(locations, f"{known.examples}/{QUICKSTART}"),
            *spelled(scenario, known, QUICKSTART, arguments),
        ),
        env=environment(scenario, settings, known),
    )


def gpqa(
    scenario: Scenario,
    build: EngineBuild,
    task: AccuracyTask,
    questions: str,
    locations: Locations,
) -> Command:
    """``gpqa_llmapi.py``: GPQA diamond, as the DeepSeek-V3 example README evaluates it.

    Args:
        scenario: what to run.
        build: the release that is told.
        task: which questions, and how they are asked.
        questions: their file, as the program will see it.
        locations: where program and model are.

    Raises:
        InputError: the release has no such example, or a setting without an option.
        MissingProgram: no interpreter.
    """
    known = release(build.version)
    settings = pinned(scenario, build, GPQA)
    _refuse_gpqa(scenario, known, task)
    _refuse_other_backends(scenario, settings, known, GPQA)
    batch_size = settings.max_batch_size or (task.batch_size if task.batch_size > 1 else None)
    draft = settings.mtp.layers if settings.mtp else None
    arguments = [
        Argument("model", reference(scenario, locations).where, "model.name"),
        Argument("questions", questions, "accuracy.task"),
        *of_settings(settings, "tp", "ep"),
        Argument("pp", settings.pp if settings.stages > 1 else None),
        *of_graphs(settings.cuda_graphs or CudaGraphs(enabled=False)),
        *of_settings(settings, "overlap_scheduler"),
        Argument("concurrency", task.concurrency, "accuracy.concurrency"),
        Argument("max_batch_size", batch_size),
        *of_settings(settings, "max_num_tokens", "max_seq_len", "attention_backend", *_SHARED),
        *of_settings(settings, "moe_backend", *_MOE, "torch_compile", "chunked_context"),
        *of_settings(settings, "trust_remote_code", "stream_interval"),
        Argument("mtp.layers", draft, "engine.settings.mtp"),
        Argument("limit", _share(task.limit), "accuracy.limit"),
        Argument("temperature", task.temperature or None, "accuracy.temperature"),
    ]
    return Command(
        (
            *script(locations, f"examples/{GPQA}"),
            *spelled(scenario, known, GPQA, arguments),
        ),
        env=environment(scenario, settings, known),
    )


def _refuse_gpqa(scenario: Scenario, known: Release, task: AccuracyTask) -> None:
    """Refuse releases without ``gpqa_llmapi.py``, and values that it cannot be given."""
    if GPQA not in known.programs:
        raise refusal(
            scenario,
            "accuracy.evaluator",
            task.evaluator,
            known,
            f"0.19: later releases have no examples/{GPQA} (#3483)",
            "evaluate GPQA with trtllm-eval, whose score is another: it shuffles the choices",
        )
    if task.fewshot:
        raise refusal(scenario, "accuracy.fewshot", task.fewshot, known, "0: it shows no examples")


def _refuse_other_backends(
    scenario: Scenario, settings: EngineSettings, known: Release, program: str
) -> None:
    """Refuse what neither example has an option for, because it is the PyTorch backend's own."""
    if settings.backend not in (None, "pytorch"):
        expected = f"pytorch: {program} knows no other"
        raise refusal(scenario, "engine.settings.backend", settings.backend, known, expected)


def _draft(mtp: Mtp | None, known: Release) -> tuple[Argument, ...]:
    """MTP; zero layers are spelled out where the example takes them for "off" (the README).

    Where one model must be asked for, two would run without it, which no document measures.
    """
    if mtp is None or (mtp.layers == 0 and not known.mtp_zero):
        return ()
    field = "engine.settings.mtp"
    one_model = "mtp.one_model" in known.options(QUICKSTART)
    return (
        Argument("mtp", "MTP"),
        Argument("mtp.layers", mtp.layers, field),
        Argument("mtp.one_model", True if one_model else None, field),
    )


def _share(limit: int | None) -> float | None:
    """The share of the questions of which the program takes exactly the first `limit`.

    It takes ``int(198 × share) + 1`` of them.
    """
    return None if limit is None else round((limit - 0.5) / GPQA_QUESTIONS, 6)
