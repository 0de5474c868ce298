"""The environment of an engine program: what the scenario says, and the knobs that live there."""

from perfgate.engines.refusal import refusal
from perfgate.engines.tensorrt_llm.table import Release
from perfgate.scenarios.scenario import EngineSettings, Scenario


def environment(scenario: Scenario, settings: EngineSettings, release: Release) -> dict[str, str]:
    """Variables to add to those of the caller.

    Programmatic dependent launch is ``TRTLLM_ENABLE_PDL``: set by hand up to 1.1 (best-performance
    guide, "B200 min-latency"), on by default since 1.2 and switched off with 0.

    Raises:
        InputError: the release has no variable for a setting, or the scenario names it otherwise.
    """
    found = dict(release.environment)
    if settings.pdl is not None:
        if release.pdl_variable is None:
            raise refusal(
                scenario, "engine.settings.pdl", settings.pdl, release, "no pdl: no switch for it"
            )
        value = "1" if settings.pdl else "0"
        said = scenario.environment.get(release.pdl_variable, value)
        if said != value:
            raise refusal(
                scenario,
                "engine.settings.pdl",
                settings.pdl,
                release,
                f"what environment says: {release.pdl_variable} is {said} there",
                "take one of the two out of the scenario",
            )
        found[release.pdl_variable] = value
    return {**found, **scenario.environment}
