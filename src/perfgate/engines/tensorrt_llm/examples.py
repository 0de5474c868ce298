"""The example programs of TensorRT-LLM: a first answer, and GPQA as its README evaluates it."""

from perfgate.core.command import Command
from perfgate.core.errors import InputError
from perfgate.core.locations import DATASETS, Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.arguments import Argument, spelled
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
    _refuse_largest_graph(scenario, settings, known, QUICKSTART)
    prompts = None if smoke.prompts == known.example_prompts else smoke.prompts
    graphs = settings.cuda_graphs or CudaGraphs(enabled=False)
    arguments = [
        Argument("--model_dir", reference(scenario, locations).where, "model.name"),
        Argument("--tp_size", settings.tp, "engine.settings.tp"),
        Argument("--pp_size", settings.pp if settings.pp > 1 else None, "engine.settings.pp"),
        Argument("--moe_ep_size", settings.ep, "engine.settings.ep"),
        Argument("--max_batch_size", settings.max_batch_size, "engine.settings.max_batch_size"),
        Argument("--max_num_tokens", settings.max_num_tokens, "engine.settings.max_num_tokens"),
        Argument("--max_seq_len", settings.max_seq_len, "engine.settings.max_seq_len"),
        *_shared(settings, "--attention_backend"),
        Argument("--moe_backend", settings.moe_backend, "engine.settings.moe_backend"),
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
        Argument(
            "--enable_chunked_prefill", settings.chunked_context, "engine.settings.chunked_context"
        ),
        Argument("--use_torch_compile", settings.torch_compile, "engine.settings.torch_compile"),
        Argument(
            "--trust_remote_code", settings.trust_remote_code, "engine.settings.trust_remote_code"
        ),
        *_draft(settings.mtp, known),
        Argument("--max_tokens", smoke.max_tokens, "smoke.max_tokens"),
        Argument("--prompt", prompts, "smoke.prompts"),
    ]
    _refuse_backend(scenario, settings, known, QUICKSTART)
    return Command(
        (
            *script(locations, f"{known.examples}/{QUICKSTART}"),
            *spelled(scenario, known, QUICKSTART, arguments),
        ),
        env=environment(scenario, settings, known),
    )


def gpqa(
    scenario: Scenario, build: EngineBuild, task: AccuracyTask, locations: Locations
) -> Command:
    """``gpqa_llmapi.py``: GPQA diamond, as the DeepSeek-V3 example README evaluates it.

    Raises:
        InputError: the release has no such example, a setting without an option, or no dataset.
        MissingProgram: no interpreter.
    """
    known = release(build.version)
    if GPQA not in known.programs:
        raise refusal(
            scenario,
            "accuracy.evaluator",
            task.evaluator,
            known,
            f"0.19: later releases have no examples/{GPQA} (#3483)",
            "evaluate GPQA with lm_eval on the served model instead",
        )
    settings = pinned(scenario, build, GPQA)
    _refuse(scenario, settings, known, GPQA, _GPQA_LACKS)
    _refuse_largest_graph(scenario, settings, known, GPQA)
    _refuse_backend(scenario, settings, known, GPQA)
    if task.fewshot:
        raise refusal(scenario, "accuracy.fewshot", task.fewshot, known, "0: it shows no examples")
    graphs = settings.cuda_graphs or CudaGraphs(enabled=False)
    if graphs.padding or graphs.batch_sizes:
        raise refusal(
            scenario, "engine.settings.cuda_graphs", graphs, known, f"graphs on or off with {GPQA}"
        )
    arguments = [
        Argument("--hf_model_dir", reference(scenario, locations).where, "model.name"),
        Argument("--data_dir", _questions(locations), "accuracy.task"),
        Argument("--tp_size", settings.tp, "engine.settings.tp"),
        Argument("--ep_size", settings.ep, "engine.settings.ep"),
        Argument("--use_cuda_graph", graphs.enabled, "engine.settings.cuda_graphs"),
        _overlap(settings, known),
        Argument("--concurrency", task.concurrency, "accuracy.concurrency"),
        Argument(
            "--batch_size",
            settings.max_batch_size or (task.batch_size if task.batch_size > 1 else None),
            "engine.settings.max_batch_size",
        ),
        Argument("--max_num_tokens", settings.max_num_tokens, "engine.settings.max_num_tokens"),
        *_shared(settings, "--attn_backend"),
        Argument("--torch_compile", settings.torch_compile, "engine.settings.torch_compile"),
        Argument(
            "--mtp_nextn", settings.mtp.layers if settings.mtp else None, "engine.settings.mtp"
        ),
        Argument("--limit", _share(task.limit), "accuracy.limit"),
        Argument("--temperature", task.temperature or None, "accuracy.temperature"),
    ]
    if settings.pp > 1:
        raise refusal(scenario, "engine.settings.pp", settings.pp, known, f"1 with {GPQA}")
    return Command(
        (
            *script(locations, f"examples/{GPQA}"),
            *spelled(scenario, known, GPQA, arguments),
        ),
        env=environment(scenario, settings, known),
    )


def _shared(settings: EngineSettings, attention: str) -> tuple[Argument, ...]:
    """Options that both programs spell alike, but for the attention's."""
    return (
        Argument(attention, settings.attention_backend, "engine.settings.attention_backend"),
        Argument("--enable_attention_dp", settings.attention_dp, "engine.settings.attention_dp"),
        Argument("--kv_cache_dtype", settings.kv_cache_dtype, "engine.settings.kv_cache_dtype"),
        Argument(
            "--kv_cache_fraction",
            settings.kv_cache_fraction,
            "engine.settings.kv_cache_fraction",
        ),
        Argument("--print_iter_log", settings.iteration_log, "engine.settings.iteration_log"),
    )


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


def _questions(locations: Locations) -> str:
    """The GPQA table, which its authors give out on request only (the README)."""
    if locations.on_paper:
        return GPQA_FILE if locations.datasets is None else str(locations.datasets / GPQA_FILE)
    file = None if locations.datasets is None else locations.datasets / GPQA_FILE
    if file is None or not file.is_file():
        raise InputError(
            "the GPQA questions are not here",
            file=file,
            field=DATASETS,
            expected=f"a folder with {GPQA_FILE}",
            hint="ask for access at https://huggingface.co/datasets/Idavidrein/gpqa, download "
            f"{GPQA_FILE}, and set {DATASETS} to its folder",
        )
    return str(file)


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
    for field in fields:
        value = getattr(settings, field)
        if value not in (None, False):
            expected = f"not to be set: {program} has no option for it"
            raise refusal(scenario, f"engine.settings.{field}", value, known, expected)


def _refuse_largest_graph(
    scenario: Scenario, settings: EngineSettings, known: Release, program: str
) -> None:
    graphs = settings.cuda_graphs
    if graphs is not None and graphs.max_batch_size is not None:
        raise refusal(
            scenario,
            "engine.settings.cuda_graphs.max_batch_size",
            graphs.max_batch_size,
            known,
            f"batch_sizes, or nothing: {program} has no option for it",
        )


def _refuse_backend(
    scenario: Scenario, settings: EngineSettings, known: Release, program: str
) -> None:
    if settings.backend not in (None, "pytorch"):
        raise refusal(
            scenario,
            "engine.settings.backend",
            settings.backend,
            known,
            f"pytorch: {program} knows no other",
        )
