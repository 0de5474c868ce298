"""What SGLang is known not to put in force, or to bound, before it is started. Pure.

Each of these a running server says of itself, too (`resolved`).
"""

from collections.abc import Iterator

from perfgate.engines.sglang.checks import attention_is_divided_alone
from perfgate.engines.sglang.releases import Release
from perfgate.engines.sglang.resolved import in_flight
from perfgate.scenarios.extra_options import extra_options
from perfgate.scenarios.scenario import Scenario

# `ServerArgs` of 0.4.6 to 0.5.23: what holds where nothing else is said.
_UNDER_SPECULATION = 48
_COMPILED = 32
_COMPILED_BY = "--torch-compile-max-bs"


def foreseen(scenario: Scenario, known: Release) -> Iterator[str]:
    """One line for each; what the scenario says to be inert is left out.

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
