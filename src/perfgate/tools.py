"""Tools: the programs that one scenario needs, found and asked for their versions once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from perfgate.clients.base import Client, client
from perfgate.engines.base import Engine, EngineBuild, engine
from perfgate.evaluators.base import Evaluator, evaluator
from perfgate.hardware import Machine
from perfgate.measurement import Json
from perfgate.probe import Probe
from perfgate.scenarios.scenario import LoadPoint, Scenario


@dataclass(frozen=True)
class Tools:
    """Engine, client and evaluators of one scenario."""

    scenario: Scenario
    engine: Engine
    client: Client | None
    evaluators: Mapping[str, Evaluator]

    @cached_property
    def build(self) -> EngineBuild:
        """The engine build under test."""
        return self.engine.build()

    @cached_property
    def model_facts(self) -> Mapping[str, Json]:
        """What identifies the model's weights."""
        return self.engine.model_facts(self.scenario)

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Program name → version, of client and evaluators."""
        programs: list[Client | Evaluator] = list(self.evaluators.values())
        if self.client is not None:
            programs.append(self.client)
        return {program.name: program.version() for program in programs}

    def require(self) -> None:
        """Make sure that everything is here and can honour the scenario, before any work.

        Raises:
            InputError: the engine cannot honour a setting, or an input file is unusable.
            MissingProgram: a program is not installed.
        """
        self.engine.check(self.scenario)
        _ = (self.build, self.versions, self.model_facts)

    def fingerprint(self, probe: Probe, machine: Machine) -> dict[str, str]:
        """The facts that must be equal for this probe's measurements to be compared.

        Speed depends on the machine, accuracy on the weights; both on what is asked and by whom.
        """
        common = {"content": probe.content_hash(), "model": str(self.model_facts["sha256"])[:16]}
        if isinstance(probe.what, LoadPoint):
            name = self.client.name if self.client else ""
            return {**common, "client": f"{name} {self.versions[name]}", **machine.fingerprint()}
        name = probe.what.evaluator
        return {**common, "evaluator": f"{name} {self.versions[name]}"}


def tools_for(scenario: Scenario) -> Tools:
    """The tools that a scenario names.

    Raises:
        InputError: a name that no engine, client or evaluator has.
    """
    load = scenario.workload
    names = {task.evaluator for task in scenario.accuracy}
    return Tools(
        scenario,
        engine[scenario.engine.name](),
        client[load.client]() if load else None,
        {name: evaluator[name]() for name in names},
    )
