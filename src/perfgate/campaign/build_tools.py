"""Build tools: a scenario's programs, of the build under test or of another one. Starts nothing."""

from dataclasses import replace

from perfgate.campaign.session import Session
from perfgate.core.errors import InputError
from perfgate.core.installation import Installation
from perfgate.core.locations import Locations
from perfgate.launchers.base import Launcher
from perfgate.plan.toolchain import BuildOverride, Toolchain, toolchain_for
from perfgate.scenarios.scenario import Scenario


def tools_under_test(scenario: Scenario, session: Session) -> Toolchain:
    """The scenario's programs with the build under test, as the session says of it.

    Raises:
        InputError: no image is known; stand-ins are not in a container; a name is unknown.
    """
    said = session.override.of(scenario.engine.name)
    if session.synthetic and said.version is None:  # a rehearsal plays the document's release
        said = replace(said, version=scenario.source.engine_version)
    return tools_with(scenario, session, session.launcher, said)


def tools_with(
    scenario: Scenario,
    session: Session,
    launcher: Launcher,
    said: BuildOverride,
    build: Installation | None = None,
) -> Toolchain:
    """The scenario's programs as `launcher` reaches them.

    Args:
        scenario: the scenario.
        session: whether stand-ins play the programs.
        launcher: says where they are.
        said: what a person says of the build.
        build: where the engine's are of a build that is not this environment's; None: as the
            environment says.

    Raises:
        InputError: as `tools_under_test`.
    """
    where = launcher.locations(Locations.of_environment(), scenario, said.version)
    if session.synthetic and where.inside is not None:
        raise InputError(
            "a rehearsal's stand-ins are not in a container",
            field="--rehearse",
            found=f"the launcher {launcher.name} with a container",
            expected="a launcher without one",
            hint="name a site file without the container in PERFGATE_SITE, or rehearse with "
            "--launcher local",
        )
    return toolchain_for(scenario, replace(where, build=build), said)
