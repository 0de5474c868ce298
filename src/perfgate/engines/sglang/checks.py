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
