"""Suite: what one pytest process knows of the suite: scenarios, run folder, campaigns.

The plugin tells it what pytest found; nothing here knows pytest.
"""

from collections.abc import Iterable
from dataclasses import replace

from perfgate.campaign import Campaign, Session
from perfgate.gate.performance import rule_for
from perfgate.injection import inject
from perfgate.outcome import Outcome
from perfgate.probe import Probe
from perfgate.scenarios.scenario import Scenario
from perfgate.tools import tools_for


class Suite:
    """The campaigns of one process, one per scenario, each with the probes selected in it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._probes: dict[str, list[Probe]] = {}
        self._campaigns: dict[str, Campaign] = {}

    def select(self, probes: Iterable[Probe]) -> None:
        """Tell which probes this process is to measure; the gate's error rates depend on it.

        Raises:
            InputError: an injection names no setting of a selected scenario.
        """
        for probe in probes:
            inject(probe.scenario, self.session.injections)
            self._probes.setdefault(probe.scenario.id, []).append(probe)
        tests = sum(
            len(probe.gating_metrics()) for group in self._probes.values() for probe in group
        )
        self.session = replace(self.session, rule=rule_for(max(1, tests)))

    def unable(self, probe: Probe) -> str | None:
        """Why this machine cannot run the probe; None if it can."""
        return self.session.machine.lacks(probe.scenario.hardware)

    def outcome(self, probe: Probe) -> Outcome:
        """What became of the probe; measures its scenario's campaign when first asked.

        Raises:
            MissingProgram: a program of the scenario is not installed.
            InputError: the scenario names something unknown, or cannot be honoured.
        """
        return self._campaign(probe.scenario).outcome(probe)

    def _campaign(self, scenario: Scenario) -> Campaign:
        if scenario.id not in self._campaigns:
            tools = tools_for(scenario)
            tools.require()
            self._campaigns[scenario.id] = Campaign(
                scenario, self._probes[scenario.id], tools, self.session
            )
        return self._campaigns[scenario.id]
