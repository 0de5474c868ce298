"""The environment of `vllm serve`: what the scenario says, and the knob that lives there."""

from perfgate.engines.refusal import refusal
from perfgate.engines.vllm.releases import Release
from perfgate.scenarios.scenario import EngineSettings, Scenario

_FIELD = "engine.settings.attention_backend"
_OLD = "VLLM_ATTENTION_BACKEND"  # a release that has an option instead may ignore it


def environment(scenario: Scenario, settings: EngineSettings, known: Release) -> dict[str, str]:
    """Variables to add to those of the caller.

    Raises:
        InputError: the scenario names the kernels of the attention twice, or by a variable that
            the release does not read.
    """
    said = scenario.environment.get(_OLD)
    if known.attention_variable is None:
        if said is not None:
            expected = "not to be set: the release ignores it, at most with a line in its log"
            hint = "write engine.settings.attention_backend instead"
            raise refusal(scenario, f"environment.{_OLD}", said, known, expected, hint)
        return dict(scenario.environment)
    asked = settings.attention_backend
    if asked is None:
        return dict(scenario.environment)
    if said not in (None, asked):
        expected = f"what environment says: {known.attention_variable} is {said} there"
        raise refusal(scenario, _FIELD, asked, known, expected)
    return {known.attention_variable: asked, **scenario.environment}
