"""Extra options: `engine.extra_args` on its way into the server's command line.

A scenario says each thing in one place. An option that a field of the scenario says, or that
perfgate gives for its own needs, is refused, whether or not the field is set, in every spelling and
abbreviation that the program takes.
"""

from collections.abc import Mapping

from perfgate.engines.extra_option_refusal import ExtraOptionRefused, said_elsewhere
from perfgate.engines.sglang.releases import Release
from perfgate.engines.sglang.releases.table import SERVE
from perfgate.scenarios.extra_options import ARGS, YAML, extra_options
from perfgate.scenarios.problem import Problem, dotted
from perfgate.scenarios.scenario import Scenario

_OWN = "perfgate itself"
_ONE_SERVER = "nothing: perfgate measures one server on this machine, over HTTP"
_OPEN = "nothing: perfgate and its clients ask without a key, over plain HTTP"
# Option of a setting whose name is not the scenario's field.
_FIELDS: Mapping[str, str] = {
    "model": "model",
    "served_name": "model.name",
    "host": _OWN,
    "port": _OWN,
    "device": "hardware.gpu",
    "chunk_size": "engine.settings.max_num_tokens",
    "prefill_tokens": "engine.settings.max_num_tokens",
    "ep_of_tp": "engine.settings.ep",
    "attention_dp_parts": "engine.settings.dp",
}
# Beside them, what would take the measurement out of perfgate's hands, or say a field in another
# way (options of 0.4.6, 0.5.3 and 0.5.23).
_NEVER: Mapping[str, str] = {
    "--config": f"{dotted(ARGS)}, one option after the other",
    "--model": "model",
    "--tokenizer-path": "model",
    "--revision": "model",
    **dict.fromkeys(("--enable-ep-moe", "--ep-size"), "engine.settings.ep"),
    "--cuda-graph-bs": "engine.settings.cuda_graphs",
    "--cuda-graph-max-bs": "engine.settings.cuda_graphs",
    "--cuda-graph-config": "engine.settings.cuda_graphs",
    **dict.fromkeys(("--api-key", "--admin-api-key", "--ssl-keyfile", "--ssl-certfile"), _OPEN),
    **dict.fromkeys(
        ("--nnodes", "--node-rank", "--dist-init-addr", "--nccl-init-addr"), _ONE_SERVER
    ),
    **dict.fromkeys(("--disaggregation-mode", "--grpc-mode", "--smg-grpc-mode"), _ONE_SERVER),
    "--fastapi-root-path": _OWN,
}


def words(scenario: Scenario, known: Release) -> tuple[str, ...]:
    """The scenario's extra words for the server.

    Raises:
        ExtraOptionRefused: a program or file that SGLang has not, or an option that a field of the
            scenario, or perfgate, gives.
    """
    engine = scenario.engine
    if engine.extra_yaml is not None:
        found = ", ".join(engine.extra_yaml)
        problem = Problem(YAML, "SGLang is given no settings file", found, "options in extra_args")
        raise ExtraOptionRefused(scenario, problem)
    owners = _owners(known)
    told: list[str] = []
    for option in extra_options(engine):
        if option.program != SERVE:
            path = (*ARGS, option.program)
            problem = Problem(path, "not a program of this scenario", option.program, SERVE)
            raise ExtraOptionRefused(scenario, problem)
        name = _as_declared(option.name)
        owner = owners.get(name) or next(
            (owner for spelling, owner in owners.items() if spelling.startswith(name)), None
        )
        if owner is not None:
            raise said_elsewhere(scenario, option.path, " ".join(option.words), owner)
        told += option.words
    return tuple(told)


def _owners(known: Release) -> dict[str, str]:
    """Every spelling of what is said elsewhere → where it is said."""
    found: dict[str, str] = {}
    for setting, option in known.options(SERVE).items():
        owner = _FIELDS.get(setting, f"engine.settings.{setting.partition('.')[0]}")
        found |= dict.fromkeys(option.spellings, owner)
    return found | dict(_NEVER)


def _as_declared(option: str) -> str:
    return "--" + option.removeprefix("--").replace("_", "-")
