"""What a release of SGLang cannot honour is refused here, before any GPU time.

The server is rendered on paper: an option that the release lacks is refused by the rendering
itself. What rendering cannot see has a rule of its own.
"""

from collections.abc import Iterator

from perfgate.core.locations import Locations
from perfgate.engines import extra_option_refusal
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.refusal import Refused, require_none
from perfgate.engines.sglang import serve
from perfgate.engines.sglang.releases import Release, all_releases, release
from perfgate.engines.sglang.resolved import in_flight
from perfgate.scenarios.extra_options import extra_options
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.scenario import EngineSettings, Scenario

_ON_PAPER = Locations(on_paper=True)
_NOWHERE = Endpoint("localhost", 8000, "model")
_NOT_SGLANGS = {
    "moe_max_num_tokens": "it has no such limit",
    "moe_load_balancer": "its own balancer has other numbers: write --enable-eplb under extra_args",
    "pdl": "it has no such switch",
    "iteration_log": "its log tells every few steps by itself",
    "cpu_threads": "SGLANG_CPU_OMP_THREADS_BIND under environment says it",
    "backend": "it has one",
}


def check(scenario: Scenario, build: EngineBuild) -> None:
    """Refuse what this release cannot honour.

    Raises:
        InputError: a setting, value or option that the release lacks; or a release without table.
    """
    known = release(build.version)
    require_none(
        scenario, known, (one for rule in _RULES for one in rule(scenario.engine.settings, known))
    )
    serve.serve(scenario, build, _NOWHERE, _ON_PAPER)


def refused_extras(scenario: Scenario) -> Iterator[Problem]:
    """See `extra_option_refusal.refused_extras`."""
    return extra_option_refusal.refused_extras(scenario, check, all_releases)


def attention_is_divided_alone(settings: EngineSettings) -> bool:
    """Whether attention DP is asked for without its number of parts."""
    return bool(settings.attention_dp) and settings.dp in (None, 1)


# Rules. -------------------------------------------------------------------------------------


def _settings_of_other_engines_are_not_set(
    settings: EngineSettings,
    known: Release,  # noqa: ARG001
) -> Iterator[Refused]:
    for field, instead in _NOT_SGLANGS.items():
        value = getattr(settings, field)
        if value is not None:
            yield Refused(
                f"engine.settings.{field}", value, f"not to be set with SGLang: {instead}"
            )


def _attention_dp_has_its_parts(settings: EngineSettings, known: Release) -> Iterator[Refused]:
    if attention_is_divided_alone(settings) and known.attention_dp_alone == "fails":
        yield Refused(
            "engine.settings.attention_dp",
            "true, without dp",
            "dp above 1: the server ends with 'Please set a dp-size > 1'",
            f"set dp, e.g. to {settings.tp}",
        )


def _replicas_do_not_divide_the_attention(
    settings: EngineSettings,
    known: Release,  # noqa: ARG001
) -> Iterator[Refused]:
    parts = settings.dp or 1
    if settings.attention_dp and settings.tp % parts:
        yield Refused(
            "engine.settings.dp", parts, f"a divisor of tp {settings.tp}, which it divides"
        )


def _graph_sizes_are_given_once(
    settings: EngineSettings,
    known: Release,  # noqa: ARG001
) -> Iterator[Refused]:
    """The largest of the sizes is what the server takes, whatever else it is told."""
    graphs, field = settings.cuda_graphs, "engine.settings.cuda_graphs"
    if graphs is None:
        return
    has_sizes = bool(graphs.batch_sizes) or graphs.max_batch_size is not None
    if not graphs.enabled and (has_sizes or graphs.padding is not None):
        yield Refused(field, "enabled: false, with sizes", "nothing else where graphs are off")
    if graphs.batch_sizes and graphs.max_batch_size is not None:
        yield Refused(field, "batch_sizes and max_batch_size", "one of them", "take one away")


_RULES = (
    _settings_of_other_engines_are_not_set,
    _attention_dp_has_its_parts,
    _replicas_do_not_divide_the_attention,
    _graph_sizes_are_given_once,
)


# `ServerArgs` of 0.4.6 to 0.5.23: what holds where nothing else is said.
_UNDER_SPECULATION = 48
_COMPILED = 32
_COMPILED_BY = "--torch-compile-max-bs"


def foreseen(scenario: Scenario, known: Release) -> Iterator[str]:
    """What SGLang is known to ignore or to bound, before it is started: one line for each.

    What the scenario lists as inert is left out. A running server reports the same (`resolved`).

    Args:
        scenario: what is asked.
        known: the release's table.
    """
    settings, inert = scenario.engine.settings, scenario.engine.inert or {}
    alone = attention_is_divided_alone(settings) and known.attention_dp_alone == "off"
    if alone and "attention_dp" not in inert:
        yield (
            f"attention_dp: SGLang {known.version} switches it off without a word where dp is not "
            f"above 1; dp: {settings.tp} divides the attention"
        )
    asked = in_flight(scenario)
    admitted = settings.max_batch_size
    if settings.mtp is not None and settings.mtp.layers and admitted is None:
        admitted = _UNDER_SPECULATION
        if asked > admitted:
            yield (
                f"mtp: SGLang runs at most {admitted} requests at once under speculative decoding, "
                f"{asked} are in flight; max_batch_size says otherwise"
            )
    is_sized = any(one.name == _COMPILED_BY for one in extra_options(scenario.engine))
    if settings.torch_compile and not is_sized and min(asked, admitted or asked) > _COMPILED:
        yield (
            f"torch_compile: SGLang compiles for batches of up to {_COMPILED} requests, {asked} "
            f"are in flight; {_COMPILED_BY} under extra_args says otherwise"
        )
