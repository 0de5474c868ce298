"""What a release of vLLM cannot honour is refused here, before any GPU time.

`vllm serve` is rendered on paper: an option that the release lacks is refused by the rendering
itself. What rendering cannot see has a rule of its own.
"""

from collections.abc import Iterator

from perfgate.core.locations import Locations
from perfgate.engines import extra_option_refusal
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.refusal import Refused, require_none
from perfgate.engines.vllm import serve
from perfgate.engines.vllm.releases import all_releases, release
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import Scenario

_ON_PAPER = Locations(on_paper=True)
_NOWHERE = Endpoint("localhost", 8000, "model")
# Programs that hold another engine themselves.
_OF_TENSORRT_LLM = ("trtllm-bench", "trtllm-quickstart", "trtllm-gpqa", "trtllm-eval")


def check(scenario: Scenario, build: EngineBuild) -> None:
    """Refuse what this release cannot honour.

    Raises:
        InputError: a setting, value or program that the release lacks; or a release without table.
    """
    known = release(build.version)
    require_none(scenario, known, (one for rule in _RULES for one in rule(scenario)))
    serve.serve(scenario, build, _NOWHERE, _ON_PAPER)


def refused_extras(scenario: Scenario) -> Iterator[Problem]:
    """See `extra_option_refusal.refused_extras`."""
    return extra_option_refusal.refused_extras(scenario, check, all_releases)


# Rules. -------------------------------------------------------------------------------------


def _settings_of_other_engines_are_not_set(scenario: Scenario) -> Iterator[Refused]:
    settings = scenario.engine.settings
    for field, instead in (
        ("backend", "it has one"),
        ("pdl", "it has no switch for it"),
        ("moe_max_num_tokens", "it has no option for it"),
        ("moe_load_balancer", "write --enable-eplb and --eplb-config under extra_args"),
        ("cpu_threads", "set VLLM_CPU_OMP_THREADS_BIND or OMP_NUM_THREADS in environment"),
    ):
        value = getattr(settings, field)
        if value is not None:
            expected = f"not to be set with vLLM: {instead}"
            yield Refused(f"engine.settings.{field}", value, expected)


def _attention_is_parallel_by_dp(scenario: Scenario) -> Iterator[Refused]:
    """Data parallelism of a model with experts is that of its attention; ranks are tp × pp × dp."""
    settings, gpus = scenario.engine.settings, scenario.hardware.gpus or 1
    dp = settings.dp or 1
    if settings.attention_dp and dp == 1:
        expected = "not to be set alone: dp says over how many ranks, and tp × pp × dp = GPUs"
        hint = (
            f"write dp: {gpus} and tp: 1, with ep: {gpus} to spread the experts"
            if gpus > 1
            else None
        )
        yield Refused("engine.settings.attention_dp", True, expected, hint)
    product = settings.tp * settings.stages * dp
    if dp > 1 and product != gpus:
        found = f"{dp}, with tp {settings.tp} and pp {settings.stages} on {gpus} GPUs"
        yield Refused("engine.settings.dp", found, "tp × pp × dp = GPUs: each part has its own")
    ranks = settings.tp * dp
    if settings.ep not in (None, 1, ranks):
        expected = f"1, or {ranks}: the experts are spread over all of tp × dp, or over none"
        yield Refused("engine.settings.ep", settings.ep, expected)


def _graph_sizes_are_given_once(scenario: Scenario) -> Iterator[Refused]:
    graphs, field = scenario.engine.settings.cuda_graphs, "engine.settings.cuda_graphs"
    if graphs is None:
        return
    if graphs.padding is False:
        expected = "true, or nothing: batches are padded to the next captured size"
        yield Refused(f"{field}.padding", False, expected)
    sizes = [name for name in ("batch_sizes", "max_batch_size") if getattr(graphs, name)]
    if not graphs.enabled and sizes:
        found = f"enabled: false, with {', '.join(sizes)}"
        yield Refused(field, found, "nothing else where graphs are off")
    if len(sizes) > 1:
        yield Refused(field, " and ".join(sizes), "one of them", "take one away")


def _one_machine_serves(scenario: Scenario) -> Iterator[Refused]:
    if scenario.hardware.nodes > 1:
        expected = "1: vLLM is started on one machine"
        yield Refused("hardware.nodes", scenario.hardware.nodes, expected)


def _programs_are_not_tensorrt_llms(scenario: Scenario) -> Iterator[Refused]:
    named = [("accuracy", task.evaluator) for task in scenario.accuracy]
    if scenario.workload is not None:
        named.append(("workload.client", scenario.workload.client))
    if scenario.smoke is not None:
        named.append(("smoke.client", scenario.smoke.client))
    for field, name in named:
        if name in _OF_TENSORRT_LLM:
            yield Refused(field, name, "a client or evaluator that asks a server")


_RULES = (
    _settings_of_other_engines_are_not_set,
    _attention_is_parallel_by_dp,
    _graph_sizes_are_given_once,
    _one_machine_serves,
    _programs_are_not_tensorrt_llms,
)
