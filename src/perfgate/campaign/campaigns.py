"""Campaigns: those of one pytest process, one for each scenario, and their tests.

The plugin tells it what pytest found; nothing here knows pytest.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from perfgate.campaign.budget import Estimate, estimate, stored_seconds
from perfgate.campaign.builds.build import AbBuilds, other_build, tools_under_test, verify
from perfgate.campaign.builds.words import inject, parse_injection
from perfgate.campaign.campaign import Campaign
from perfgate.campaign.claim_runner import ClaimRunner
from perfgate.campaign.schedule import totals
from perfgate.campaign.selection import Selected, probes_of
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, MissingProgram, PerfgateError
from perfgate.engines.base import EngineBuild, engine
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.judge_input import Outcome
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.plan.toolchain import Toolchain, needs_server
from perfgate.runs.progress import Progress
from perfgate.runs.record import (
    GroupRecord,
    MarkedOptionsRecord,
    MovedDefaultsRecord,
    UnaskedRecord,
)
from perfgate.runs.run_folder import PROGRESS
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


@dataclass
class Group:
    """One scenario in one session: its tests, and the campaign that measures it.

    Attributes:
        scenario: the scenario.
        probes: what is measured of it.
        waiting: the tests that need it and have no outcome yet.
        counted: those with a verdict, also of the session that this one resumed.
        campaign: its own; None: its programs were not needed, or not found.
        is_unusable: its programs are not as the scenario needs them.
        refused: why there is no time to begin it; empty: there is.
    """

    scenario: Scenario
    probes: list[Probe] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    campaign: Campaign | None = None
    is_unusable: bool = False
    refused: str = ""


class Campaigns:
    """The campaigns of one process, one per scenario, each with the probes selected in it.

    Args:
        session: what the campaigns share.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._groups: dict[str, Group] = {}
        self._claims = ClaimRunner(session, self)
        self._refused: set[str] = set()

    def select(self, selected: Mapping[str, Selected]) -> None:
        """Tell what this process is to measure.

        Args:
            selected: test → what it is about.

        Raises:
            InputError: an injection names no setting of a selected scenario.
        """
        measured = {test: one for test, one in selected.items() if self._beside_ab(one) is None}
        self._claims = ClaimRunner(self.session, self, measured.values())
        kept, ab = self.session.kept, self.session.ab
        changes = [self.session.injections]
        if ab is not None:
            changes = [tuple(map(parse_injection, one.settings)) for one in (ab.a, ab.b)]
        for test, one in measured.items():
            for probe in self._to_measure(one):
                name = probe.scenario.id
                for injections in changes:
                    inject(probe.scenario, injections)
                group = self._groups.setdefault(name, Group(probe.scenario))
                if probe not in group.probes:
                    group.probes.append(probe)
                if name not in kept.groups:
                    (group.counted if test in kept.verdicts else group.waiting).add(test)

    def _to_measure(self, one: Selected) -> tuple[Probe, ...]:
        """What this session measures for it."""
        return self._claims.to_measure(one) if isinstance(one, ClaimProbe) else probes_of(one)

    def _beside_ab(self, one: Selected) -> str | None:
        """Why it is not judged where two builds are compared; None: it is."""
        if self.session.ab is None or isinstance(one, Probe):
            return None
        kind = "a claim is about two scenarios of one build"
        if isinstance(one, SweepProbe):
            kind = "the curve of a sweep is held against a baseline"
        return f"not judged in an A/B: {kind}"

    def skip_reason(self, one: Selected) -> str | None:
        """Why it cannot be run: what this machine lacks, or time; None if it can."""
        if self._kept(one) is not None:
            return None
        if (reason := self._beside_ab(one)) is not None:
            return reason
        if isinstance(one, ClaimProbe):
            return self._claims.skip_reason(one) or self._out_of_time(one)
        is_kept = one.scenario.id in self.session.kept.groups
        return (None if is_kept else self.missing_hardware(one.scenario)) or self._out_of_time(one)

    def _out_of_time(self, one: Selected) -> str | None:
        """Why no group that it needs is begun within the session's budget; None: there is time.

        A group that was begun goes on, and one that was refused stays so.
        """
        budget, kept = self.session.budget, self.session.kept.groups
        if budget is None:
            return None
        names = {probe.scenario.id for probe in self._to_measure(one)} - kept.keys()
        fresh = [self._groups[name] for name in sorted(names) if not self._begun(name)]
        if not fresh:
            return None
        reason = next((group.refused for group in fresh if group.refused), None)
        if reason is None:
            try:
                first, *others = map(self._estimate, fresh)
            except PerfgateError:
                return None  # it cannot be measured at all, and will say so itself
            reason = budget.refuses(sum(others, first))
        if reason is not None:
            self._refused.add(one.id)
            if len(fresh) == 1:
                fresh[0].refused = reason
        return reason

    def was_refused(self, one: Selected) -> bool:
        """Whether it was not begun for lack of time."""
        return one.id in self._refused

    def _estimate(self, group: Group) -> Estimate:
        return estimate(
            tools_under_test(group.scenario, self.session),
            group.probes,
            self.session,
            self.session.run.records_of(GroupRecord),
            {name: one.scenario for name, one in self._groups.items()},
        )

    def _begun(self, name: str) -> list[Campaign]:
        """The campaigns of a scenario that have made starts: its own, and those for claims."""
        own = self._groups[name].campaign
        return [one for one in (own, *self._claims.turns_of(name)) if one and one.has_run]

    def missing_hardware(self, scenario: Scenario) -> str | None:
        """What this machine lacks for a scenario; None: nothing."""
        if not self.session.synthetic:
            if not self.session.launcher.here:
                return None  # what its nodes lack is told when a start is placed
            lacks = self.session.machine.lacks(scenario.hardware, scenario.launch)
            return lacks or _out_of_reach(scenario)
        if engine[scenario.engine.name].is_rehearsed:
            return None
        return f"a rehearsal has no mock program for {scenario.engine.name}"

    def outcome(self, one: Selected) -> Outcome:
        """What became of it; measures its scenario's campaign when first asked.

        Raises:
            MissingProgram: a program that it needs is not installed.
            InputError: the scenario names something unknown, or cannot be honoured.
        """
        kept = self._kept(one)
        if kept is not None:
            return kept
        if isinstance(one, ClaimProbe):
            return self._claims.outcome(one)
        if isinstance(one, SweepProbe):
            campaign, *_ = map(self.campaign_for, one.probes)
            return campaign.curve_outcome(one)
        return self.measured(one)

    def keeps(self, test: str) -> bool:
        """Whether the test's verdict is that of the session which this one resumed."""
        return test in self.session.kept.verdicts

    def ended(self, test: str, *, measured: bool) -> None:
        """Take note that a test has its outcome; the last one of a group writes its record.

        Args:
            test: its id.
            measured: whether it has a verdict; else it was skipped, and may be asked again.
        """
        for name, group in self._groups.items():
            if test not in group.waiting:
                continue
            group.waiting.remove(test)
            if measured:
                group.counted.add(test)
            if group.waiting:
                continue
            begun = self._begun(name)
            if group.counted and (begun or group.is_unusable):
                self._record_group(group, begun)
            self._progress(name).over()

    def tell_selection(self) -> None:
        """Tell who looks on what is to be measured, and how long stored baselines took for it."""
        seconds: dict[str, float | None] = dict.fromkeys(self._groups)
        if not self.session.synthetic:
            with suppress(PerfgateError):  # whoever needs the baseline will say it
                stored = stored_seconds(group.scenario for group in self._groups.values())
                seconds |= {name: one.usual for name, one in stored.items() if one.known}
        over = sorted(name for name, group in self._groups.items() if not group.waiting)
        self._progress("").selection(seconds, over)

    def _progress(self, scenario: str) -> Progress:
        return Progress(self.session.run.path / PROGRESS, scenario)

    def _record_group(self, group: Group, campaigns: Sequence[Campaign]) -> None:
        scenario = group.scenario
        starts, seconds = totals(campaign.starts for campaign in campaigns)
        self.session.run.record(
            GroupRecord(
                scenario=scenario.id,
                hardware=scenario.hardware.label,
                engine=campaigns[0].tools.build if campaigns else None,
                content={probe.label: probe.content_hash() for probe in group.probes},
                tests=tuple(sorted(group.counted)),
                starts=starts,
                seconds=seconds,
                ended="measured" if any(one.has_measured for one in campaigns) else "failed",
                synthetic=self.session.synthetic
                or any(one.starts.synthetic for one in campaigns)
                or scenario.is_synthetic,
            )
        )

    def _kept(self, one: Selected) -> Outcome | None:
        return self.session.kept.outcome(one, probes_of(one))

    def measured(self, probe: Probe) -> Outcome:
        """What became of a probe in its scenario's own campaign; errors as of `outcome`."""
        if probe.scenario.id in self.session.kept.groups:
            return self.session.kept.measured(probe)
        return self.campaign_for(probe).outcome(probe)

    def campaign_for(self, probe: Probe) -> Campaign:
        """The campaign of a probe's scenario, which has the programs that measure the probe.

        Raises:
            MissingProgram: it has not; and as `toolchain`.
        """
        campaign = self.campaign(probe.scenario)
        if missing := campaign.tools.missing_for(probe):
            raise missing
        return campaign

    def again(self, probe: Probe) -> bool:
        """Another start for a probe; False: none is left."""
        if probe.scenario.id in self.session.kept.groups:
            return False  # it is finished, as its record says
        return self.campaign(probe.scenario).measure_again([probe])

    def campaign(self, scenario: Scenario) -> Campaign:
        """The scenario's own campaign, its programs found; errors as of `toolchain`."""
        group = self._groups[scenario.id]
        if group.campaign is None:
            try:
                group.campaign = self._made(group)
            except PerfgateError as error:
                group.is_unusable = not isinstance(error, MissingProgram | CannotDo)
                raise
            self.session.run.begin_group(scenario.id)
        return group.campaign

    def _made(self, group: Group) -> Campaign:
        builds, scenario = None, group.scenario
        if (ab := self.session.ab) is not None:
            a, b = (other_build(scenario, self.session, one) for one in (ab.a, ab.b))
            builds = AbBuilds(a, b)
        tools = self.toolchain(scenario) if builds is None else builds.b.tools
        probes = [probe for probe in group.probes if tools.missing_for(probe) is None]
        return Campaign(probes, tools, self.session, ab=builds)

    def build_of(self, scenario: Scenario) -> EngineBuild:
        """The engine build that would be measured now.

        Raises:
            MissingProgram, InputError: there is none that can be asked.
        """
        return tools_under_test(scenario, self.session).build

    def toolchain(self, scenario: Scenario) -> Toolchain:
        """The scenario's programs, asked for all that the plan gives them before any GPU time.

        What the build could not be asked, what it has other defaults of than documented, and what
        it marks become records: ``unasked``, ``moved_defaults``, ``marked_options``.

        Raises:
            MissingProgram: one is not installed.
            InputError: the build lacks an option, choice or key, or the scenario names something
                unknown.
        """
        tools = tools_under_test(scenario, self.session)
        why, moved, marked = verify(tools)
        name, build, run = scenario.id, tools.build, self.session.run
        if why:
            run.record(UnaskedRecord(scenario=name, build=build, why=why))
        if moved:
            run.record(MovedDefaultsRecord(scenario=name, build=build, defaults=moved))
        if marked:
            run.record(MarkedOptionsRecord(scenario=name, build=build, options=marked))
        return tools


def _out_of_reach(scenario: Scenario) -> str | None:
    """Why a server of the scenario could not be talked to; None if it can, or there is none."""
    launch = scenario.launch
    if launch is None or launch.by == "mpirun" or not needs_server(scenario):
        return None
    return f"a server that {launch.by} starts may listen on any node: use --launcher slurm"
