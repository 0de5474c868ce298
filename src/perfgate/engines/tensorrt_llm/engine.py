"""TensorRT-LLM as perfgate's engine: what a release cannot honour is refused before any GPU time.

Every program that the scenario needs is rendered on paper: an option or a YAML key that the release
lacks is refused by the rendering itself. What rendering cannot see has a rule of its own. `words`
lists what settings can be called in any release; any other word is a typing error, found where a
scenario file is read.
"""

from collections.abc import Iterator, Mapping

from perfgate.core.errors import InputError
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import (
    BENCHMARK_SERVING,
    TENSORRT_LLM_PYTHON,
    TRTLLM_BENCH,
    TRTLLM_EVAL,
    TRTLLM_LAUNCH,
    TRTLLM_SERVE,
)
from perfgate.engines.base import (
    NOWHERE,
    ON_PAPER,
    Engine,
    EngineBuild,
    ReleaseImage,
    engine,
)
from perfgate.engines.refusal import ExtraOptionRefused, Refused, require_none
from perfgate.engines.served.settings import OFFLINE, askers, refused_settings
from perfgate.engines.tensorrt_llm import (
    checkout,
    document_rules,
    extra_options,
    installed_options,
    resolved,
    table,
)
from perfgate.engines.tensorrt_llm import programs as commands
from perfgate.engines.tensorrt_llm.programs import pinned
from perfgate.engines.tensorrt_llm.table import FACTS, TABLES, release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import Scenario


@engine("tensorrt-llm")
class TensorRTLLM(Engine):
    """TensorRT-LLM on NVIDIA GPUs, 0.19 and newer."""

    distribution = "tensorrt_llm"
    image = ReleaseImage("nvcr.io/nvidia/tensorrt-llm/release")
    is_rehearsed = True
    quantized_by_file = True
    interpreter = TENSORRT_LLM_PYTHON
    programs = (
        TRTLLM_BENCH,
        TRTLLM_SERVE,
        TRTLLM_EVAL,
        TRTLLM_LAUNCH,
        TENSORRT_LLM_PYTHON,
        BENCHMARK_SERVING,
    )
    tables = TABLES
    rules = (document_rules.broken_document_rules,)
    settings_words = resolved.WORDS
    build = staticmethod(installed_options.installed)
    serve = staticmethod(commands.serve)
    verify = staticmethod(installed_options.verify)
    effective_settings = staticmethod(resolved.effective_settings)

    @classmethod
    def words(cls) -> Mapping[str, frozenset[str]]:
        """See `Engine.words`."""
        found = TABLES.words(FACTS.words, table.THROUGHPUT, table.SERVE, table.QUICKSTART)
        found["moe_backend"] |= {word for one in TABLES.all() for word in one.moe_backends or ()}
        return {setting: found[setting] | words for setting, words in FACTS.words.items()}

    def check(self, scenario: Scenario, build: EngineBuild) -> None:
        """See `Engine.check`."""
        known = release(build.version)
        require_none(scenario, known, _refusals(scenario))
        load, asked = scenario.workload, {name for _, name in askers(scenario)}
        runs = [table.SERVE] if is_served(scenario) else []
        runs += [table.THROUGHPUT] if "trtllm-bench" in asked else []
        runs += [table.EVAL] if "trtllm-eval" in asked else []
        for problem in extra_options.misplaced(scenario, runs):
            raise ExtraOptionRefused(scenario, problem)
        if table.SERVE in runs:
            commands.serve(scenario, build, NOWHERE, ON_PAPER)
            _prompts_fit(scenario, build, table.SERVE)
        if load is not None and table.THROUGHPUT in runs:
            for point in scenario.points():
                commands.throughput(scenario, build, point, checkout.DATASET, ON_PAPER)
                if load.dataset == "synthetic":
                    checkout.prepare(scenario, build, point.requests, ON_PAPER)
            _prompts_fit(scenario, build, table.THROUGHPUT)
        if scenario.smoke is not None and scenario.smoke.client == "trtllm-quickstart":
            checkout.quickstart(scenario, build, scenario.smoke, ON_PAPER)
        for task in scenario.accuracy:
            if task.evaluator == "trtllm-gpqa":
                checkout.gpqa(scenario, build, task, checkout.GPQA_FILE, ON_PAPER)
            if task.evaluator == "trtllm-eval":
                commands.evaluate(scenario, build, task, None, ON_PAPER)

    def served_model(self, scenario: Scenario, locations: Locations) -> str:
        """See `Engine.served_model`: the server shows the last part of a folder, or the name.

        Source: `OpenAIServer.__init__` in `tensorrt_llm/serve/openai_server.py`.
        """
        model = reference(scenario, locations)
        return model.name if model.path is None else model.path.name


def is_served(scenario: Scenario) -> bool:
    """Whether a server runs; else every program has the engine inside itself."""
    return any(name not in OFFLINE for _, name in askers(scenario))


def _refusals(scenario: Scenario) -> Iterator[Refused]:
    """What no release can honour and rendering cannot see."""
    if scenario.hardware.gpu == "none":
        yield Refused("hardware.gpu", "none", "NVIDIA GPUs")
    threads = scenario.engine.settings.cpu_threads
    if threads is not None:
        expected = "not to be set: TensorRT-LLM computes on GPUs"
        yield Refused("engine.settings.cpu_threads", threads, expected)
    yield from refused_settings(scenario, FACTS)
    load = scenario.workload
    if load is None or load.client != "trtllm-bench":
        return
    if not load.ignore_eos:
        expected = "true: trtllm-bench runs every request to its full output length"
        yield Refused("workload.ignore_eos", False, expected)
    if load.max_request_rate is not None:
        expected = "not to be set: trtllm-bench has no option for it"
        yield Refused("workload.max_request_rate", load.max_request_rate, expected)
    if load.dataset == "sharegpt":
        yield Refused("workload.dataset", load.dataset, "synthetic or real with trtllm-bench")


def _prompts_fit(scenario: Scenario, build: EngineBuild, program: str) -> None:
    """A prompt that is not cut into chunks must fit into one batch of tokens.

    The best-performance guide says so ("Exploring more ISL/OSL combinations"); the engine fails
    with "should not exceed max_num_tokens" (#9277).
    """
    settings, load = pinned(scenario, build, program), scenario.workload
    most, chunked = settings.max_num_tokens, settings.chunked_context
    if chunked is None:
        chunked = release(build.version).defaults[program].chunked_context
    if load is None or load.isl is None or most is None or chunked or most >= load.isl:
        return
    raise InputError(
        "prompts do not fit: without chunked context max_num_tokens must cover the longest",
        file=scenario.file,
        field=f"{scenario.id}.engine.settings.max_num_tokens",
        found=f"max_num_tokens {most}, isl {load.isl}",
        expected=f"at least {load.isl}, or chunked_context: true",
    )
