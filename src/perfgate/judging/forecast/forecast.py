"""Forecast: what a selection would be compared with, what it could show, and how long it takes.

Runs nothing and needs no GPU. Noise, bands and error rates are those of the verdict, and the rules
are simulated as they are (`forecast.simulation`), so that a run holds to what is promised here.
Facts of the machine that would measure are not known here, so every comparison holds only if they
match the baseline's.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import fmean
from typing import Literal, get_args

from msgspec import Struct

from perfgate.baselines import MOST_RUNS, Entry
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.clients.first_answers import ANSWER_WITHIN_S
from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.programs.locations import Locations
from perfgate.core.verdict import Rule, counted
from perfgate.engines.base import EngineBuild, engine
from perfgate.judging.assembly.bands import BandSource, noise_of, resolve_band, sigma_of
from perfgate.judging.assembly.judgement import Reference, is_interleaved, measures_itself
from perfgate.judging.assembly.measured import inert_notes
from perfgate.judging.assembly.references import References
from perfgate.judging.assembly.sweeps import sweep_probes
from perfgate.judging.forecast import simulation
from perfgate.judging.forecast.simulation import BaselineDesign, Design, Outcomes, RuleDesign
from perfgate.judging.rules import scale
from perfgate.judging.rules.accuracy import documented_score, least_margin
from perfgate.judging.rules.documented import documented_margin
from perfgate.judging.rules.noise import OWN_SIGMA, WIDEST_BAND
from perfgate.judging.rules.performance import PerformanceTest, level_of
from perfgate.machine.hardware import Machine
from perfgate.plan.toolchain import BuildOverride, Toolchain, toolchain_for
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, GatePolicy, Scenario, Smoke

# A build that is as the baseline, one that loses a band of everything, and all the starts that its
# tests can ask for.
Case = Literal["unchanged", "slower", "worst"]

LOSSES = (0.0, 0.5, 1.0, 1.5)
"""True losses, in bands, at which odds are given."""

# A gate that finds less than this of a loss of 1.5 bands is refused.
_LEAST_FOUND, _REFUSED_AT = 0.80, 1.5
# Below, an unchanged build costs many starts, and a loss of one band is often missed.
_FEW_SIGMAS, _FEW_SESSIONS = 4.0, 3
_FEWEST_STARTS = 3  # of the new build: three must lie over half a band, or all over three bands
_WIDER, _WIDEST = 0.25, 20.0  # sigma: the step in which a band that would do is sought, and its end

# Evaluations that a baseline of answers should have (statistics §7).
_EVALUATIONS = 3

Against = Literal["baseline", "itself", "documented", "nothing"]
NoiseFrom = Literal["history", "pooled", "prior", "measured", "answers", "document", "unknown"]


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


class MetricForecast(Struct):
    """What one gating metric of one probe could show, filled in here; names as in JSON.

    Attributes:
        metric: canonical name.
        against: what it would be compared with.
        baseline_runs: fresh starts of that.
        baseline_sessions: sessions that they come from.
        sigma: noise of one fresh start, on the log scale; None: not known, or an accuracy.
        noise_from: where it comes from; "measured": what this machine showed, with a weak prior.
        noise: the same in words.
        band: the loss that counts, as a fraction (accuracy: absolute); None: none is declared.
        band_source: where the declared band comes from.
        smallest: the loss that is found in 19 of 20 runs, as a fraction (accuracy: absolute);
            None: none is, up to four bands, or it is not known.
        control: whether the other build would be started beside the new one; None: it does not
            matter.
        odds: how often each verdict, at each of `LOSSES`; empty: not simulated.
        problem: why the gate cannot work so.
        warnings: why it works worse than it could.
        notes: what else a person should know.
    """

    metric: str
    against: Against
    baseline_runs: int = 0
    baseline_sessions: int = 0
    sigma: float | None = None
    noise_from: NoiseFrom = "unknown"
    noise: str | None = None
    band: float | None = None
    band_source: BandSource = "family"
    smallest: float | None = None
    control: simulation.Control | None = None
    odds: tuple[simulation.Odds, ...] = ()
    problem: InputError | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
        reference_starts: fresh starts that the machine's own reference takes first; with blocks of
            load in turns one is up beside each of the build under test.
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
        {case: _sum([one.cost[case] for one in found]) for case in get_args(Case)},
        tuple(
            metric.problem for _, probe in probes_of for metric in probe.metrics if metric.problem
        ),
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
    references = References(tools, machine, repo=repo)
    compared = [(probe, references.comparison(probe)) for probe in probes]
    known = [_known_seconds(comparison) for _, comparison in compared]
    has_start = not any(known) and not all(map(tools.is_offline, probes))
    start_s = scenario.limits.start_s if has_start else 0.0
    most, notes = _most(scenario, known)
    own = [measures_itself(probe) and comparison.entry is None for probe, comparison in compared]
    first = [_own_starts(scenario.gate) if one else 0 for one in own]
    builds_up = 2 if scenario.gate.blocks and any(own) else 1
    found = list[ProbeForecast]()
    unchanged, slower = list[Outcomes](), list[Outcomes]()
    for (probe, comparison), seconds in zip(compared, known, strict=True):
        shown = [forecast_metric(probe, one, comparison, most) for one in probe.gating_metrics()]
        designs = [design for _, design in shown if design is not None]
        unchanged.append(simulation.of_probe(designs, slower=False))
        slower.append(simulation.of_probe(designs, slower=True))
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

    def cost(all_starts: float, of_probes: Iterable[float]) -> Cost:
        starts = float(max(first, default=0) + all_starts * builds_up)
        each = zip(found, first, of_probes, strict=True)
        spent = sum(probe.seconds * (before + often) for probe, before, often in each)
        hours = (start_s * starts + spent) / 3600
        return Cost(starts, hours, has_start or not all(known), hours * scenario.hardware.gpus)

    combined = simulation.slowest(unchanged)
    # One run more than the simulation of each probe saw.
    red = [end.regression + 1 / simulation.TRIALS for end in unchanged if end.most > 1]
    return ScenarioForecast(
        scenario.id,
        scenario.hardware.label,
        scenario.hardware.gpus,
        build.name,
        build.version,
        build.commit,
        build_source,
        min(most, len(combined.new)),
        len(combined.controls) - 1,
        max(first, default=0),
        1 - math.prod(1 - share for share in red),
        {
            "unchanged": cost(combined.starts, (end.starts for end in unchanged)),
            "slower": cost(simulation.slowest(slower).starts, (end.starts for end in slower)),
            "worst": cost(combined.most, (end.most for end in unchanged)),
        },
        (*notes, *tools.engine.known_limitations(scenario, build), *inert_notes(scenario)),
        tuple(found),
    )


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(
        sum(one.starts for one in costs),
        sum(cost.hours for cost in costs),
        any(one.hours_at_most for one in costs),
        sum(one.gpu_hours for one in costs),
    )


def _most(scenario: Scenario, known: Sequence[float]) -> tuple[int, list[str]]:
    """The fresh starts that the gate's policy allows, in number and in time, and a note."""
    gate = scenario.gate
    most = gate.max_starts if is_interleaved(scenario) else min(gate.max_starts, Rule().max_runs)
    if gate.budget_s is None or not all(known):
        return most, []
    # Another start is made as long as the budget is not used up.
    in_time = max(1, math.ceil(gate.budget_s / sum(known)))
    if in_time >= most:
        return most, []
    few = f"{in_time} starts of {sum(known):.0f} s, not {most}"
    return in_time, [f"the budget of {gate.budget_s:g} s allows {few}"]


def _own_starts(gate: GatePolicy) -> int:
    """Starts of the machine's own reference that come first; 0: one is up beside each new start."""
    return 0 if gate.blocks else gate.reference_starts


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
        return f"compared with {comparison.description}{condition}"
    if measures_itself(probe):
        starts = _own_starts(probe.scenario.gate)
        beside = "beside each start, noise taken as normal"
        made = f"{counted(starts, 'fresh start')} to be made first" if starts else beside
        return f"compared with this machine itself, {made}"
    if comparison.documented.keys() & set(probe.gating_metrics()):
        return f"compared with {comparison.description}"
    return "no baseline: the first run records one (--record), this one would only measure"


# One gating metric. --------------------------------------------------------------------------


def forecast_metric(
    probe: Probe, metric: str, reference: Reference, most: int
) -> tuple[MetricForecast, Design | None]:
    """What a gating metric of `probe` could show.

    Args:
        probe: what would be measured.
        metric: canonical name.
        reference: what it would be compared with.
        most: fresh starts of the build under test, at most.

    Returns:
        with the test that shows it; None: there is none, or one start settles it.
    """
    entry, value = reference.entry, reference.documented.get(metric)
    against: Against = "nothing"
    if entry is not None:
        against = "baseline" if entry.values(metric) else "nothing"
    elif measures_itself(probe):
        against = "itself"
    elif value is not None:
        against = "documented"
    band = resolve_band(metric, probe.scenario, value if against == "documented" else None)
    begin = partial(MetricForecast, metric, against, band=band.loss, band_source=band.source)
    found, design = begin(), None
    try:
        design = _design(found, probe, reference, most)
        if design is not None:
            _simulate(found, design, measures_noise=probe.scenario.gate.noise == "measured")
    except InputError as error:
        found, design = begin(problem=error), None
    if found.problem is not None:
        found.problem.problem = f"{probe.label}: {found.problem.problem}"
        found.problem.file = probe.scenario.file
        found.problem.field = f"{probe.scenario.id}.gate.bands.{metric}"
    return found, design


def _design(found: MetricForecast, probe: Probe, reference: Reference, most: int) -> Design | None:
    """The test of a metric; fills in what is known of its noise and its reference."""
    if found.against == "nothing":
        return None
    if found.against == "documented":
        return _of_document(found, probe, reference.documented[found.metric], most)
    if reference.entry is not None and is_accuracy(found.metric):
        return _of_answers(found, reference.entry)
    return _of_speed(found, probe, reference, most)


def _of_speed(found: MetricForecast, probe: Probe, reference: Reference, most: int) -> Design:
    """A speed against a stored baseline, or references that this machine makes in between."""
    known, entry, gate = lookup(found.metric), reference.entry, probe.scenario.gate
    margin = scale.margin(known, scale.declared_band(known, found.band))
    noise = noise_of(found.metric, probe.scenario, reference.noise)
    found.noise_from = "history" if noise.differences else "prior"
    if entry is None:
        starts, found.sigma = _own_starts(gate), noise.sigma or OWN_SIGMA
        until = f"until {counted(starts or most, 'reference start')} show more"
        found.noise = f"{found.noise_from} {found.sigma:.2%}, {until}"
        found.baseline_runs, found.baseline_sessions = starts or most, 1
        widest = scale.margin(known, WIDEST_BAND)
        design = simulation.in_turns(margin, widest, found.sigma, starts, most)
        if design.margin > margin:
            wide = f"band of {scale.band(known, design.margin):.1%} by the noise in the middle run"
            found.notes = (f"{wide}, {scale.band(known, margin):.1%} declared",)
        return design
    values = entry.values(found.metric)
    test = PerformanceTest(known.name, None, values, (), noise, entry.sessions(known.name))
    level = level_of(test, scale.log_loss(known, values, "baseline"), Rule())
    prior, dof = noise.sigma or known.family.sigma, noise.dof or Rule().prior_dof
    spread = f" and spread of {len(values)} runs" if len(values) > 1 else ""
    found.noise = f"{found.noise_from} {prior:.2%} with {dof:g} degrees of freedom{spread}"
    found.baseline_runs, found.baseline_sessions = len(values), int(level.sessions)
    # A baseline that is quiet by luck promises nothing.
    found.sigma, found.control = max(prior, float(level.sigma[0])), "alone"
    if gate.noise == "measured":
        found.sigma = float(level.sigma[0])
        forced = float(level.smallest_detectable(most, Rule().alpha)[0])
        if forced > margin:
            wider = f"band widened from {scale.band(known, margin):.1%}"
            found.notes, margin = (f"{wider}, which this noise does not resolve",), forced
    elif reference.source is not None and gate.control != "none":
        found.control = "controlled"
    elif gate.control == "required":
        found.control = "unproved"
    if not noise.differences:
        pooled: NoiseFrom = "pooled" if len(values) > 1 else "prior"
        found.noise_from = "measured" if gate.noise == "measured" else pooled
    # Which of the correlated metrics of a probe stands for this one.
    column = 0 if known.direction == "higher" else 1
    column = 2 if known.family.name.startswith("ttft") else column
    size, band = (len(values), found.baseline_sessions), margin / found.sigma
    return BaselineDesign(*size, band, found.control, most, noise.between, dof, column)


def _of_document(
    found: MetricForecast, probe: Probe, value: DocumentedValue, most: int
) -> RuleDesign | None:
    """A metric against its documented value; of a score the document may give the error."""
    found.baseline_runs, found.baseline_sessions, found.noise_from = 1, 1, "document"
    band = found.band or 0.0
    if not is_accuracy(found.metric):
        margin = documented_margin(lookup(found.metric), band)
        found.sigma, found.noise_from = sigma_of(found.metric, probe.scenario), "prior"
        found.noise = f"prior {found.sigma:.2%}, stipulated"
        assumed = f"{simulation.BETWEEN_MACHINES:.0%} between the document's machine and this one"
        found.notes = (f"{assumed} assumed",)
        settings = margin, found.sigma, most
        return RuleDesign(margin, simulation.documented_speed, settings, is_speed=True)
    score = documented_score(value.value, value.stderr)
    if score.questions is None:
        found.notes = ("a documented score without an error, taken as exact",)
        return None
    # As many questions are asked now as the documented standard error stands for.
    margin = max(band, least_margin(score, score.questions))
    if margin > band:
        raised = f"margin raised from {100 * band:.1f} points"
        found.notes = (f"{raised}, which its error does not resolve",)
    questions = max(1, round(score.questions))
    return RuleDesign(margin, simulation.documented_score, (score, questions, margin))


def _of_answers(found: MetricForecast, entry: Entry) -> RuleDesign | None:
    """An accuracy against a baseline's answers, question by question."""
    evaluations = entry.answers(found.metric)
    found.baseline_runs = len(evaluations) or len(entry.values(found.metric))
    found.baseline_sessions = entry.sessions(found.metric)
    if not evaluations:
        found.notes = ("the baseline has no answers, so only the scores can be compared",)
        return None
    seen, questions = simulation.changed_share(evaluations), len(evaluations[0])
    share = simulation.CHANGED_ANSWERS if seen is None else min(seen, simulation.MOST_CHANGED)
    said = "if" if seen is None else "as the baseline's evaluations show,"
    found.noise_from = "answers"
    varying = f"{questions} questions, {said} {share:.1%} of the"
    found.notes = (f"{varying} answers differ from run to run",)
    settings = questions, share, len(evaluations), found.band or 0.0
    return RuleDesign(settings[-1], simulation.paired_answers, settings)


def _simulate(found: MetricForecast, design: Design, *, measures_noise: bool) -> None:
    """Fill in the band, the smallest loss that is found, the odds, and what speaks against it."""
    found.odds = tuple(simulation.odds(design, loss) for loss in LOSSES)
    if isinstance(design, RuleDesign) and found.noise_from == "answers":
        _check_answers(found, design, measures_noise=measures_noise)
        return
    known, smallest = lookup(found.metric), simulation.smallest_found(design)
    if isinstance(design, RuleDesign):
        margin = design.margin
    else:
        margin = design.band * (found.sigma or 0.0)
        if not measures_noise:
            found.problem, found.warnings = _too_weak(found, design), _warnings(design)
    found.band = scale.band(known, margin)
    found.smallest = None if smallest is None else scale.band(known, smallest * margin)


def _check_answers(found: MetricForecast, design: RuleDesign, *, measures_noise: bool) -> None:
    """Fill in the smallest margin that the rule can hold; too small a one is a problem."""
    questions, share, evaluations, margin = design.settings
    least = found.smallest = simulation.smallest_margin(questions, share, evaluations)
    if least is not None and margin >= least:
        return
    if measures_noise:  # its answers may never vary: nobody knows yet
        found.warnings = ("a drop of the margin would be found too seldom",)
        return
    ways = [f"widen the margin to {100 * least:g} points or more"] if least is not None else []
    more = simulation.smallest_margin(questions, share, max(_EVALUATIONS, evaluations))
    if more is not None and more <= margin:
        ways.append(f"accept a baseline of {_EVALUATIONS} evaluations")
    lost = simulation.odds(design, 1.0).regression
    found.problem = InputError(
        f"the margin of {found.metric} is too small for its questions",
        found=f"{100 * margin:g} points, of which {lost:.0%} of "
        f"drops would be found, with {questions} questions and "
        f"{counted(evaluations, 'evaluation')} of the baseline",
        expected=f"at least {simulation.LEAST_FOUND:.0%}",
        hint=", or ".join(ways) or "ask more questions, or take the metric out of gate.metrics",
    )


def _warnings(design: BaselineDesign) -> tuple[str, ...]:
    """What makes the test worse than it could be."""
    most, sessions = counted(design.most, "start"), counted(design.sessions, "session")
    warnings = {
        f"the band is {design.band:.1f} sigma: under {_FEW_SIGMAS:g}, an unchanged build takes "
        "more starts and a loss of one band is missed more often": design.band < _FEW_SIGMAS - 0.01,
        f"the baseline is of {sessions}: {_FEW_SESSIONS} are wanted, of other nights or nodes "
        "(--record)": design.sessions < _FEW_SESSIONS,
        f"{most} of the build allowed: no loss under 3 bands can be a REGRESSION with fewer than "
        f"{_FEWEST_STARTS} (5 with their controls)": design.control == "controlled"
        and design.most < _FEWEST_STARTS,
        "a REGRESSION needs two starts, so none can be proved": design.control == "alone"
        and design.most < 2,
    }
    return tuple(text for text, holds in warnings.items() if holds)


def _too_weak(found: MetricForecast, design: BaselineDesign) -> InputError | None:
    """The error of a test that finds too little, with each change that would do by itself; None: it
    finds enough."""

    def share(of: BaselineDesign) -> float:
        return simulation.odds(of, _REFUSED_AT).regression

    def loss(sigmas: float) -> float:
        return scale.band(lookup(found.metric), sigmas * (found.sigma or 0.0))

    def first(designs: Iterable[BaselineDesign]) -> BaselineDesign | None:
        return next((design for design in designs if share(design) >= _LEAST_FOUND), None)

    if first([design]):
        return None
    ways = []
    steps = range(1, int((_WIDEST - design.band) / _WIDER) + 1)
    if wider := first(replace(design, band=design.band + _WIDER * step) for step in steps):
        ways.append(f"widen the band to {math.ceil(loss(wider.band) * 1000) / 1000:.1%} or more")
    more = [count for count in (3, 5, 10, MOST_RUNS) if count > design.sessions]
    if larger := first(replace(design, n_base=max(n, design.n_base), sessions=n) for n in more):
        ways.append(f"accept a baseline of {larger.sessions} sessions")
    allowed = range(design.most + 1, Rule().max_runs + 1)
    if longer := first(replace(design, most=count) for count in allowed):
        ways.append(f"allow {longer.most} fresh starts (gate.max_starts)")
    if design.control == "unproved":
        needed = "needs a baseline that says how its build is started (accept one again)"
        ways = [f"gate.control: required {needed}, or set it to auto"]
    return InputError(
        f"the gate of {found.metric} would find too little",
        found=f"{share(design):.0%} of losses of {loss(_REFUSED_AT * design.band):.1%} "
        f"({_REFUSED_AT:g} bands), with a band of {found.band:.2%} or {design.band:.1f} sigma, "
        f"{counted(design.n_base, 'baseline start')} of {counted(design.sessions, 'session')} "
        f"and at most {counted(design.most, 'start')} of the build",
        expected=f"at least {_LEAST_FOUND:.0%}",
        hint=", or ".join(ways) or "take the metric out of gate.metrics: it cannot gate so",
    )
