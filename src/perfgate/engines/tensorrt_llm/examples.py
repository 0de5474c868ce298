"""The example programs of TensorRT-LLM: a first answer, and GPQA as its README evaluates it."""

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.arguments import Argument, of_settings, spelled
from perfgate.engines.tensorrt_llm.checkout import script
from perfgate.engines.tensorrt_llm.environment import environment
from perfgate.engines.tensorrt_llm.model import reference
from perfgate.engines.tensorrt_llm.pinning import pinned
from perfgate.engines.tensorrt_llm.refusal import refusal
from perfgate.engines.tensorrt_llm.releases import Release, release
from perfgate.engines.tensorrt_llm.releases.table import GPQA, QUICKSTART
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

# Settings that a program has neither an option nor a file for.
_QUICKSTART_LACKS = ("moe_max_num_tokens", "moe_load_balancer", "stream_interval")
_GPQA_LACKS = (
    *_QUICKSTART_LACKS,
    "max_seq_len",
    "moe_backend",
    "chunked_context",
    "trust_remote_code",
)


_QUICKSTART_SIZES = {
    "--tp_size": "tp",
    "--pp_size": "pp",
    "--moe_ep_size": "ep",
    "--max_batch_size": "max_batch_size",
    "--max_num_tokens": "max_num_tokens",
    "--max_seq_len": "max_seq_len",
}
_QUICKSTART_SWITCHES = {
    "--enable_chunked_prefill": "chunked_context",
    "--use_torch_compile": "torch_compile",
    "--trust_remote_code": "trust_remote_code",
}
# Options that both programs spell alike.
_SHARED = {
    "--enable_attention_dp": "attention_dp",
    "--kv_cache_dtype": "kv_cache_dtype",
    "--kv_cache_fraction": "kv_cache_fraction",
    "--print_iter_log": "iteration_log",
}


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
    _refuse(scenario, settings, known, QUICKSTART, _QUICKSTART_LACKS)
    prompts = None if smoke.prompts == known.example_prompts else smoke.prompts
    graphs = settings.cuda_graphs or CudaGraphs(enabled=False)
    arguments = [
        Argument("--model_dir", reference(scenario, locations).where, "model.name"),
        *of_settings(settings, _QUICKSTART_SIZES),
        *of_settings(settings, {"--attention_backend": "attention_backend", **_SHARED}),
        *of_settings(settings, {"--moe_backend": "moe_backend"}),
        Argument("--use_cuda_graph", graphs.enabled, "engine.settings.cuda_graphs"),
        Argument(
            "--cuda_graph_padding_enabled", graphs.padding, "engine.settings.cuda_graphs.padding"
        ),
        Argument(
            "--cuda_graph_batch_sizes",
            graphs.batch_sizes or None,
            "engine.settings.cuda_graphs.batch_sizes",
        ),
        _overlap(settings, known),
        *of_settings(settings, _QUICKSTART_SWITCHES),
        *_draft(settings.mtp, known),
        Argument("--max_tokens", smoke.max_tokens, "smoke.max_tokens"),
        Argument("--prompt", prompts, "smoke.prompts"),
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
    graphs = settings.cuda_graphs or CudaGraphs(enabled=False)
    _refuse_gpqa(scenario, settings, known, task)
    _refuse(scenario, settings, known, GPQA, _GPQA_LACKS)
    arguments = [
        Argument("--hf_model_dir", reference(scenario, locations).where, "model.name"),
        Argument("--data_dir", questions, "accuracy.task"),
        *of_settings(settings, {"--tp_size": "tp", "--ep_size": "ep"}),
        Argument("--use_cuda_graph", graphs.enabled, "engine.settings.cuda_graphs"),
        _overlap(settings, known),
        Argument("--concurrency", task.concurrency, "accuracy.concurrency"),
        Argument(
            "--batch_size",
            settings.max_batch_size or (task.batch_size if task.batch_size > 1 else None),
            "engine.settings.max_batch_size",
        ),
        *of_settings(settings, {"--max_num_tokens": "max_num_tokens"}),
        *of_settings(settings, {"--attn_backend": "attention_backend", **_SHARED}),
        *of_settings(settings, {"--torch_compile": "torch_compile"}),
        Argument(
            "--mtp_nextn", settings.mtp.layers if settings.mtp else None, "engine.settings.mtp"
        ),
        Argument("--limit", _share(task.limit), "accuracy.limit"),
        Argument("--temperature", task.temperature or None, "accuracy.temperature"),
    ]
    return Command(
        (
            *script(locations, f"examples/{GPQA}"),
            *spelled(scenario, known, GPQA, arguments),
        ),
        env=environment(scenario, settings, known),
    )


def _refuse_gpqa(
    scenario: Scenario, settings: EngineSettings, known: Release, task: AccuracyTask
) -> None:
    """Refuse releases without ``gpqa_llmapi.py``, and values that it cannot be given."""
    if GPQA not in known.programs:
        raise refusal(
            scenario,
            "accuracy.evaluator",
            task.evaluator,
            known,
            f"0.19: later releases have no examples/{GPQA} (#3483)",
            "evaluate GPQA with lm_eval on the served model instead",
        )
    if task.fewshot:
        raise refusal(scenario, "accuracy.fewshot", task.fewshot, known, "0: it shows no examples")
    graphs = settings.cuda_graphs
    if graphs is not None and (graphs.padding or graphs.batch_sizes):
        expected = f"graphs on or off with {GPQA}"
        raise refusal(scenario, "engine.settings.cuda_graphs", graphs, known, expected)
    if settings.pp > 1:
        raise refusal(scenario, "engine.settings.pp", settings.pp, known, f"1 with {GPQA}")


def _overlap(settings: EngineSettings, known: Release) -> Argument:
    """The flag says what the YAML key of the same release says: enable, later disable."""
    asked, field = settings.overlap_scheduler, "engine.settings.overlap_scheduler"
    if known.spelling.overlap_inverted:
        return Argument("--disable_overlap_scheduler", None if asked is None else not asked, field)
    return Argument("--enable_overlap_scheduler", asked, field)


def _draft(mtp: Mtp | None, known: Release) -> tuple[Argument, ...]:
    """MTP; zero layers are spelled out where the example takes them for "off" (the README)."""
    if mtp is None or (mtp.layers == 0 and not known.mtp_zero):
        return ()
    return (
        Argument("--spec_decode_algo", "MTP", "engine.settings.mtp"),
        Argument("--spec_decode_nextn", mtp.layers, "engine.settings.mtp"),
    )


def _share(limit: int | None) -> float | None:
    """The share of the questions of which the program takes exactly the first `limit`.

    It takes ``int(198 × share) + 1`` of them.
    """
    return None if limit is None else round((limit - 0.5) / GPQA_QUESTIONS, 6)


def _refuse(
    scenario: Scenario,
    settings: EngineSettings,
    known: Release,
    program: str,
    fields: tuple[str, ...],
) -> None:
    """Refuse settings that `program` cannot be given: `fields`, and what neither example takes."""
    for field in fields:
        value = getattr(settings, field)
        if value not in (None, False):
            expected = f"not to be set: {program} has no option for it"
            raise refusal(scenario, f"engine.settings.{field}", value, known, expected)
    largest = settings.cuda_graphs and settings.cuda_graphs.max_batch_size
    if largest is not None:
        field = "engine.settings.cuda_graphs.max_batch_size"
        expected = f"batch_sizes, or nothing: {program} has no option for it"
        raise refusal(scenario, field, largest, known, expected)
    if settings.backend not in (None, "pytorch"):
        expected = f"pytorch: {program} knows no other"
        raise refusal(scenario, "engine.settings.backend", settings.backend, known, expected)
