"""Campaigns: those of one pytest process, one for each scenario, and their tests.

The plugin tells it what pytest found; nothing here knows pytest.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from perfgate.campaign.budget import Estimate
from perfgate.campaign.builds.other_build import ab_builds, tools_under_test
from perfgate.campaign.campaign import Campaign
from perfgate.campaign.claim_sides import ClaimSides
from perfgate.campaign.durations import estimate, stored_seconds
from perfgate.campaign.injection import Injection, inject
from perfgate.campaign.injection import parse as parse_injection
from perfgate.campaign.resume import KeptResults
from perfgate.campaign.selection import Selected, measured_scenarios, probes_of
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, MissingProgram, PerfgateError
from perfgate.core.verdict import Against
from perfgate.engines.base import EngineBuild, engine
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.assembly.sweeps import SweepProbe, sweep_outcome
from perfgate.plan.calls import commands_to_verify
from perfgate.plan.toolchain import Toolchain, needs_server
from perfgate.runs.progress import Progress
from perfgate.runs.record import GroupRecord, MovedDefaultsRecord, UnaskedRecord
from perfgate.runs.run_folder import PROGRESS
from perfgate.runs.start_counts import together
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


class Groups:
    """The groups of one process.

    Args:
        needs: test → ids of the scenarios that must be measured for it.
        kept: what a resumed run keeps: those tests have ended before, those groups are finished.
    """

    def __init__(
        self, needs: Mapping[str, Collection[str]], kept: KeptResults | None = None
    ) -> None:
        kept = kept or KeptResults()
        self._waiting: dict[str, set[str]] = {}
        self._counted: dict[str, set[str]] = {}
        for test, scenarios in needs.items():
            for scenario in set(scenarios) - kept.groups.keys():
                waiting = self._waiting.setdefault(scenario, set())
                counted = self._counted.setdefault(scenario, set())
                (counted if test in kept.verdicts else waiting).add(test)

    def ended(self, test: str, *, measured: bool) -> list[str]:
        """Take note that a test has its outcome; the scenarios whose last test it was.

        Args:
            test: its id.
            measured: whether it has a verdict; a skipped one ends, but is not counted.
        """
        finished = []
        for scenario, waiting in self._waiting.items():
            if test not in waiting:
                continue
            waiting.remove(test)
            if measured:
                self._counted[scenario].add(test)
            if not waiting and self._counted[scenario]:
                finished.append(scenario)
        return finished

    @property
    def open(self) -> frozenset[str]:
        """The scenarios that a test still waits for."""
        return frozenset(scenario for scenario, waiting in self._waiting.items() if waiting)

    def counted(self, scenario: str) -> list[str]:
        """The tests with a verdict that rests on the group, sorted."""
        return sorted(self._counted[scenario])


class Campaigns:
    """The campaigns of one process, one per scenario, each with the probes selected in it.

    Args:
        session: what the campaigns share.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._probes: dict[str, list[Probe]] = {}
        self._campaigns: dict[str, Campaign] = {}
        self._claims = ClaimSides(session, self)
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
        self._claims = ClaimSides(
            self.session,
            self,
            [one for one in measured.values() if isinstance(one, ClaimProbe)],
            measured_scenarios(measured.values()),
        )
        for one in measured.values():
            for probe in self._to_measure(one):
                for injections in self._injected():
                    inject(probe.scenario, injections)
                group = self._probes.setdefault(probe.scenario.id, [])
                if probe not in group:
                    group.append(probe)
        needs = {
            test: {probe.scenario.id for probe in self._to_measure(one)}
            for test, one in measured.items()
        }
        self._groups = Groups(needs, self.session.kept)

    def _to_measure(self, one: Selected) -> tuple[Probe, ...]:
        """What this session measures for it."""
        return self._claims.to_measure(one) if isinstance(one, ClaimProbe) else probes_of(one)

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
        if isinstance(one, ClaimProbe):
            return self._claims.why_not(one) or self.out_of_time(one)
        for probe in probes_of(one):
            if probe.scenario.id in self.session.kept.groups:
                continue
            reason = self.lacking(probe.scenario)
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
            for probe in self._to_measure(one)
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
        scenarios = {name: probes[0].scenario for name, probes in self._probes.items()}
        return estimate(
            self._tools(scenario),
            self._probes[scenario.id],
            self.session,
            self.session.run.records_of(GroupRecord),
            scenarios,
        )

    def _has_begun(self, scenario: str) -> bool:
        return scenario in self.session.kept.groups or bool(self._begun(scenario))

    def _begun(self, scenario: str) -> list[Campaign]:
        """The campaigns of a scenario that have made starts: its own, and those for claims."""
        own = self._campaigns.get(scenario)
        return [
            *([own] if own is not None and own.has_run else []),
            *self._claims.turns_of(scenario),
        ]

    def lacking(self, scenario: Scenario) -> str | None:
        """What this machine lacks for a scenario; None: nothing."""
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
            MissingProgram: a program that it needs is not installed.
            InputError: the scenario names something unknown, or cannot be honoured.
        """
        kept = self._kept(one)
        if kept is not None:
            return kept
        if isinstance(one, ClaimProbe):
            return self._claims.outcome(one)
        if isinstance(one, SweepProbe):
            campaign = self.campaign(one.scenario)
            found = sweep_outcome(
                one,
                self.measured,
                lambda: campaign.curve(one),
                lambda probes: self.again(probes, campaign.curve(one).controls_wanted),
                lambda: campaign.curve_measurements(one),
                lambda judged: campaign.curve_controls(one, judged),
            )
            return found if found.error else campaign.with_curve_input(one, found)
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
        before = self._groups.open
        for scenario in self._groups.ended(test, measured=measured):
            begun = self._begun(scenario)
            if scenario in self._unusable or begun:
                self._record_group(scenario, begun)
        for scenario in sorted(before - self._groups.open):
            self._progress(scenario).over()

    def tell_selection(self) -> None:
        """Tell who looks on what is to be measured, and how long stored baselines took for it."""
        known = {}
        if not self.session.synthetic:
            with suppress(PerfgateError):  # whoever needs the baseline will say it
                known = stored_seconds(probes[0].scenario for probes in self._probes.values())
        self._progress("").selection(
            {
                name: known[name].usual if name in known and known[name].known else None
                for name in self._probes
            },
            sorted(self._probes.keys() - self._groups.open),
        )

    def _progress(self, scenario: str) -> Progress:
        return Progress(self.session.run.path / PROGRESS, scenario)

    def _record_group(self, name: str, campaigns: Sequence[Campaign]) -> None:
        probes = self._probes[name]
        account = together(one.account for one in campaigns)
        measured = any(one.has_measured for one in campaigns)
        starts, seconds = account.totals()
        self.session.run.record(
            GroupRecord(
                scenario=name,
                hardware=probes[0].scenario.hardware.label,
                engine=campaigns[0].tools.build if campaigns else None,
                content={probe.label: probe.content_hash() for probe in probes},
                tests=tuple(self._groups.counted(name)),
                starts=starts,
                seconds=seconds,
                ended="measured" if measured else "failed",
                synthetic=self.session.synthetic
                or account.synthetic
                or probes[0].scenario.is_synthetic,
            )
        )

    def _kept(self, one: Selected) -> Outcome | None:
        return self.session.kept.outcome(one, probes_of(one))

    def measured(self, probe: Probe) -> Outcome:
        """What became of a probe in its scenario's own campaign; errors as of `outcome`."""
        if probe.scenario.id in self.session.kept.groups:
            return self.session.kept.measured(probe)
        campaign = self.campaign(probe.scenario)
        if missing := campaign.tools.missing_for(probe):
            raise missing
        return campaign.outcome(probe)

    def again(self, probes: Sequence[Probe], controls: Collection[Against] = ()) -> bool:
        """Another start for probes of one scenario; False: none is left."""
        scenario = probes[0].scenario
        if scenario.id in self.session.kept.groups:
            return False  # it is finished, as its record says
        return self.campaign(scenario).measure_again(probes, controls)

    def campaign(self, scenario: Scenario) -> Campaign:
        """The scenario's own campaign, its programs found; errors as of `toolchain`."""
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
        builds = None if self.session.ab is None else ab_builds(scenario, self.session)
        tools = self.toolchain(scenario) if builds is None else builds.b.tools
        probes = [probe for probe in probes if tools.missing_for(probe) is None]
        return Campaign(scenario, probes, tools, self.session, ab=builds)

    def build_of(self, scenario: Scenario) -> EngineBuild:
        """The engine build that would be measured now.

        Raises:
            MissingProgram, InputError: there is none that can be asked.
        """
        return self._tools(scenario).build

    def toolchain(self, scenario: Scenario) -> Toolchain:
        """The scenario's programs, asked for all that the plan gives them before any GPU time.

        What the build could not be asked, and what it has other defaults of than documented, become
        records: ``unasked``, ``moved_defaults``.

        Raises:
            MissingProgram: one is not installed.
            InputError: the build lacks an option, choice or key, or the scenario names something
                unknown.
        """
        tools = self._tools(scenario)
        tools.require()
        commands = commands_to_verify(tools.measurable(), tools.build, tools.locations)
        unasked = tools.engine.verify(tools.build, commands, tools.locations)
        if unasked:
            self.session.run.record(
                UnaskedRecord(scenario=scenario.id, build=tools.build, why=tuple(unasked))
            )
        moved = tools.engine.moved_defaults(commands, tools.locations)
        if moved:
            self.session.run.record(
                MovedDefaultsRecord(scenario=scenario.id, build=tools.build, defaults=tuple(moved))
            )
        return tools

    def _tools(self, scenario: Scenario) -> Toolchain:
        return tools_under_test(scenario, self.session)


def _out_of_reach(scenario: Scenario) -> str | None:
    """Why a server of the scenario could not be talked to; None if it can, or there is none."""
    launch = scenario.launch
    if launch is None or launch.by == "mpirun" or not needs_server(scenario):
        return None
    return f"a server that {launch.by} starts may listen on any node: use --launcher slurm"
