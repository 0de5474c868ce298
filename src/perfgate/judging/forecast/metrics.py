"""Metrics: what each gating metric of a probe could show, before anything is measured.

Pure. Noise, bands and error rates are those of the verdict, and the rules are simulated as they are
(`forecast.simulation`), so that a run holds to what is promised here.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace as changed

from perfgate.baselines import MOST_RUNS, Entry
from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric, is_accuracy, lookup
from perfgate.core.rule import ControlPolicy, Rule
from perfgate.core.verdict import counted
from perfgate.judging.assembly.bands import BandSource, noise_of, resolve_band, sigma_of
from perfgate.judging.assembly.judgement import Reference, measures_itself
from perfgate.judging.forecast import simulation
from perfgate.judging.forecast.odds import LEAST_FOUND as LEAST_MARGIN_FOUND
from perfgate.judging.forecast.odds import changed_share
from perfgate.judging.forecast.simulation import BaselineDesign, Control, Design, Odds, outcomes
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


class MetricForecast(Struct, frozen=True):
    """What one gating metric of one probe could show; names as in JSON.

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
    control: Control | None = None
    odds: tuple[Odds, ...] = ()
    problem: InputError | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


# With the test that shows it; None: there is none, or one start settles it.
Shown = tuple[MetricForecast, Design | None]


def forecast_metric(probe: Probe, metric: str, reference: Reference, most: int) -> Shown:
    """What a gating metric of `probe` could show.

    Args:
        probe: what would be measured.
        metric: canonical name.
        reference: what it would be compared with.
        most: fresh starts of the build under test, at most.
    """
    entry, value = reference.entry, None
    against: Against = "nothing"
    if entry is not None and entry.values(metric):
        against = "baseline"
    elif entry is None and measures_itself(probe):
        against = "itself"
    elif entry is None and metric in reference.documented:
        against, value = "documented", reference.documented[metric]
    band = resolve_band(metric, probe.scenario, value)
    found = MetricForecast(metric, against, band=band.loss, band_source=band.source)
    design: Design | None = None
    try:
        if value is not None:
            found, design = _of_document(found, probe, value, most)
        elif against == "itself":
            found, design = _of_turns(found, probe, reference, most)
        elif entry is not None and against == "baseline" and is_accuracy(metric):
            found, design = _of_answers(found, probe, entry)
        elif entry is not None and against == "baseline":
            found, design = _of_baseline(found, probe, entry, reference, most)
    except InputError as error:
        found = changed(found, problem=error)
    if found.problem is not None:
        found.problem.problem = f"{probe.label}: {found.problem.problem}"
        found.problem.file = probe.scenario.file
        found.problem.field = f"{probe.scenario.id}.gate.bands.{metric}"
    return found, design


def _control(policy: ControlPolicy, reference: Reference) -> Control:
    """Which rule that is: with controls, without, or without where one is required."""
    if reference.source is not None and policy != "none":
        return "controlled"
    return "unproved" if policy == "required" else "alone"


def _simulated(
    found: MetricForecast, design: Design, margin: float, **changes: Any
) -> MetricForecast:
    """With the band, the smallest loss that is found, and the odds; `margin` is the test's."""
    smallest = simulation.smallest_found(design)
    return changed(
        found,
        band=_loss(found.metric, margin),
        smallest=None if smallest is None else _loss(found.metric, smallest * margin),
        odds=_odds(design),
        **changes,
    )


def _odds(design: Design) -> tuple[Odds, ...]:
    return tuple(outcomes(design, loss).odds(loss) for loss in LOSSES)


def _loss(metric: str, margin: float) -> float:
    """A margin as people declare it: a fraction, of an accuracy absolute."""
    return margin if is_accuracy(metric) else scale.band(lookup(metric), margin)


def _of_baseline(
    found: MetricForecast,
    probe: Probe,
    entry: Entry,
    reference: Reference,
    most: int,
) -> Shown:
    """A speed against a stored baseline."""
    known, values = lookup(found.metric), entry.values(found.metric)
    sessions = max(1, entry.sessions(found.metric))
    noise = noise_of(found.metric, probe.scenario, reference.noise)
    prior, dof = noise.sigma or known.family.sigma, noise.dof or Rule().prior_dof
    margin = scale.margin(known, declared_band(known, found.band))
    base = np.array([scale.badness(known, values, "baseline")])
    level = levels(base, prior, sessions=sessions, between=noise.between, prior_dof=dof)
    control = _control(probe.scenario.gate.control, reference)
    sigma, declared = float(level.sigma[0]), margin
    own = probe.scenario.gate.noise == "measured"
    if own:
        forced = float(level.smallest_detectable(most, Rule().alpha)[0])
        control, margin = "alone", max(declared, forced)
    else:  # a baseline that is quiet by luck promises nothing
        sigma = max(prior, sigma)
    wider = f"band widened from {scale.band(known, declared):.1%}"
    n_base, column = len(values), _column_of(known)
    spread = f" and spread of {n_base} runs" if n_base > 1 else ""
    word: NoiseFrom = "history" if noise.differences else "prior"
    shown: NoiseFrom = "measured" if own else "pooled" if spread else "prior"
    design = BaselineDesign(
        n_base, sessions, margin / sigma, control, most, noise.between, dof, column
    )
    found = _simulated(
        found,
        design,
        margin,
        baseline_runs=n_base,
        baseline_sessions=sessions,
        sigma=sigma,
        noise_from="history" if noise.differences else shown,
        noise=f"{word} {prior:.2%} with {dof:g} degrees of freedom{spread}",
        control=control,
        notes=(f"{wider}, which this noise does not resolve",) if margin > declared else (),
    )
    if own:
        return found, design
    problem = _too_weak(found, design, sigma)
    return changed(found, problem=problem, warnings=_warnings(design)), design


def _column_of(metric: Metric) -> int:
    """Which of the correlated metrics of a probe stands for this one: throughput, time per output
    token, time to first token."""
    if metric.family.name.startswith("ttft"):
        return 2
    return 0 if metric.direction == "higher" else 1


def _of_turns(found: MetricForecast, probe: Probe, reference: Reference, most: int) -> Shown:
    """A speed against references that this machine is still to make in between."""
    known, starts = lookup(found.metric), probe.scenario.gate.reference_starts
    declared = scale.margin(known, declared_band(known, found.band))
    noise = noise_of(found.metric, probe.scenario, reference.noise)
    sigma, word = noise.sigma or OWN_SIGMA, "history" if noise.differences else "prior"
    widest = scale.margin(known, WIDEST_BAND)
    design = simulation.TurnsDesign(declared, widest, sigma, starts, most)
    wide = f"band of {scale.band(known, design.margin):.1%} by the noise in the middle run"
    note = f"{wide}, {scale.band(known, declared):.1%} declared"
    found = _simulated(
        found,
        design,
        design.margin,
        baseline_runs=starts,
        baseline_sessions=1,
        sigma=sigma,
        noise_from=word,
        noise=f"{word} {sigma:.2%}, until the {counted(starts, 'reference start')} show more",
        notes=(note,) if design.margin > declared else (),
    )
    return found, design


def _of_document(found: MetricForecast, probe: Probe, value: DocumentedValue, most: int) -> Shown:
    """A metric against its documented value; of a score the document may give the error."""
    found = changed(found, baseline_runs=1, baseline_sessions=1, noise_from="document")
    band = found.band or 0.0
    if not is_accuracy(found.metric):
        margin = documented_margin(lookup(found.metric), band)
        sigma = sigma_of(found.metric, probe.scenario)
        assumed = f"{simulation.BETWEEN_MACHINES:.0%} between the document's machine and this one"
        found = changed(
            found,
            sigma=sigma,
            noise_from="prior",
            noise=f"prior {sigma:.2%}, stipulated",
            notes=(f"{assumed} assumed",),
        )
        speed = simulation.DocumentDesign(margin, sigma, most)
        return _simulated(found, speed, margin), speed
    score = documented_score(value.value, value.stderr)
    if score.questions is None:
        note = "a documented score without an error, taken as exact"
        return changed(found, notes=(note,)), None
    # As many questions are asked now as the documented standard error stands for.
    margin = max(band, least_margin(score, score.questions))
    note = f"margin raised from {100 * band:.1f} points, which its error does not resolve"
    design = simulation.ScoreDesign(score, margin)
    return _simulated(found, design, margin, notes=(note,) if margin > band else ()), design


def _of_answers(found: MetricForecast, probe: Probe, entry: Entry) -> Shown:
    """An accuracy against a baseline's answers, question by question."""
    evaluations, sessions = entry.answers(found.metric), entry.sessions(found.metric)
    runs = len(evaluations) or len(entry.values(found.metric))
    found = changed(found, baseline_runs=runs, baseline_sessions=sessions)
    if not evaluations:
        note = "the baseline has no answers, so only the scores can be compared"
        return changed(found, notes=(note,)), None
    seen, questions = changed_share(evaluations), len(evaluations[0])
    share = simulation.CHANGED_ANSWERS if seen is None else min(seen, _MOST_CHANGED)
    said = "if" if seen is None else "as the baseline's evaluations show,"
    design = simulation.AnswersDesign(questions, found.band or 0.0, runs, share)
    least, note = design.smallest_margin, f"{questions} questions, {said} {share:.1%} of the"
    found = changed(
        found,
        noise_from="answers",
        smallest=least,
        odds=_odds(design),
        notes=(f"{note} answers differ from run to run",),
    )
    if least is None or design.margin < least:
        if probe.scenario.gate.noise == "measured":
            # A scenario that measures itself may have answers that never vary: nobody knows yet.
            found = changed(found, warnings=("a drop of the margin would be found too seldom",))
        else:
            found = changed(found, problem=_margin_too_small(found, design))
    return found, design


def _margin_too_small(found: MetricForecast, design: simulation.AnswersDesign) -> InputError:
    """The error of a margin that the rule cannot hold, with each change that would do by itself."""
    ways, least = list[str](), found.smallest
    if least is not None:
        ways.append(f"widen the margin to {100 * least:g} points or more")
    more = replace(design, base_runs=max(_EVALUATIONS, design.base_runs)).smallest_margin
    if more is not None and more <= design.margin:
        ways.append(f"accept a baseline of {_EVALUATIONS} evaluations")
    return InputError(
        f"the margin of {found.metric} is too small for its questions",
        found=f"{100 * design.margin:g} points, of which {outcomes(design, 1.0).regression:.0%} of "
        f"drops would be found, with {design.questions} questions and "
        f"{counted(design.base_runs, 'evaluation')} of the baseline",
        expected=f"at least {LEAST_MARGIN_FOUND:.0%}",
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


def _too_weak(found: MetricForecast, design: BaselineDesign, sigma: float) -> InputError | None:
    """The error of a test that finds too little; None: it does not."""
    share = outcomes(design, _REFUSED_AT).regression
    if share >= _LEAST_FOUND:
        return None
    beyond = _loss(found.metric, _REFUSED_AT * design.band * sigma)
    return InputError(
        f"the gate of {found.metric} would find too little",
        found=f"{share:.0%} of losses of {beyond:.1%} ({_REFUSED_AT:g} bands), with a band of "
        f"{found.band:.2%} or {design.band:.1f} sigma, "
        f"{counted(design.n_base, 'baseline start')} of {counted(design.sessions, 'session')} "
        f"and at most {counted(design.most, 'start')} of the build",
        expected=f"at least {_LEAST_FOUND:.0%}",
        hint=_remedies(found, design, sigma),
    )


def _remedies(found: MetricForecast, design: BaselineDesign, sigma: float) -> str:
    """Each change that would do by itself."""
    if design.control == "unproved":
        return (
            "gate.control: required needs a baseline that says how its build is started (accept "
            "one again), or set it to auto"
        )

    def first(designs: Iterable[BaselineDesign]) -> BaselineDesign | None:
        enough = (one for one in designs if outcomes(one, _REFUSED_AT).regression >= _LEAST_FOUND)
        return next(enough, None)

    ways = []
    steps = range(1, int((_WIDEST - design.band) / _WIDER) + 1)
    if wider := first(replace(design, band=design.band + _WIDER * step) for step in steps):
        least = _loss(found.metric, wider.band * sigma)
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
