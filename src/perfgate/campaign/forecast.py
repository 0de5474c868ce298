"""Forecast: what a selection of scenarios will be compared with, and how long it will take.

Runs nothing and needs no GPU. Facts of the machine that would measure are not known here, so every
comparison holds only if they match the baseline's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from perfgate.baselines import Entry
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.clients.smoke_test import ANSWER_WITHIN_S
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.rule import Rule
from perfgate.core.verdict import counted
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly.judgement import Reference, takes_turns
from perfgate.judging.assembly.measured_facts import inert_notes
from perfgate.judging.assembly.references import ProbeReference, References, measures_itself
from perfgate.judging.assembly.sweeps import sweep_probes
from perfgate.judging.forecast.detectability import prospects
from perfgate.judging.forecast.power import TRIALS
from perfgate.judging.forecast.prospect import Prospect
from perfgate.judging.forecast.start_effort import Effort, expected
from perfgate.machine.hardware import Machine
from perfgate.plan.toolchain import BuildOverride, Toolchain, toolchain_for
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, Scenario, Smoke

# A build that is as the baseline, one that loses a band of everything, and all the starts that its
# tests can ask for.
Case = Literal["unchanged", "slower", "worst"]


@dataclass(frozen=True)
class Seconds:
    """How long something takes; `at_most`: a bound, as nobody has measured it."""

    value: float
    at_most: bool = False

    def __add__(self, other: "Seconds") -> "Seconds":
        return Seconds(self.value + other.value, self.at_most or other.at_most)

    def __mul__(self, times: float) -> "Seconds":
        return Seconds(self.value * times, self.at_most)


@dataclass(frozen=True)
class PlannedBuild:
    """The build under test, and who says so."""

    build: EngineBuild
    source: str


@dataclass(frozen=True)
class PlannedProbe:
    """One probe: what it would be compared with, and what each gating metric could show.

    Attributes:
        probe: what would be measured.
        compared_with: what it would be compared with, or why with nothing, in words.
        prospects: one per gating metric.
        seconds: of one measurement, its share of the start included.
    """

    probe: Probe
    compared_with: str
    prospects: tuple[Prospect, ...]
    seconds: Seconds

    @property
    def is_judged(self) -> bool:
        """Whether a run would give it a verdict."""
        return self.probe.is_smoke or any(one.against != "nothing" for one in self.prospects)


@dataclass(frozen=True)
class PlannedScenario:
    """One scenario.

    Attributes:
        scenario: the scenario.
        under_test: the build.
        probes: all that would be measured, in order.
        most: fresh starts of the build under test, at most.
        reference_starts: fresh starts that the machine's own reference takes first.
        start: how long the engine takes to be ready, where that is not in the probes' seconds.
        unchanged: the effort for a build that is as the baseline.
        slower: the effort for one that loses one band of everything.
        notes: what else a person should know.
    """

    scenario: Scenario
    under_test: PlannedBuild
    probes: tuple[PlannedProbe, ...]
    most: int
    reference_starts: int
    start: Seconds
    unchanged: Effort
    slower: Effort
    notes: tuple[str, ...] = ()

    def problems(self) -> list[InputError]:
        """Why the gate cannot work so."""
        return [
            one.problem
            for probe in self.probes
            for one in probe.prospects
            if one.problem is not None
        ]

    @property
    def longest(self) -> int:
        """The fresh starts of the build that its tests can ask for, at most."""
        tests = [one.test for probe in self.probes for one in probe.prospects if one.test]
        return min(self.most, max((one.most for one in tests), default=1))

    @property
    def most_controls(self) -> int:
        """The controls that its tests can ask for, at most."""
        return len(self.unchanged.starts.controls) - 1

    @property
    def accident(self) -> float:
        """The share of runs of an unchanged build that end in a REGRESSION, at most: one more than
        the simulation of each probe saw."""
        found = [one.lost + 1 / TRIALS for one in self.unchanged.of_probe.values() if one.most > 1]
        return 1 - math.prod(1 - share for share in found)

    def starts(self, effort: Effort) -> float:
        """All engine starts, those of the reference and controls included."""
        return effort.mean + self.reference_starts

    def duration(self, effort: Effort) -> Seconds:
        """How long all starts take with all that is measured on them."""
        total = self.start * self.starts(effort)
        for probe in self.probes:
            times = effort.times(probe.probe.label)
            if measures_itself(probe.probe):
                times += self.reference_starts
            total += probe.seconds * times
        return total

    def cost(self, case: Case) -> "Cost":
        """All that a run takes: expected, or at most."""
        effort = {
            "unchanged": self.unchanged,
            "slower": self.slower,
            "worst": self.unchanged.at_worst(),
        }[case]
        duration = self.duration(effort)
        gpu_hours = duration.value * self.scenario.hardware.gpus / 3600
        return Cost(self.starts(effort), duration, gpu_hours)


@dataclass(frozen=True)
class Cost:
    """What a run takes: engine starts of both builds, time, and that time on all its GPUs."""

    starts: float
    duration: Seconds
    gpu_hours: float


@dataclass(frozen=True)
class Plan:
    """A whole selection: its scenarios, and the rule that its size calls for."""

    scenarios: tuple[PlannedScenario, ...]
    rule: Rule
    tests: int

    @property
    def accident(self) -> float:
        """The share of runs in which some scenario of an unchanged build ends red, at most."""
        return 1 - math.prod(1 - one.accident for one in self.scenarios)

    def cost(self, case: Case) -> Cost:
        """All scenarios, one after the other."""
        costs = [one.cost(case) for one in self.scenarios]
        return Cost(
            sum(one.starts for one in costs),
            sum((one.duration for one in costs), Seconds(0.0)),
            sum(one.gpu_hours for one in costs),
        )


class Planner:
    """Plans scenarios.

    Args:
        machine: this machine, for what it keeps of itself.
        override: what a person says of the build under test.
        repo: a clone of the engine's repository.
    """

    def __init__(
        self, machine: Machine, override: BuildOverride, repo: EngineRepo | None = None
    ) -> None:
        self._machine = machine
        self._override = override
        self._repo = repo
        self._installed: dict[str, EngineBuild | None] = {}

    def plan(self, scenarios: Sequence[Scenario], claims: Sequence[Claim]) -> Plan:
        """The plan of a selection.

        Args:
            scenarios: what is selected.
            claims: all claims of the suite's files; those about the selected ones count as tests.

        Raises:
            InputError: a stored baseline is unusable.
            SeveralInputErrors: documented values are.
        """
        tests = len(claims_of(scenarios, claims))
        for scenario in scenarios:
            tests += sum(len(one.gating_metrics()) for one in all_probes(scenario))
            tests += sum(len(one.gating_metrics()) for one in sweep_probes(scenario))
        rule = Rule()
        return Plan(tuple(self._scenario(one, rule) for one in scenarios), rule, tests)

    def _scenario(self, scenario: Scenario, rule: Rule) -> PlannedScenario:
        under_test = self._under_test(scenario)
        build = under_test.build
        tools = toolchain_for(
            scenario, Locations(on_paper=True), BuildOverride(build.version, build.commit)
        )
        references = References(tools, self._machine, "auto", repo=self._repo)
        compared: dict[Probe, ProbeReference] = {
            probe: references.comparison(probe) for probe in all_probes(scenario)
        }
        own = [one for one in compared if measures_itself(one) and compared[one].entry is None]
        seconds = {one: _seconds(one, compared[one].entry, tools) for one in compared}
        start = _start(tools, compared)
        most, notes = _most(scenario, rule, seconds, start)
        notes = (*notes, *tools.engine.foreseen(scenario, build))
        probes = tuple(
            PlannedProbe(
                probe,
                _compared_with(probe, comparison),
                prospects(
                    probe,
                    comparison,
                    rule,
                    most,
                    can_be_started=comparison.source is not None,
                ),
                seconds[probe],
            )
            for probe, comparison in compared.items()
        )
        tests = {
            one.probe.label: [found.test for found in one.prospects if found.test is not None]
            for one in probes
        }
        return PlannedScenario(
            scenario,
            under_test,
            probes,
            most,
            scenario.gate.reference_starts if own else 0,
            start,
            expected(tests, slower=False),
            expected(tests, slower=True),
            (*notes, *inert_notes(scenario)),
        )

    def _under_test(self, scenario: Scenario) -> PlannedBuild:
        """The build: as a person says, else the installed one, else that of the document."""
        name = scenario.engine.name
        said = self._override.of(name)
        version, commit = said.version, said.commit
        if version is not None:
            return PlannedBuild(EngineBuild(name, version, commit or version), "as given")
        installed = self._installed_build(scenario)
        if installed is not None:
            build = replace(installed, commit=commit or installed.commit)
            return PlannedBuild(build, "the installed one")
        source = scenario.source
        version = source.engine_version or "unknown"
        commit = commit or source.engine_commit or version
        return PlannedBuild(
            EngineBuild(name, version, commit), "of the document, as none is installed here"
        )

    def _installed_build(self, scenario: Scenario) -> EngineBuild | None:
        name = scenario.engine.name
        if name not in self._installed:
            try:
                on_paper = toolchain_for(scenario, Locations(on_paper=True))
                self._installed[name] = on_paper.engine.build(Locations.of_environment())
            except MissingProgram:
                self._installed[name] = None
        return self._installed[name]


def _compared_with(probe: Probe, comparison: ProbeReference) -> str:
    if probe.is_smoke:
        return "passes when it answers"
    if comparison.entry is not None:
        condition = ", if the machine's facts match" if probe.is_load else ""
        return f"compared with {comparison.in_words}{condition}"
    if measures_itself(probe):
        starts = counted(probe.scenario.gate.reference_starts, "fresh start")
        return f"compared with this machine itself, {starts} to be made first"
    if comparison.documented.keys() & set(probe.gating_metrics()):
        return f"compared with {comparison.in_words}"
    return "no baseline: the first run records one (--record), this one would only measure"


def _known_seconds(entry: Entry | None) -> list[float]:
    """What the runs of a baseline took, where they say so."""
    return [run.seconds for run in entry.runs if run.seconds is not None] if entry else []


def _seconds(probe: Probe, entry: Entry | None, tools: Toolchain) -> Seconds:
    """One measurement of a probe, as its baseline's runs took, else as the limits allow."""
    known = _known_seconds(entry)
    if known:
        return Seconds(fmean(known))
    limits = probe.scenario.limits
    if isinstance(probe.what, Smoke) and not tools.is_offline(probe):
        within = min(ANSWER_WITHIN_S, limits.silence_s)
        return Seconds(within * len(probe.what.prompts), at_most=True)
    return Seconds(limits.total_s, at_most=True)


def _start(tools: Toolchain, compared: Mapping[Probe, Reference]) -> Seconds:
    """The engine's own start, where no probe's seconds hold it."""
    is_known = any(_known_seconds(reference.entry) for reference in compared.values())
    if is_known or all(tools.is_offline(probe) for probe in compared):
        return Seconds(0.0)
    return Seconds(tools.scenario.limits.start_s, at_most=True)


def _most(
    scenario: Scenario, rule: Rule, seconds: Mapping[Probe, Seconds], start: Seconds
) -> tuple[int, tuple[str, ...]]:
    """The fresh starts that the gate's policy allows, in number and in time."""
    most = scenario.gate.max_starts
    if not takes_turns(scenario):
        most = min(most, rule.max_runs)
    budget = scenario.gate.budget_s
    one = sum(seconds.values(), start)
    if budget is None or one.at_most:
        return most, ()
    # Another start is made as long as the budget is not used up.
    in_time = max(1, math.ceil(budget / one.value)) if one.value else most
    if in_time >= most:
        return most, ()
    note = f"the budget of {budget:g} s allows {in_time} starts of {one.value:.0f} s, not {most}"
    return in_time, (note,)
