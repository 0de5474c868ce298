"""Metrics: what each gating metric of a probe could show, before anything is measured.

Pure. Noise, bands and error rates are those of the verdict, and the rules are simulated as they are
(`forecast.simulation`), so that a run holds to what is promised here.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from msgspec import Struct

from perfgate.baselines import MOST_RUNS, Entry
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import counted
from perfgate.judging.assembly.bands import BandSource, noise_of, resolve_band, sigma_of
from perfgate.judging.assembly.judgement import Reference, measures_itself
from perfgate.judging.forecast import simulation
from perfgate.judging.rules import scale
from perfgate.judging.rules.accuracy import documented_score, least_margin
from perfgate.judging.rules.documented import documented_margin
from perfgate.judging.rules.noise import OWN_SIGMA, WIDEST_BAND
from perfgate.judging.rules.scale import declared_band
from perfgate.judging.rules.sequential import levels
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe

LOSSES = (0.0, 0.5, 1.0, 1.5)
"""True losses, in bands, at which odds are given."""

# A gate that finds less than this of a loss of 1.5 bands is refused.
_LEAST_FOUND, _REFUSED_AT = 0.80, 1.5
# Below, an unchanged build costs many starts, and a loss of one band is often missed.
_FEW_SIGMAS, _FEW_SESSIONS = 4.0, 3
_FEWEST_STARTS = 3  # of the new build: three must lie over half a band, or all over three bands
_WIDER, _WIDEST = 0.25, 20.0  # sigma: the step in which a band that would do is sought, and its end

# Evaluations that a baseline of answers should have, and the share of answers that two of one build
# differ in at most where they are simulated (statistics §7).
_EVALUATIONS, _MOST_CHANGED = 3, 0.42

Against = Literal["baseline", "itself", "documented", "nothing"]
NoiseFrom = Literal["history", "pooled", "prior", "measured", "answers", "document", "unknown"]


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


def forecast_metric(
    probe: Probe, metric: str, reference: Reference, most: int
) -> tuple[MetricForecast, simulation.Design | None]:
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
    make: Callable[[MetricForecast], simulation.Design | None] | None = None
    if entry is not None and entry.values(metric):
        against = "baseline"
        make = partial(_of_answers, entry)
        if not is_accuracy(metric):
            make = partial(_of_baseline, probe, entry, reference, most)
    elif entry is None and measures_itself(probe):
        against, make = "itself", partial(_of_turns, probe, reference, most)
    elif entry is None and value is not None:
        against, make = "documented", partial(_of_document, probe, value, most)
    band = resolve_band(metric, probe.scenario, value if against == "documented" else None)
    begin = partial(MetricForecast, metric, against, band=band.loss, band_source=band.source)
    found, design = begin(), None
    try:
        design = make(found) if make else None
        if design is not None:
            _simulate(found, design, measures_noise=probe.scenario.gate.noise == "measured")
    except InputError as error:
        found, design = begin(problem=error), None
    if found.problem is not None:
        found.problem.problem = f"{probe.label}: {found.problem.problem}"
        found.problem.file = probe.scenario.file
        found.problem.field = f"{probe.scenario.id}.gate.bands.{metric}"
    return found, design


def _of_baseline(
    probe: Probe, entry: Entry, reference: Reference, most: int, found: MetricForecast
) -> simulation.BaselineDesign:
    """A speed against a stored baseline."""
    known, values, gate = lookup(found.metric), entry.values(found.metric), probe.scenario.gate
    margin, sessions = _declared(found), max(1, entry.sessions(found.metric))
    noise = noise_of(found.metric, probe.scenario, reference.noise)
    prior, dof = noise.sigma or known.family.sigma, noise.dof or Rule().prior_dof
    base = np.array([scale.badness(known, values, "baseline")])
    level = levels(base, prior, sessions=sessions, between=noise.between, prior_dof=dof)
    found.control = "unproved" if gate.control == "required" else "alone"
    if reference.source is not None and gate.control != "none":
        found.control = "controlled"
    found.noise_from = "pooled" if len(values) > 1 else "prior"
    # A baseline that is quiet by luck promises nothing.
    found.sigma = max(prior, float(level.sigma[0]))
    if gate.noise == "measured":
        found.control, found.noise_from, found.sigma = "alone", "measured", float(level.sigma[0])
        forced = float(level.smallest_detectable(most, Rule().alpha)[0])
        if forced > margin:
            wider = f"band widened from {scale.band(known, margin):.1%}"
            found.notes, margin = (f"{wider}, which this noise does not resolve",), forced
    if noise.differences:
        found.noise_from = "history"
    word = "history" if noise.differences else "prior"
    spread = f" and spread of {len(values)} runs" if len(values) > 1 else ""
    found.noise = f"{word} {prior:.2%} with {dof:g} degrees of freedom{spread}"
    found.baseline_runs, found.baseline_sessions = len(values), sessions
    # Which of the correlated metrics of a probe stands for this one.
    column = 0 if known.direction == "higher" else 1
    column = 2 if known.family.name.startswith("ttft") else column
    return simulation.BaselineDesign(
        len(values), sessions, margin / found.sigma, found.control, most, noise.between, dof, column
    )


def _of_turns(
    probe: Probe, reference: Reference, most: int, found: MetricForecast
) -> simulation.RuleDesign:
    """A speed against references that this machine is still to make in between."""
    known, starts = lookup(found.metric), probe.scenario.gate.reference_starts
    declared, widest = _declared(found), scale.margin(known, WIDEST_BAND)
    noise = noise_of(found.metric, probe.scenario, reference.noise)
    found.sigma = noise.sigma or OWN_SIGMA
    found.noise_from = "history" if noise.differences else "prior"
    until = f"until the {counted(starts, 'reference start')} show more"
    found.noise = f"{found.noise_from} {found.sigma:.2%}, {until}"
    found.baseline_runs, found.baseline_sessions = starts, 1
    design = simulation.in_turns(declared, widest, found.sigma, starts, most)
    if design.margin > declared:
        wide = f"band of {scale.band(known, design.margin):.1%} by the noise in the middle run"
        found.notes = (f"{wide}, {scale.band(known, declared):.1%} declared",)
    return design


def _of_document(
    probe: Probe, value: DocumentedValue, most: int, found: MetricForecast
) -> simulation.RuleDesign | None:
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
        return simulation.RuleDesign(margin, simulation.documented_speed, settings, is_speed=True)
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
    return simulation.RuleDesign(margin, simulation.documented_score, (score, questions, margin))


def _of_answers(entry: Entry, found: MetricForecast) -> simulation.RuleDesign | None:
    """An accuracy against a baseline's answers, question by question."""
    evaluations = entry.answers(found.metric)
    found.baseline_runs = len(evaluations) or len(entry.values(found.metric))
    found.baseline_sessions = entry.sessions(found.metric)
    if not evaluations:
        found.notes = ("the baseline has no answers, so only the scores can be compared",)
        return None
    seen, questions = simulation.changed_share(evaluations), len(evaluations[0])
    share = simulation.CHANGED_ANSWERS if seen is None else min(seen, _MOST_CHANGED)
    said = "if" if seen is None else "as the baseline's evaluations show,"
    found.noise_from = "answers"
    varying = f"{questions} questions, {said} {share:.1%} of the"
    found.notes = (f"{varying} answers differ from run to run",)
    settings = questions, share, len(evaluations), found.band or 0.0
    return simulation.RuleDesign(settings[-1], simulation.paired_answers, settings)


def _declared(found: MetricForecast) -> float:
    """The declared band of a speed on the log scale."""
    known = lookup(found.metric)
    return scale.margin(known, declared_band(known, found.band))


def _simulate(found: MetricForecast, design: simulation.Design, *, measures_noise: bool) -> None:
    """Fill in the band, the smallest loss that is found, the odds, and what speaks against it."""
    found.odds = tuple(simulation.outcomes(design, loss).odds(loss) for loss in LOSSES)
    if isinstance(design, simulation.BaselineDesign):
        margin = design.band * (found.sigma or 0.0)
    elif found.noise_from == "answers":
        _check_answers(found, design, measures_noise=measures_noise)
        return
    else:
        margin = design.margin
    known, smallest = lookup(found.metric), simulation.smallest_found(design)
    found.band = scale.band(known, margin)
    found.smallest = None if smallest is None else scale.band(known, smallest * margin)
    if isinstance(design, simulation.BaselineDesign) and not measures_noise:
        found.problem, found.warnings = _too_weak(found, design), _warnings(design)


def _check_answers(
    found: MetricForecast, design: simulation.RuleDesign, *, measures_noise: bool
) -> None:
    """Fill in the smallest margin that the rule can hold; too small a one is a problem."""
    questions, share, evaluations, margin = design.settings
    least = simulation.smallest_margin(questions, share, evaluations)
    found.smallest, ways = least, list[str]()
    if least is not None and margin >= least:
        return
    if measures_noise:  # its answers may never vary: nobody knows yet
        found.warnings = ("a drop of the margin would be found too seldom",)
        return
    if least is not None:
        ways.append(f"widen the margin to {100 * least:g} points or more")
    more = simulation.smallest_margin(questions, share, max(_EVALUATIONS, evaluations))
    if more is not None and more <= margin:
        ways.append(f"accept a baseline of {_EVALUATIONS} evaluations")
    lost = simulation.outcomes(design, 1.0).regression
    found.problem = InputError(
        f"the margin of {found.metric} is too small for its questions",
        found=f"{100 * margin:g} points, of which {lost:.0%} of "
        f"drops would be found, with {questions} questions and "
        f"{counted(evaluations, 'evaluation')} of the baseline",
        expected=f"at least {simulation.LEAST_FOUND:.0%}",
        hint=", or ".join(ways) or "ask more questions, or take the metric out of gate.metrics",
    )


def _warnings(design: simulation.BaselineDesign) -> tuple[str, ...]:
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


def _too_weak(found: MetricForecast, design: simulation.BaselineDesign) -> InputError | None:
    """The error of a test that finds too little; None: it does not."""
    share = _found_share(design)
    if share >= _LEAST_FOUND:
        return None
    beyond = scale.band(lookup(found.metric), _REFUSED_AT * design.band * (found.sigma or 0.0))
    return InputError(
        f"the gate of {found.metric} would find too little",
        found=f"{share:.0%} of losses of {beyond:.1%} ({_REFUSED_AT:g} bands), with a band of "
        f"{found.band:.2%} or {design.band:.1f} sigma, "
        f"{counted(design.n_base, 'baseline start')} of {counted(design.sessions, 'session')} "
        f"and at most {counted(design.most, 'start')} of the build",
        expected=f"at least {_LEAST_FOUND:.0%}",
        hint=_remedies(found, design),
    )


def _found_share(design: simulation.BaselineDesign) -> float:
    return simulation.outcomes(design, _REFUSED_AT).regression


def _remedies(found: MetricForecast, design: simulation.BaselineDesign) -> str:
    """Each change that would do by itself."""
    if design.control == "unproved":
        return (
            "gate.control: required needs a baseline that says how its build is started (accept "
            "one again), or set it to auto"
        )

    def first(designs: Iterable[simulation.BaselineDesign]) -> simulation.BaselineDesign | None:
        return next((one for one in designs if _found_share(one) >= _LEAST_FOUND), None)

    ways = []
    steps = range(1, int((_WIDEST - design.band) / _WIDER) + 1)
    if wider := first(replace(design, band=design.band + _WIDER * step) for step in steps):
        least = scale.band(lookup(found.metric), wider.band * (found.sigma or 0.0))
        ways.append(f"widen the band to {math.ceil(least * 1000) / 1000:.1%} or more")
    more = [count for count in (3, 5, 10, MOST_RUNS) if count > design.sessions]
    if larger := first(
        replace(design, n_base=max(count, design.n_base), sessions=count) for count in more
    ):
        ways.append(f"accept a baseline of {larger.sessions} sessions")
    allowed = range(design.most + 1, Rule().max_runs + 1)
    if longer := first(replace(design, most=count) for count in allowed):
        ways.append(f"allow {longer.most} fresh starts (gate.max_starts)")
    return ", or ".join(ways) or "take the metric out of gate.metrics: it cannot gate so"
