"""A stand-in engine that is in a container alone: its program, and what it says of its version."""

from standin import StandinEngine

from perfgate.core.errors import MissingProgram
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import Program
from perfgate.engines.base import Endpoint, EngineBuild, engine
from perfgate.scenarios.scenario import Scenario

PROGRAM = Program("stand-in-engine", "stand-in-engine", "its image", of_engine=True)


@engine("stand-in-boxed")
class BoxedEngine(StandinEngine):
    name = "stand-in-boxed"
    programs = (PROGRAM,)

    def build(self, locations: Locations) -> EngineBuild:
        argv = (*locations.find(PROGRAM), "--version")
        answer = locations.ask(argv, 60, of_engine=True)
        if not answer.is_good:
            raise MissingProgram(f"the stand-in tells no version: {answer.trouble}")
        return EngineBuild(self.name, answer.stdout.strip(), answer.stdout.strip())

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        command = super().serve(scenario, build, endpoint, locations)
        return Command((*locations.find(PROGRAM), *command.argv[2:]))
