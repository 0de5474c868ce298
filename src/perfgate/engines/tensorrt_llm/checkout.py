"""What TensorRT-LLM's Python runs: modules of its package, and programs that only a checkout has.

Those are its example programs, a first answer and GPQA as its README evaluates it, and up to 1.1
the tool that makes synthetic prompts (best-performance guide, "Dataset preparation" and "B200
max-throughput for R1"). An interpreter is found nearly everywhere; a module of an engine that is
absent is absent, too.
"""

from pathlib import Path

from perfgate.core.command import Command, Step
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import TENSORRT_LLM_SOURCE, Locations
from perfgate.core.programs import TENSORRT_LLM_PYTHON, TRTLLM_BENCH, Program
from perfgate.engines.arguments import Argument, of_graphs, of_settings, spelled
from perfgate.engines.base import EngineBuild
from perfgate.engines.installed_programs import answer
from perfgate.engines.refusal import refusal
from perfgate.engines.tensorrt_llm.llm_program import environment
from perfgate.engines.tensorrt_llm.llm_program import pinned
from perfgate.engines.tensorrt_llm.table import (
    BENCH,
    GENERATOR,
    GPQA,
    QUICKSTART,
    Release,
    release,
)
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import (
    AccuracyTask,
    CudaGraphs,
    EngineSettings,
    Mtp,
    Scenario,
    Smoke,
    Workload,
)

IMAGE_SOURCES = Path("/app/tensorrt_llm")  # of the release images: benchmarks, examples
# The metadata alone: importing the package takes up to minutes.
VERSION_CODE = "import importlib.metadata as m; print(m.version('tensorrt_llm'))"


def script(locations: Locations, path: str) -> tuple[str, ...]:
    """The argv prefix that runs the checkout's file `path`; relative on paper without a checkout.

    The release images have the examples, so that none is needed where the engine is in one.

    Raises:
        InputError: no checkout is named, or it lacks the file.
        MissingProgram: no interpreter, or one without the engine.
    """
    python = locations.find(TENSORRT_LLM_PYTHON)
    if locations.source is None:
        if locations.on_paper:
            return (*python, path)
        if locations.inside is not None:
            return (*python, str(IMAGE_SOURCES / path))
        raise InputError(
            "this program is part of TensorRT-LLM's sources, not of its wheel",
            field=TENSORRT_LLM_SOURCE,
            found="not set",
            expected=f"a checkout of the installed release, with {path}",
            hint=f"git clone https://github.com/NVIDIA/TensorRT-LLM.git, check out the release, "
            f"and set {TENSORRT_LLM_SOURCE} to the folder",
        )
    file = locations.source / path
    if not locations.on_paper and not file.is_file():
        raise InputError(
            "the checkout of TensorRT-LLM lacks a program",
            file=file,
            field=TENSORRT_LLM_SOURCE,
            expected=f"a checkout of the installed release, with {path}",
            hint="check out the tag of the installed release",
        )
    require_package(TENSORRT_LLM_PYTHON, locations)
    return (*python, str(file))


def require_package(program: Program, locations: Locations) -> None:
    """Make sure that the interpreter of `program` has the package.

    Not asked are a wrapper, and the interpreter of a container, whose image is the engine's own.

    Raises:
        MissingProgram: it has not, or there is no interpreter.
        InputError: the environment variable that names it is wrong.
    """
    if locations.on_paper or locations.inside is not None:
        return
    words = locations.find(program)
    if not Path(words[0]).name.startswith("python"):
        return
    interpreter = words[: words.index("-m")] if "-m" in words else words
    said = answer((*interpreter, "-c", VERSION_CODE), locations).strip().splitlines()
    if said and not said[-1][:1].isdigit():
        raise MissingProgram(
            f"{program.name} is not installed: {' '.join(interpreter)} has no package "
            f"tensorrt_llm ({said[-1][:120]})",
            hint=f"set {TENSORRT_LLM_PYTHON.variable} to the Python that has it"
            if program == TENSORRT_LLM_PYTHON
            else f"set {program.variable} to the Python that has it, followed by "
            f"{' '.join(program.arguments)}",
        )


# Synthetic prompts. --------------------------------------------------------------------------

DATASET = "dataset.txt"


def prepare(scenario: Scenario, build: EngineBuild, requests: int, locations: Locations) -> Step:
    """The step that writes `requests` prompts of the scenario's lengths to ``dataset.txt``.

    All prompts have exactly the asked lengths: the standard deviations are 0, as documented.

    Raises:
        InputError: no lengths, or the tool needs a checkout that is not there.
        MissingProgram: the tool is not installed.
    """
    known, tool = release(build.version), release(build.version).dataset_tool
    lengths = spelled(
        scenario,
        known,
        f"{tool.program} {GENERATOR}",
        _lengths(scenario, _workload_of(scenario), requests),
    )
    head, stdout = (
        (_subcommand(scenario, known, locations), None)
        if tool.script is None
        else (_script(scenario, known, tool.script, locations), DATASET)
    )
    command = Command((*head, GENERATOR, *lengths), stdout=stdout)
    return Step("prepare_dataset", command, produces=DATASET)


def _script(scenario: Scenario, known: Release, path: str, locations: Locations) -> tuple[str, ...]:
    arguments = [
        Argument("to_stdout", True, "workload.dataset"),
        Argument("tokenizer", reference(scenario, locations).where, "model.name"),
        Argument("seed", _workload_of(scenario).seed or None, "workload.seed"),
    ]
    program = known.dataset_tool.program
    return (*script(locations, path), *spelled(scenario, known, program, arguments))


def _subcommand(scenario: Scenario, known: Release, locations: Locations) -> tuple[str, ...]:
    """The subcommand takes the tokenizer from `--model`, not from `--model_path`."""
    model = [Argument("model", reference(scenario, locations).where, "model.name")]
    own = [
        Argument("output", DATASET, "workload.dataset"),
        Argument("seed", _workload_of(scenario).seed or None, "workload.seed"),
    ]
    return (
        *locations.find(TRTLLM_BENCH),
        *spelled(scenario, known, BENCH, model),
        "prepare-dataset",
        *spelled(scenario, known, known.dataset_tool.program, own),
    )


def _lengths(scenario: Scenario, load: Workload, requests: int) -> list[Argument]:
    if load.isl is None or load.osl is None:
        raise InputError(
            "synthetic prompts need lengths",
            file=scenario.file,
            field=f"{scenario.id}.workload",
            found=f"isl {load.isl}, osl {load.osl}",
            expected="both, in tokens",
        )
    return [
        Argument("isl", load.isl, "workload.isl"),
        Argument("osl", load.osl, "workload.osl"),
        Argument("isl_spread", 0, "workload.isl"),
        Argument("osl_spread", 0, "workload.osl"),
        Argument("requests", requests, "workload.requests"),
    ]


def _workload_of(scenario: Scenario) -> Workload:
    if scenario.workload is None:
        raise InputError(
            "no workload to make prompts for", file=scenario.file, field=f"{scenario.id}.workload"
        )
    return scenario.workload


# Examples. -----------------------------------------------------------------------------------

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
