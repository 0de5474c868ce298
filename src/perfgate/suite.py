"""Suite: what one pytest process knows of the suite: scenarios, run folder, campaigns.

The plugin tells it what pytest found; nothing here knows pytest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfgate import places
from perfgate.campaign import Campaign
from perfgate.claims import ClaimProbe, claim_outcome
from perfgate.gate.performance import rule_for
from perfgate.injection import inject
from perfgate.outcome import Outcome
from perfgate.plan import commands_to_verify
from perfgate.probe import Probe
from perfgate.scenarios.scenario import Scenario
from perfgate.session import Session
from perfgate.sweeps import SweepProbe, sweep_outcome
from perfgate.tools import BuildOverride, Tools, needs_server, tools_for

# What a test of the suite is about.
Selected = Probe | ClaimProbe | SweepProbe

_STANDS_IN_FOR = "tensorrt-llm"  # the engine whose programs a rehearsal has


class Suite:
    """The campaigns of one process, one per scenario, each with the probes selected in it.

    Args:
        session: what the campaigns share.
        override: what a person says of the engine's build.
    """

    def __init__(self, session: Session, override: BuildOverride | None = None) -> None:
        self.session = session
        self._override = override or BuildOverride()
        self._probes: dict[str, list[Probe]] = {}
        self._campaigns: dict[str, Campaign] = {}

    def select(self, selected: Iterable[Selected]) -> None:
        """Tell what this process is to measure; the gate's error rates depend on how much it is.

        Raises:
            InputError: an injection names no setting of a selected scenario.
        """
        tests = 0
        for one in selected:
            tests += 1 if isinstance(one, ClaimProbe) else len(one.gating_metrics())
            for probe in probes_of(one):
                inject(probe.scenario, self.session.injections)
                group = self._probes.setdefault(probe.scenario.id, [])
                if probe not in group:
                    group.append(probe)
        self.session = replace(self.session, rule=rule_for(max(1, tests)))

    def unable(self, one: Selected) -> str | None:
        """Why this machine cannot run it; None if it can."""
        for probe in probes_of(one):
            reason = self._lacking(probe.scenario)
            if reason is not None:
                return reason
        return None

    def _lacking(self, scenario: Scenario) -> str | None:
        if not self.session.synthetic:
            if not self.session.launcher.here:
                return None  # what its nodes lack is told when a start is placed
            return self.session.machine.lacks(scenario.hardware, scenario.launch) or _out_of_reach(
                scenario
            )
        if scenario.engine.name == _STANDS_IN_FOR:
            return None
        return f"a rehearsal has no stand-in for {scenario.engine.name}"

    def outcome(self, one: Selected) -> Outcome:
        """What became of it; measures its scenario's campaign when first asked.

        Raises:
            MissingProgram: a program of the scenario is not installed.
            InputError: the scenario names something unknown, or cannot be honoured.
        """
        if isinstance(one, ClaimProbe):
            return claim_outcome(one, self._measured, lambda probe: self._again([probe]))
        if isinstance(one, SweepProbe):
            campaign = self._campaign(one.scenario)
            return sweep_outcome(one, self._measured, lambda: campaign.curve(one), self._again)
        return self._measured(one)

    def _measured(self, probe: Probe) -> Outcome:
        return self._campaign(probe.scenario).outcome(probe)

    def _again(self, probes: Sequence[Probe]) -> bool:
        return self._campaign(probes[0].scenario).measure_again(probes)

    def _campaign(self, scenario: Scenario) -> Campaign:
        if scenario.id not in self._campaigns:
            tools = tools_for(scenario, places.here(), self._build_of(scenario))
            tools.require()
            _verify(tools)
            self._campaigns[scenario.id] = Campaign(
                scenario, self._probes[scenario.id], tools, self.session
            )
        return self._campaigns[scenario.id]

    def _build_of(self, scenario: Scenario) -> BuildOverride:
        """What is said of the build; a rehearsal plays the document's release if nothing is."""
        if self.session.synthetic and self._override.version is None:
            return replace(self._override, version=scenario.source.engine_version)
        return self._override


def probes_of(one: Selected) -> tuple[Probe, ...]:
    """What must be measured for it."""
    return (one,) if isinstance(one, Probe) else one.probes


def _out_of_reach(scenario: Scenario) -> str | None:
    """Why a server of the scenario could not be talked to; None if it can, or there is none."""
    launch = scenario.launch
    if launch is None or launch.by == "mpirun" or not needs_server(scenario):
        return None
    return f"a server that {launch.by} starts may listen on any node, and is not looked for yet"


def _verify(tools: Tools) -> None:
    """Ask the installed programs for every option of the plan, before any GPU time.

    Raises:
        InputError: an option that a program lacks.
    """
    commands = commands_to_verify(tools.scenario, tools.build, tools.places)
    tools.engine.verify(tools.build, commands)
