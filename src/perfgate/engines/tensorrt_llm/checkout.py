"""What TensorRT-LLM's Python runs: modules of its package, and programs that only a checkout has.

Those are its example programs, a first answer and GPQA as its README evaluates it, and up to 1.1
the tool that makes synthetic prompts (best-performance guide, "Dataset preparation" and "B200
max-throughput for R1"). An interpreter is found nearly everywhere; a module of an engine that is
absent is absent, too.
"""

from collections.abc import Iterator
from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.programs.command import Command, Step
from perfgate.core.programs.locations import TENSORRT_LLM_SOURCE, Locations
from perfgate.core.programs.programs import TENSORRT_LLM_PYTHON, TRTLLM_BENCH, Program
from perfgate.engines.arguments import Argument, of_graphs, of_settings, spelled
from perfgate.engines.base import EngineBuild
from perfgate.engines.installed_programs import answer
from perfgate.engines.refusal import Refused, require_none
from perfgate.engines.tensorrt_llm.programs import TASKS, environment, only_pytorch, pinned
from perfgate.engines.tensorrt_llm.table import BENCH, GENERATOR, GPQA, QUICKSTART, Release, release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import AccuracyTask, CudaGraphs, Mtp, Scenario, Smoke

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
    known, load = release(build.version), scenario.workload
    tool, where = known.dataset_tool, reference(scenario, locations).where
    if load is None or load.isl is None or load.osl is None:
        raise InputError(
            "synthetic prompts need lengths",
            file=scenario.file,
            field=f"{scenario.id}.workload",
            found="none" if load is None else f"isl {load.isl}, osl {load.osl}",
            expected="both, in tokens",
        )
    own = [Argument("seed", load.seed or None, "workload.seed")]
    if tool.script is None:  # the subcommand takes the tokenizer from --model, not --model_path
        model = [Argument("model", where, "model.name")]
        bench = (*locations.find(TRTLLM_BENCH), *spelled(scenario, known, BENCH, model))
        head = (*bench, "prepare-dataset")
        own = [Argument("output", DATASET, "workload.dataset"), *own]
    else:
        head = script(locations, tool.script)
        tokenizer = Argument("tokenizer", where, "model.name")
        own = [Argument("to_stdout", True, "workload.dataset"), tokenizer, *own]
    lengths = [
        Argument("isl", load.isl, "workload.isl"),
        Argument("osl", load.osl, "workload.osl"),
        Argument("isl_spread", 0, "workload.isl"),
        Argument("osl_spread", 0, "workload.osl"),
        Argument("requests", requests, "workload.requests"),
    ]
    argv = (
        *head,
        *spelled(scenario, known, tool.program, own),
        GENERATOR,
        *spelled(scenario, known, f"{tool.program} {GENERATOR}", lengths),
    )
    command = Command(argv, stdout=None if tool.script is None else DATASET)
    return Step("prepare_dataset", command, produces=DATASET)


# Examples. -----------------------------------------------------------------------------------

GPQA_FILE = "gpqa_diamond.csv"
GPQA_QUESTIONS = TASKS["gpqa_diamond"].questions  # rows of gpqa_diamond.csv

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
    require_none(scenario, known, only_pytorch(settings, f"{QUICKSTART} knows no other"))
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
    example = script(locations, f"{known.examples}/{QUICKSTART}")
    words = spelled(scenario, known, QUICKSTART, arguments)
    return Command((*example, *words), env=environment(scenario, settings, known))


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
    require_none(scenario, known, _gpqa_refusals(known, task))
    require_none(scenario, known, only_pytorch(settings, f"{GPQA} knows no other"))
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
    example = script(locations, f"examples/{GPQA}")
    words = spelled(scenario, known, GPQA, arguments)
    return Command((*example, *words), env=environment(scenario, settings, known))


def _gpqa_refusals(known: Release, task: AccuracyTask) -> Iterator[Refused]:
    """Of releases without ``gpqa_llmapi.py``, and values that it cannot be given."""
    if GPQA not in known.programs:
        expected = f"0.19: later releases have no examples/{GPQA} (#3483)"
        hint = "evaluate GPQA with trtllm-eval, whose score is another: it shuffles the choices"
        yield Refused("accuracy.evaluator", task.evaluator, expected, hint)
    if task.fewshot:
        yield Refused("accuracy.fewshot", task.fewshot, "0: it shows no examples")


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
