"""Extra options: `engine.extra_args` on its way to `vllm serve`.

A scenario says each thing in one place. An extra option that a field of the scenario says, or that
perfgate gives for its own needs, is refused, whether or not the field is set, in each spelling that
the program takes for it: with ``_`` for ``-``, and by any beginning.
"""

from collections.abc import Iterable, Iterator, Mapping

from perfgate.engines.arguments import Argument
from perfgate.engines.extra_option_refusal import ExtraOptionRefused, said_elsewhere
from perfgate.engines.vllm.releases import Release
from perfgate.engines.vllm.releases.table import SERVE
from perfgate.scenarios.extra_options import ARGS, YAML, extra_options
from perfgate.scenarios.problem import Problem, dotted
from perfgate.scenarios.scenario import Scenario

PROGRAM = "vllm"
"""The program as `engine.extra_args` calls it: what a person types, without ``serve``."""

_OWN = "perfgate itself"
_ONE_SERVER = "nothing: perfgate measures one server, over HTTP"
# What would take the measurement out of perfgate's hands (options of 0.33.0).
_NEVER: Mapping[str, str] = {
    "--model": "model",
    "--served-model-name": "model.name",
    "--host": "listen.host",
    "--port": "listen.port",
    **dict.fromkeys(("--config", "--api-key", "--root-path", "--uds", "--middleware"), _OWN),
    **dict.fromkeys(("--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs"), _OWN),
    **dict.fromkeys(("--ssl-cert-reqs", "--ssl-ciphers", "--enable-ssl-refresh"), _OWN),
    **dict.fromkeys(("--headless", "--grpc", "--grpc-port", "--tokens-only"), _ONE_SERVER),
    **dict.fromkeys(("--nnodes", "--node-rank", "--master-addr", "--master-port"), _ONE_SERVER),
    **dict.fromkeys(("--data-parallel-size-local", "--data-parallel-rank"), _ONE_SERVER),
    **dict.fromkeys(("--data-parallel-address", "--data-parallel-start-rank"), _ONE_SERVER),
    **dict.fromkeys(("--data-parallel-external-lb", "--data-parallel-hybrid-lb"), _ONE_SERVER),
}
# Fields of the options that a scenario's settings can become.
_FIELDS: Mapping[str, str] = {
    "expert_parallel": "engine.settings.ep",
    "eager": "engine.settings.cuda_graphs",
    "graph_sizes": "engine.settings.cuda_graphs.batch_sizes",
    "max_graph_size": "engine.settings.cuda_graphs.max_batch_size",
    "served_name": "model.name",
    "host": "listen.host",
    "port": "listen.port",
}
# Options whose value says more than the settings do: taken only where a setting is spelled by them.
_WIDER = ("compilation", "speculation")
# Options that silently win over a setting, where that is set.
_OVERRULING: Mapping[str, tuple[str, ...]] = {
    "--kv-cache-memory-bytes": ("kv_cache_fraction",),
    "--num-gpu-blocks-override": ("kv_cache_fraction",),
    "--optimization-level": ("torch_compile", "cuda_graphs"),
    "--cudagraph-capture-sizes": ("cuda_graphs",),
    "--attention-config": ("attention_backend",),
    "--kernel-config": ("moe_backend",),
    "--spec-method": ("mtp",),
    "--spec-model": ("mtp",),
    "--spec-tokens": ("mtp",),
    "--disable-log-stats": ("iteration_log",),
}


def words(scenario: Scenario, known: Release, arguments: Iterable[Argument]) -> tuple[str, ...]:
    """The scenario's extra words for `vllm serve`.

    Args:
        scenario: the scenario.
        known: the release that is told.
        arguments: what it is given beside them.

    Raises:
        ExtraOptionRefused: an option that a field of the scenario, or perfgate, gives; or another
            place for options.
    """
    for problem in misplaced(scenario):
        raise ExtraOptionRefused(scenario, problem)
    taken = dict(_taken(scenario, known, arguments))
    found: list[str] = []
    for option in extra_options(scenario.engine):
        owner = _owner(_as_declared(option.name), taken)
        if owner is not None:
            raise said_elsewhere(scenario, option.path, " ".join(option.words), owner)
        found += option.words
    return tuple(found)


def misplaced(scenario: Scenario) -> Iterator[Problem]:
    """Extra options for another program, or in a file that vLLM is not given."""
    if scenario.engine.extra_yaml is not None:
        found = ", ".join(scenario.engine.extra_yaml)
        expected = f"nothing: write its options under {dotted(ARGS)}.{PROGRAM}"
        yield Problem(YAML, "vLLM is given no settings file", found, expected)
    for program in scenario.engine.extra_args or {}:
        if program != PROGRAM:
            expected = f"{PROGRAM}, for `vllm serve`"
            yield Problem((*ARGS, program), "not the engine's program", program, expected)


def _taken(
    scenario: Scenario, known: Release, arguments: Iterable[Argument]
) -> Iterator[tuple[str, str]]:
    """Each spelling that is not a scenario's to give, and whose it is."""
    rendered = {one.setting: one.field for one in arguments if one.value is not None}
    for setting, option in known.options(SERVE).items():
        if setting in _WIDER and setting not in rendered:
            continue
        owner = rendered.get(setting) or _FIELDS.get(setting, f"engine.settings.{setting}")
        for word in option.spellings:
            yield word.partition("=")[0], owner
    settings = scenario.engine.settings
    for name, overruled in _OVERRULING.items():
        for setting in overruled:
            if getattr(settings, setting) is not None:
                yield name, f"engine.settings.{setting}"
    yield from _NEVER.items()


def _owner(given: str, taken: Mapping[str, str]) -> str | None:
    """Whose the option is; of an unfinished name, whose the first is that it begins."""
    if given in taken:
        return taken[given]
    return next((owner for word, owner in taken.items() if word.startswith(given)), None)


def _as_declared(option: str) -> str:
    """The option with hyphens, as all of vLLM's are declared."""
    return "--" + option.removeprefix("--").replace("_", "-")
