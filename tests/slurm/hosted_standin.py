"""A plugin of the checkouts made here: the stand-in engine listens where its endpoint says."""

import sys
from dataclasses import replace
from pathlib import Path

from standin import StandinEngine

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.scenarios.scenario import Scenario

SERVER = Path(__file__).with_name("hosted_server.py")
_serve = StandinEngine.serve


def serve(
    self: StandinEngine,
    scenario: Scenario,
    build: EngineBuild,
    endpoint: Endpoint,
    locations: Locations,
) -> Command:
    """As the stand-in's own, at the endpoint's address."""
    command = _serve(self, scenario, build, endpoint, locations)
    return replace(command, argv=(sys.executable, str(SERVER), endpoint.host, *command.argv[1:]))


StandinEngine.serve = serve  # type: ignore[method-assign]
