"""A stand-in engine that is in a container alone: its program, and what it says of its version."""

from standin import StandinEngine

from perfgate.core.command import Command
from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Places
from perfgate.core.programs import Program
from perfgate.engines.base import Endpoint, EngineBuild, engine
from perfgate.scenarios.scenario import Scenario

PROGRAM = Program("stand-in-engine", "stand-in-engine", "its image", of_engine=True)


@engine("stand-in-boxed")
class BoxedEngine(StandinEngine):
    name = "stand-in-boxed"

    def build(self, places: Places) -> EngineBuild:
        argv = (*places.find(PROGRAM), "--version")
        answer = places.ask(argv, 60, of_engine=True)
        if not answer.is_good:
            raise MissingProgram(f"the stand-in tells no version: {answer.trouble}")
        return EngineBuild(self.name, answer.stdout.strip(), answer.stdout.strip())

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, places: Places
    ) -> Command:
        command = super().serve(scenario, build, endpoint, places)
        return Command((*places.find(PROGRAM), *command.argv[2:]))
