"""Scenarios: what a selection would be compared with, what it could show, and how long it takes.

Runs nothing and needs no GPU. Facts of the machine that would measure are not known here, so every
comparison holds only if they match the baseline's.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean
from typing import Literal

from msgspec import Struct

from perfgate.baselines.engine_repo import EngineRepo
from perfgate.clients.smoke_test import ANSWER_WITHIN_S
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.rule import Rule
from perfgate.core.verdict import counted
from perfgate.engines.base import EngineBuild, engine
from perfgate.judging.assembly.judgement import Reference, measures_itself, takes_turns
from perfgate.judging.assembly.measured import inert_notes
from perfgate.judging.assembly.references import References
from perfgate.judging.assembly.sweeps import sweep_probes
from perfgate.judging.forecast.metrics import MetricForecast, forecast_metric
from perfgate.judging.forecast.simulation import TRIALS, Outcomes, of_probe, slowest
from perfgate.machine.hardware import Machine
from perfgate.plan.toolchain import BuildOverride, Toolchain, toolchain_for
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, Scenario, Smoke

# A build that is as the baseline, one that loses a band of everything, and all the starts that its
# tests can ask for.
Case = Literal["unchanged", "slower", "worst"]
CASES: tuple[Case, ...] = ("unchanged", "slower", "worst")


class Cost(Struct, frozen=True):
    """What a run takes; names as in JSON.

    Attributes:
        starts: engine starts of both builds, those of a reference and controls included.
        hours: how long they take, with all that is measured on them.
        hours_at_most: whether that is a bound, as nobody has measured it.
        gpu_hours: that time on all its GPUs.
    """

    starts: float
    hours: float
    hours_at_most: bool
    gpu_hours: float


class ProbeForecast(Struct, frozen=True):
    """One probe: what it would be compared with, and what each gating metric could show.

    Attributes:
        probe: its label.
        compared_with: what it would be compared with, or why with nothing, in words.
        judged: whether a run would give it a verdict.
        seconds: of one measurement, its share of the start included.
        seconds_at_most: whether that is a bound, as nobody has measured it.
        metrics: one per gating metric.
    """

    probe: str
    compared_with: str
    judged: bool
    seconds: float
    seconds_at_most: bool
    metrics: tuple[MetricForecast, ...]


class ScenarioForecast(Struct, frozen=True):
    """One scenario; names as in JSON.

    Attributes:
        id: of the scenario.
        hardware: its label.
        gpus: of it.
        engine, version, commit: the build under test.
        build_source: who says that it is this one, in words.
        max_starts: fresh starts of the build under test, at most.
        max_controls: controls, at most.
        reference_starts: fresh starts that the machine's own reference takes first.
        accident: the share of runs of an unchanged build that end in a REGRESSION, at most.
        cost: what a run takes, in each case.
        notes: what else a person should know.
        probes: all that would be measured, in order.
    """

    id: str
    hardware: str
    gpus: int
    engine: str
    version: str
    commit: str
    build_source: str
    max_starts: int
    max_controls: int
    reference_starts: int
    accident: float
    cost: dict[Case, Cost]
    notes: tuple[str, ...]
    probes: tuple[ProbeForecast, ...]


class Forecast(Struct, frozen=True):
    """A whole selection; names as in JSON.

    Attributes:
        tests: how many tests gate, claims included.
        accident: the share of runs in which some scenario of an unchanged build ends red, at most.
        scenarios: each of them.
        total: what all take, one after the other.
        problems: why the gate cannot work so.
        unjudged: ids of the tests that a run would give no verdict.
    """

    tests: int
    accident: float
    scenarios: tuple[ScenarioForecast, ...]
    total: dict[Case, Cost]
    problems: tuple[InputError, ...]
    unjudged: tuple[str, ...]


def forecast(
    scenarios: Sequence[Scenario],
    claims: Sequence[Claim],
    machine: Machine,
    override: BuildOverride,
    repo: EngineRepo | None = None,
) -> Forecast:
    """The forecast of a selection, with the build that a person names, else the installed one, else
    that of each document.

    Args:
        scenarios: what is selected.
        claims: all claims of the suite's files; those about the selected ones count as tests.
        machine: this machine, for what it keeps of itself.
        override: what a person says of the build under test.
        repo: a clone of the engine's repository.

    Raises:
        InputError: a stored baseline is unusable.
        SeveralInputErrors: documented values are.
    """
    installed = cache(_installed)
    found, tests = [], len(claims_of(scenarios, claims))
    for scenario in scenarios:
        probes, name, document = all_probes(scenario), scenario.engine.name, scenario.source
        tests += sum(len(one.gating_metrics()) for one in probes)
        tests += sum(len(one.gating_metrics()) for one in sweep_probes(scenario))
        said = override.of(name)
        if said.version is not None:
            build, source = EngineBuild(name, said.version, said.version), "as given"
        elif (here := installed(name)) is not None:
            build, source = here, "the installed one"
        else:
            version = document.engine_version or "unknown"
            build = EngineBuild(name, version, document.engine_commit or version)
            source = "of the document, as none is installed here"
        build = replace(build, commit=said.commit or build.commit)
        found.append(forecast_scenario(scenario, probes, build, machine, repo, source))
    probes_of = [(one, probe) for one in found for probe in one.probes]
    return Forecast(
        tests,
        1 - math.prod(1 - one.accident for one in found),
        tuple(found),
        {case: _sum([one.cost[case] for one in found]) for case in CASES},
        tuple(one.problem for _, probe in probes_of for one in probe.metrics if one.problem),
        tuple(f"{one.id}-{probe.probe}" for one, probe in probes_of if not probe.judged),
    )


def _installed(name: str) -> EngineBuild | None:
    try:
        return engine[name]().build(Locations.of_environment())
    except MissingProgram:
        return None


def forecast_scenario(
    scenario: Scenario,
    probes: Sequence[Probe],
    build: EngineBuild,
    machine: Machine,
    repo: EngineRepo | None = None,
    build_source: str = "as given",
) -> ScenarioForecast:
    """The forecast of one scenario.

    Args:
        scenario: the scenario.
        probes: what would be measured of it, in order.
        build: the build under test.
        machine, repo: as of `forecast`.
        build_source: who says that it is this build, in words.

    Raises:
        InputError, SeveralInputErrors: as `forecast`.
    """
    override = BuildOverride(build.version, build.commit)
    tools = toolchain_for(scenario, Locations(on_paper=True), override)
    references = References(tools, machine, "auto", repo=repo)
    compared = [(probe, references.comparison(probe)) for probe in probes]
    known = [_known_seconds(comparison) for _, comparison in compared]
    has_start = not any(known) and not all(map(tools.is_offline, probes))
    start_s = scenario.limits.start_s if has_start else 0.0
    most, notes = _most(scenario, known)
    found, first = [], []
    ends: dict[Case, list[Outcomes]] = {"unchanged": [], "slower": []}
    for (probe, comparison), seconds in zip(compared, known, strict=True):
        shown = [forecast_metric(probe, one, comparison, most) for one in probe.gating_metrics()]
        designs = [design for _, design in shown if design is not None]
        for case, of_probes in ends.items():
            of_probes.append(of_probe(designs, slower=case == "slower"))
        own = measures_itself(probe) and comparison.entry is None
        first.append(scenario.gate.reference_starts if own else 0)
        found.append(
            ProbeForecast(
                probe.label,
                _compared_with(probe, comparison),
                probe.is_smoke or any(metric.against != "nothing" for metric, _ in shown),
                seconds or _limit_s(probe, tools),
                not seconds,
                tuple(metric for metric, _ in shown),
            )
        )
    ends["worst"] = [end.at_worst() for end in ends["unchanged"]]
    at_most = has_start or not all(known)
    cost = {}
    for case, of_probes in ends.items():
        starts = max(first, default=0) + slowest(of_probes).starts
        times = [before + end.starts for before, end in zip(first, of_probes, strict=True)]
        each = [probe.seconds * often for probe, often in zip(found, times, strict=True)]
        hours = (start_s * starts + sum(each)) / 3600
        cost[case] = Cost(starts, hours, at_most, hours * scenario.hardware.gpus)
    together = slowest(ends["unchanged"])
    # One run more than the simulation of each probe saw.
    red = [end.regression + 1 / TRIALS for end in ends["unchanged"] if end.most > 1]
    return ScenarioForecast(
        scenario.id,
        scenario.hardware.label,
        scenario.hardware.gpus,
        build.name,
        build.version,
        build.commit,
        build_source,
        min(most, len(together.new)),
        len(together.controls) - 1,
        max(first, default=0),
        1 - math.prod(1 - share for share in red),
        cost,
        (*notes, *tools.engine.foreseen(scenario, build), *inert_notes(scenario)),
        tuple(found),
    )


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(
        sum(one.starts for one in costs),
        sum(one.hours for one in costs),
        any(one.hours_at_most for one in costs),
        sum(one.gpu_hours for one in costs),
    )


def _most(scenario: Scenario, known: Sequence[float]) -> tuple[int, list[str]]:
    """The fresh starts that the gate's policy allows, in number and in time, and a note."""
    gate = scenario.gate
    most = gate.max_starts if takes_turns(scenario) else min(gate.max_starts, Rule().max_runs)
    if gate.budget_s is None or not all(known):
        return most, []
    # Another start is made as long as the budget is not used up.
    in_time = max(1, math.ceil(gate.budget_s / sum(known)))
    if in_time >= most:
        return most, []
    few = f"{in_time} starts of {sum(known):.0f} s, not {most}"
    return in_time, [f"the budget of {gate.budget_s:g} s allows {few}"]


def _known_seconds(comparison: Reference) -> float:
    """What a run of the baseline took, on average; 0: none says so."""
    runs = comparison.entry.runs if comparison.entry else ()
    timed = [run.seconds for run in runs if run.seconds is not None]
    return fmean(timed) if timed else 0.0


def _limit_s(probe: Probe, tools: Toolchain) -> float:
    """What the scenario's limits allow for one measurement."""
    limits = probe.scenario.limits
    if isinstance(probe.what, Smoke) and not tools.is_offline(probe):
        return min(ANSWER_WITHIN_S, limits.silence_s) * len(probe.what.prompts)
    return limits.total_s


def _compared_with(probe: Probe, comparison: Reference) -> str:
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
