"""Campaigns: those of one pytest process, one for each scenario, and their tests.

The plugin tells it what pytest found; nothing here knows pytest.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from perfgate.campaign.ab import AbCampaign, ab_builds
from perfgate.campaign.budget import Estimate
from perfgate.campaign.build_tools import tools_under_test
from perfgate.campaign.campaign import Campaign
from perfgate.campaign.groups import Groups
from perfgate.campaign.injection import Injection, inject
from perfgate.campaign.injection import parse as parse_injection
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, MissingProgram, PerfgateError
from perfgate.core.plain import to_plain
from perfgate.engines.base import EngineBuild, engine
from perfgate.gate.verdict import Against
from perfgate.plan.calls import commands_to_verify
from perfgate.plan.toolchain import Toolchain, needs_server
from perfgate.runs.start_counts import Account
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario
from perfgate.verdicts.claims import ClaimProbe, claim_outcome
from perfgate.verdicts.outcome import Outcome
from perfgate.verdicts.sweeps import SweepProbe, sweep_outcome

# What a test of the suite is about.
Selected = Probe | ClaimProbe | SweepProbe


class Campaigns:
    """The campaigns of one process, one per scenario, each with the probes selected in it.

    Args:
        session: what the campaigns share.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._probes: dict[str, list[Probe]] = {}
        self._campaigns: dict[str, Campaign] = {}
        self._groups = Groups({})
        self._unusable: set[str] = set()
        self._refused: dict[str, str] = {}

    def select(self, selected: Mapping[str, Selected]) -> None:
        """Tell what this process is to measure.

        Args:
            selected: test → what it is about.

        Raises:
            InputError: an injection names no setting of a selected scenario.
        """
        measured = {test: one for test, one in selected.items() if self._beside_ab(one) is None}
        for one in measured.values():
            for probe in probes_of(one):
                for injections in self._injected():
                    inject(probe.scenario, injections)
                group = self._probes.setdefault(probe.scenario.id, [])
                if probe not in group:
                    group.append(probe)
        needs = {
            test: {probe.scenario.id for probe in probes_of(one)} for test, one in measured.items()
        }
        self._groups = Groups(needs, self.session.kept)

    def _injected(self) -> tuple[tuple[Injection, ...], ...]:
        """The settings that are changed on purpose, of each build that is started."""
        ab = self.session.ab
        if ab is None:
            return (self.session.injections,)
        return tuple(tuple(map(parse_injection, one.settings)) for one in (ab.a, ab.b))

    def _beside_ab(self, one: Selected) -> str | None:
        """Why it is not judged where two builds are compared; None: it is."""
        if self.session.ab is None or isinstance(one, Probe):
            return None
        kind = "a claim is about two scenarios of one build"
        if isinstance(one, SweepProbe):
            kind = "the curve of a sweep is held against a baseline"
        return f"not judged in an A/B: {kind}"

    def why_not(self, one: Selected) -> str | None:
        """Why it cannot be run: what this machine lacks, or time; None if it can."""
        if self._kept(one) is not None:
            return None
        if (reason := self._beside_ab(one)) is not None:
            return reason
        for probe in probes_of(one):
            if probe.scenario.id in self.session.kept.groups:
                continue
            reason = self._lacking(probe.scenario)
            if reason is not None:
                return reason
        return self.out_of_time(one)

    def out_of_time(self, one: Selected) -> str | None:
        """Why no group that it needs is begun within the session's budget; None: there is time.

        A group that was begun goes on, and one that was refused stays so.
        """
        budget = self.session.budget
        fresh = {
            probe.scenario.id: probe.scenario
            for probe in probes_of(one)
            if not self._has_begun(probe.scenario.id)
        }
        if budget is None or not fresh or self._kept(one) is not None:
            return None
        reason = next((self._refused[name] for name in fresh if name in self._refused), None)
        if reason is None:
            try:
                first, *others = (self._estimate(scenario) for scenario in fresh.values())
            except PerfgateError:
                return None  # it cannot be measured at all, and will say so itself
            reason = budget.refuses(sum(others, first))
        if reason is not None:
            self._refused[one.id] = reason
            if len(fresh) == 1:
                self._refused |= dict.fromkeys(fresh, reason)
        return reason

    def was_refused(self, one: Selected) -> bool:
        """Whether it was not begun for lack of time."""
        return one.id in self._refused

    def _estimate(self, scenario: Scenario) -> Estimate:
        # Its numpy and scipy take as long to load as all the rest.
        from perfgate.campaign.duration import estimate

        scenarios = {name: probes[0].scenario for name, probes in self._probes.items()}
        return estimate(
            self._tools(scenario),
            self._probes[scenario.id],
            self.session,
            self.session.run.records("group"),
            scenarios,
        )

    def _has_begun(self, scenario: str) -> bool:
        campaign = self._campaigns.get(scenario)
        return scenario in self.session.kept.groups or (campaign is not None and campaign.has_run)

    def _lacking(self, scenario: Scenario) -> str | None:
        if not self.session.synthetic:
            if not self.session.launcher.here:
                return None  # what its nodes lack is told when a start is placed
            lacks = self.session.machine.lacks(scenario.hardware, scenario.launch)
            return lacks or _out_of_reach(scenario)
        if engine[scenario.engine.name].is_rehearsed:
            return None
        return f"a rehearsal has no stand-in for {scenario.engine.name}"

    def outcome(self, one: Selected) -> Outcome:
        """What became of it; measures its scenario's campaign when first asked.

        Raises:
            MissingProgram: a program of the scenario is not installed.
            InputError: the scenario names something unknown, or cannot be honoured.
        """
        kept = self._kept(one)
        if kept is not None:
            return kept
        if isinstance(one, ClaimProbe):
            return claim_outcome(one, self._measured, lambda probe: self._again([probe]))
        if isinstance(one, SweepProbe):
            campaign = self._campaign(one.scenario)
            return sweep_outcome(
                one,
                self._measured,
                lambda: campaign.curve(one),
                lambda probes: self._again(probes, campaign.curve(one).controls_wanted),
                lambda: campaign.curve_measurements(one),
                lambda judged: campaign.curve_controls(one, judged),
            )
        return self._measured(one)

    def keeps(self, test: str) -> bool:
        """Whether the test's verdict is that of the session which this one resumed."""
        return test in self.session.kept.ends

    def ended(self, test: str, *, measured: bool) -> None:
        """Take note that a test has its outcome; the last one of a group writes its record.

        Args:
            test: its id.
            measured: whether it has a verdict; else it was skipped, and may be asked again.
        """
        for scenario in self._groups.ended(test, measured=measured):
            campaign = self._campaigns.get(scenario)
            if scenario in self._unusable or (campaign is not None and campaign.has_run):
                self._record_group(scenario, campaign)

    def _record_group(self, name: str, campaign: Campaign | None) -> None:
        probes = self._probes[name]
        account = campaign.account if campaign else Account()
        self.session.run.record(
            "group",
            {
                "scenario": name,
                "hardware": probes[0].scenario.hardware.label,
                "engine": asdict(campaign.tools.build) if campaign else None,
                "content": {probe.label: probe.content_hash() for probe in probes},
                "tests": self._groups.counted(name),
                **account.plain(),
                "ended": "measured" if campaign and campaign.has_measured else "failed",
                "synthetic": self.session.synthetic or account.synthetic,
            },
        )

    def _kept(self, one: Selected) -> Outcome | None:
        return self.session.kept.outcome(one, probes_of(one))

    def _measured(self, probe: Probe) -> Outcome:
        if probe.scenario.id in self.session.kept.groups:
            return self.session.kept.measured(probe)
        return self._campaign(probe.scenario).outcome(probe)

    def _again(self, probes: Sequence[Probe], controls: Collection[Against] = ()) -> bool:
        scenario = probes[0].scenario
        if scenario.id in self.session.kept.groups:
            return False  # it is finished, as its record says
        return self._campaign(scenario).measure_again(probes, controls)

    def _campaign(self, scenario: Scenario) -> Campaign:
        if scenario.id not in self._campaigns:
            try:
                campaign = self._made(scenario)
            except (MissingProgram, CannotDo):
                raise
            except PerfgateError:
                self._unusable.add(scenario.id)
                raise
            self.session.run.begin_group(scenario.id)
            self._campaigns[scenario.id] = campaign
        return self._campaigns[scenario.id]

    def _made(self, scenario: Scenario) -> Campaign:
        """The campaign of a scenario, its programs found; errors as of `toolchain`."""
        probes = self._probes[scenario.id]
        if self.session.ab is not None:
            return AbCampaign(scenario, probes, ab_builds(scenario, self.session), self.session)
        return Campaign(scenario, probes, self.toolchain(scenario), self.session)

    def build_of(self, scenario: Scenario) -> EngineBuild:
        """The engine build that would be measured now.

        Raises:
            MissingProgram, InputError: there is none that can be asked.
        """
        return self._tools(scenario).build

    def toolchain(self, scenario: Scenario) -> Toolchain:
        """The scenario's programs, asked for all that the plan gives them before any GPU time.

        What the build could not be asked becomes a record: ``unasked``.

        Raises:
            MissingProgram: one is not installed.
            InputError: the build lacks an option, choice or key, or the scenario names something
                unknown.
        """
        tools = self._tools(scenario)
        tools.require()
        commands = commands_to_verify(scenario, tools.build, tools.locations)
        unasked = tools.engine.verify(tools.build, commands, tools.locations)
        if unasked:
            self.session.run.record(
                "unasked",
                {"scenario": scenario.id, "build": to_plain(tools.build), "why": list(unasked)},
            )
        return tools

    def _tools(self, scenario: Scenario) -> Toolchain:
        return tools_under_test(scenario, self.session)


def probes_of(one: Selected) -> tuple[Probe, ...]:
    """What must be measured for it."""
    return (one,) if isinstance(one, Probe) else one.probes


def _out_of_reach(scenario: Scenario) -> str | None:
    """Why a server of the scenario could not be talked to; None if it can, or there is none."""
    launch = scenario.launch
    if launch is None or launch.by == "mpirun" or not needs_server(scenario):
        return None
    return f"a server that {launch.by} starts may listen on any node: use --launcher slurm"
