"""Output tokens counted twice: as the server, or the request, has them, and from the answers' text.

``sglang.bench_serving`` takes the length that it asked for where the server sends no usage beside a
text, as servers do unless they are asked for it: an answer that ended early counts in full. Its
second count encodes the texts again.
"""

from collections.abc import Mapping

from perfgate.core.errors import RunError
from perfgate.core.measurement import Json
from perfgate.scenarios.scenario import Workload

# Texts encoded again give a few percent more or fewer tokens; special tokens have no text.
NOTED = 0.1
REFUSED = 0.5
_FIX = (
    "measure with a client that asks the server for its count (vllm-bench), or ignore EOS and "
    "check that the server does"
)


def count_facts(facts: Mapping[str, Json]) -> dict[str, Json]:
    """What is noted where the two counts are further apart than an encoder makes them."""
    both = _both(facts)
    if both is None or _apart(*both) <= NOTED:
        return {}
    return {
        "output_count_differs": f"{both[0]:g} tokens reported, {both[1]:g} in the answers' text"
    }


def require_counted(facts: Mapping[str, Json], workload: Workload) -> None:
    """The output tokens reported are those that were generated, as far as the texts tell.

    Raises:
        RunError: ``incomplete``, the texts hold less than half; or the count is exactly what was
            asked for although answers may end early, and the texts hold less.
    """
    both = _both(facts)
    if both is None:
        return
    reported, encoded = both
    completed = facts.get("requests_completed")
    is_asked = (
        isinstance(completed, int)
        and workload.osl is not None
        and reported == completed * workload.osl
    )
    fewer = encoded < (1 - NOTED) * reported
    if encoded < REFUSED * reported or (fewer and is_asked and not workload.ignore_eos):
        raise RunError(
            "incomplete",
            f"{reported:g} output tokens reported, {encoded:g} in the answers' text: the lengths "
            "that were requested were counted, not those that were generated",
            evidence=(f'"total_output_tokens_retokenized": {encoded:g}',),
            hint=_FIX,
        )


def _both(facts: Mapping[str, Json]) -> tuple[float, float] | None:
    reported, encoded = facts.get("output_tokens"), facts.get("output_tokens_retokenized")
    if isinstance(reported, bool) or not isinstance(reported, int | float) or not reported:
        return None
    if isinstance(encoded, bool) or not isinstance(encoded, int | float):
        return None
    return float(reported), float(encoded)


def _apart(reported: float, encoded: float) -> float:
    return abs(reported - encoded) / reported
