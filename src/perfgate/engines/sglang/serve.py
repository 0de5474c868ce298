"""`python3 -m sglang.launch_server`: the server that the load clients and lm_eval talk to."""

from dataclasses import replace

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import SGLANG_SERVE
from perfgate.engines.arguments import Argument, spelled
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.extra_option_refusal import asked_by
from perfgate.engines.model_reference import reference
from perfgate.engines.sglang import extra_options
from perfgate.engines.sglang.releases import release, same_release
from perfgate.engines.sglang.releases.table import SERVE
from perfgate.engines.sglang.settings import arguments
from perfgate.scenarios.scenario import EngineSettings, Scenario


def serve(
    scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
) -> Command:
    """The command that serves the scenario's model on `endpoint`.

    A model from the hub is served under its own name; one from a folder is given it.

    Raises:
        InputError: a setting that this release cannot express.
        MissingProgram: the program is not installed.
    """
    known = release(build.version)
    model = reference(scenario, locations)
    given = (
        Argument("model", model.where, "model"),
        Argument("host", endpoint.host, "listen.host"),
        Argument("port", endpoint.port, "listen.port"),
        Argument("served_name", None if model.path is None else endpoint.model, "model.name"),
        Argument("device", "cpu" if scenario.hardware.gpu == "none" else None, "hardware.gpu"),
        *arguments(scenario, pinned(scenario, build), known),
    )
    return Command(
        (
            *locations.find(SGLANG_SERVE),
            *spelled(scenario, known, SERVE, given),
            *extra_options.words(scenario, known),
        ),
        env=dict(scenario.environment),
        asked_by=asked_by(scenario),
    )


def pinned(scenario: Scenario, build: EngineBuild) -> EngineSettings:
    """The scenario's settings, with the document's defaults for what the scenario leaves open.

    A default that moved between releases is written out, so that it cannot pass for a regression.
    At the document's own release nothing is added. At any other, the overlap scheduler under
    speculation is as it was then. All other defaults are the same in every release, the seed (a
    new one at each start) among them, or follow from the GPU's memory.

    Args:
        scenario: the scenario; without the document's release there is nothing to pin to.
        build: the release under test.

    Raises:
        InputError: one of the two versions has no release table.
    """
    documented, settings = scenario.source.engine_version, scenario.engine.settings
    speculates = settings.mtp is not None and settings.mtp.layers > 0
    if documented is None or not speculates or settings.overlap_scheduler is not None:
        return settings
    if same_release(documented, build.version):
        return settings
    then = release(documented).overlap_with_speculation
    if then == release(build.version).overlap_with_speculation:
        return settings
    return replace(settings, overlap_scheduler=then)
