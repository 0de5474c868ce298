"""What a release of TensorRT-LLM cannot honour is refused here, before any GPU time.

Every program that the scenario needs is rendered on paper: an option or a YAML key that the release
lacks is refused by the rendering itself. What rendering cannot see has a rule of its own.
"""

from collections.abc import Iterator

from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.refusal import (
    ExtraOptionRefused,
    Refused,
    refused_by_tables,
    require_none,
)
from perfgate.engines.served.settings import refused_settings
from perfgate.engines.tensorrt_llm import checkout, extra_options, programs
from perfgate.engines.tensorrt_llm.pinning import pinned
from perfgate.engines.tensorrt_llm.table import EVAL, SERVE, TABLES, THROUGHPUT, Release, release
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import EngineSettings, Scenario

BENCH_CLIENT = "trtllm-bench"
QUICKSTART_CLIENT = "trtllm-quickstart"
GPQA_EVALUATOR = "trtllm-gpqa"
EVALUATOR = "trtllm-eval"
_OFFLINE = frozenset({BENCH_CLIENT, QUICKSTART_CLIENT, GPQA_EVALUATOR, EVALUATOR})

_FOREIGN = {  # settings of other engines
    "dp": "its attention's data parallelism is attention_dp: true",
    "slowed_percent": "it has no such switch",
    "kv_cache_reuse": "write kv_cache_config.enable_block_reuse under extra_yaml",
    "quantization": "the checkpoint says it",
    "seed": "the engine takes none",
}

_ON_PAPER = Locations(on_paper=True)
_NOWHERE = Endpoint("localhost", 8000, "model")


def check(scenario: Scenario, build: EngineBuild) -> None:
    """Refuse what this release cannot honour.

    Raises:
        InputError: a setting, value or program that the release lacks; or a release without table.
    """
    known = release(build.version)
    require_none(scenario, known, _refusals(scenario))
    _extra_options_have_their_program(scenario)
    if is_served(scenario):
        programs.serve(scenario, build, _NOWHERE, _ON_PAPER)
        _prompts_fit(scenario, known, pinned(scenario, build, SERVE), SERVE)
    load = scenario.workload
    if load is not None and load.client == BENCH_CLIENT:
        for point in scenario.points():
            programs.throughput(scenario, build, point, checkout.DATASET, _ON_PAPER)
            if load.dataset == "synthetic":
                checkout.prepare(scenario, build, point.requests, _ON_PAPER)
        _prompts_fit(scenario, known, pinned(scenario, build, THROUGHPUT), THROUGHPUT)
    if scenario.smoke is not None and scenario.smoke.client == QUICKSTART_CLIENT:
        checkout.quickstart(scenario, build, scenario.smoke, _ON_PAPER)
    _evaluators_can(scenario, build)


def _evaluators_can(scenario: Scenario, build: EngineBuild) -> None:
    """Render the programs that evaluate without a server."""
    for task in scenario.accuracy:
        if task.evaluator == GPQA_EVALUATOR:
            checkout.gpqa(scenario, build, task, checkout.GPQA_FILE, _ON_PAPER)
        if task.evaluator == EVALUATOR:
            programs.evaluate(scenario, build, task, None, _ON_PAPER)


def refused_extras(scenario: Scenario) -> Iterator[Problem]:
    """See `refusal.refused_by_tables`."""
    return refused_by_tables(scenario, check, TABLES.all)


def _extra_options_have_their_program(scenario: Scenario) -> None:
    load = scenario.workload
    programs = [SERVE] if is_served(scenario) else []
    programs += [THROUGHPUT] if load is not None and load.client == BENCH_CLIENT else []
    programs += [EVAL] if any(task.evaluator == EVALUATOR for task in scenario.accuracy) else []
    for problem in extra_options.misplaced(scenario, programs):
        raise ExtraOptionRefused(scenario, problem)


def is_served(scenario: Scenario) -> bool:
    """Whether a server runs; else every program has the engine inside itself."""
    names = [task.evaluator for task in scenario.accuracy]
    names += [scenario.workload.client] if scenario.workload is not None else []
    names += [scenario.smoke.client] if scenario.smoke is not None else []
    return any(name not in _OFFLINE for name in names)


# Rules. -------------------------------------------------------------------------------------


def _refusals(scenario: Scenario) -> Iterator[Refused]:
    if scenario.hardware.gpu == "none":
        yield Refused("hardware.gpu", "none", "NVIDIA GPUs")
    threads = scenario.engine.settings.cpu_threads
    if threads is not None:
        expected = "not to be set: TensorRT-LLM computes on GPUs"
        yield Refused("engine.settings.cpu_threads", threads, expected)
    yield from refused_settings(scenario, "TensorRT-LLM", _FOREIGN)
    yield from _bench_has_no_such_load(scenario)


def _bench_has_no_such_load(scenario: Scenario) -> Iterator[Refused]:
    load = scenario.workload
    if load is None or load.client != BENCH_CLIENT:
        return
    if not load.ignore_eos:
        expected = "true: trtllm-bench runs every request to its full output length"
        yield Refused("workload.ignore_eos", False, expected)
    if load.max_request_rate is not None:
        expected = "not to be set: trtllm-bench has no option for it"
        yield Refused("workload.max_request_rate", load.max_request_rate, expected)
    if load.dataset == "sharegpt":
        yield Refused("workload.dataset", load.dataset, "synthetic or real with trtllm-bench")


def _prompts_fit(
    scenario: Scenario, known: Release, settings: EngineSettings, program: str
) -> None:
    """A prompt that is not cut into chunks must fit into one batch of tokens.

    The best-performance guide says so ("Exploring more ISL/OSL combinations"); the engine fails
    with "should not exceed max_num_tokens" (#9277).
    """
    load, most = scenario.workload, settings.max_num_tokens
    chunked = settings.chunked_context
    if chunked is None:
        chunked = known.defaults[program].chunked_context
    if load is None or load.isl is None or most is None or chunked or most >= load.isl:
        return
    raise InputError(
        "prompts do not fit: without chunked context max_num_tokens must cover the longest",
        file=scenario.file,
        field=f"{scenario.id}.engine.settings.max_num_tokens",
        found=f"max_num_tokens {most}, isl {load.isl}",
        expected=f"at least {load.isl}, or chunked_context: true",
    )
