"""Detectability: what the gate could show of each metric before anything is measured.

Pure. Noise, bands and error rates are those that the gate itself takes
(`perfgate.verdicts.judgement`), and the rule is simulated as it stands (`perfgate.verdicts.power`),
so that a run holds to what is promised here.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from perfgate.baselines import MOST_RUNS, Entry
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.gate import noise as noises
from perfgate.gate import scale
from perfgate.gate.accuracy import changed_share
from perfgate.gate.baseline_level import BaselineLevel
from perfgate.gate.controls import ControlPolicy
from perfgate.gate.documented import documented_margin
from perfgate.gate.noise import Noise
from perfgate.gate.performance import declared_band, measured_margin
from perfgate.gate.rule import Rule
from perfgate.gate.scores import documented_score, least_margin
from perfgate.gate.simulated_answers import LEAST_FOUND as LEAST_MARGIN_FOUND
from perfgate.gate.simulated_answers import AnswerOutcomes, found_share, outcomes, smallest_margin
from perfgate.gate.simulated_references import ReferenceOdds
from perfgate.gate.verdict import counted
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe
from perfgate.verdicts.documented_values import tolerance_of
from perfgate.verdicts.judgement import Reference, band_of, performance_test, sigma_of
from perfgate.verdicts.power import (
    FEW_SESSIONS,
    FEW_SIGMAS,
    LEAST_FOUND,
    REFUSED_AT,
    Control,
    Design,
    Odds,
    bisected,
    odds,
    smallest_found,
)
from perfgate.verdicts.references import measures_itself
from perfgate.verdicts.start_effort import (
    BETWEEN_MACHINES,
    CHANGED_ANSWERS,
    AnswersTest,
    AnyTest,
    DocumentedTest,
    ScoreTest,
    SpeedTest,
    column_of,
    documented_odds,
    score_odds,
)

Kind = Literal["baseline", "itself", "documented", "nothing"]
NoiseFrom = Literal["calibrated", "pooled", "prior", "measured", "answers", "document", "unknown"]

# Evaluations that a baseline of answers should have, and the share of answers that two of one build
# differ in at most where they are simulated (statistics §7).
BASELINE_EVALUATIONS = 3
MOST_CHANGED = 0.42

# True losses, in bands, of which the odds are told.
LOSSES = (0.0, 0.5, 1.0, 1.5)
_WIDER = 0.25  # sigma: the step in which a band that would do is sought …
_WIDEST = 20.0  # … and where that ends
_FEWEST_STARTS = 3  # of the new build: three must lie over half a band, or all over three bands


@dataclass(frozen=True)
class Prospect:
    """What one gating metric of one probe could show.

    Attributes:
        probe: what is measured.
        metric: canonical name.
        against: what it would be compared with.
        n_base: fresh starts of that.
        sessions: sessions that they come from.
        noise: of one fresh start, on the log scale; None: not known, or an accuracy.
        noise_from: where it comes from; "measured": what this machine showed, with a weak prior.
        band: the loss that counts, as a fraction (accuracy: absolute); None: none is declared.
        smallest: the loss that is found in 19 of 20 runs, as a fraction (accuracy: absolute);
            None: none is, up to four bands, or it is not known.
        odds: how often each verdict, at each of `LOSSES`; empty: not simulated.
        test: what the simulation of the effort needs; None: one start settles it.
        problem: why the gate cannot work so.
        warnings: why it works worse than it could.
        notes: what else a person should know.
    """

    probe: Probe
    metric: str
    against: Kind
    n_base: int = 0
    sessions: int = 0
    noise: Noise | None = None
    noise_from: NoiseFrom = "unknown"
    band: float | None = None
    smallest: float | None = None
    odds: tuple[Odds, ...] = ()
    test: AnyTest | None = None
    problem: InputError | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def control(self) -> Control | None:
        """Whether the other build would be started beside the new one; None: it does not matter."""
        return self.test.design.control if isinstance(self.test, SpeedTest) else None


def prospects(
    probe: Probe,
    reference: Reference,
    rule: Rule,
    most: int,
    *,
    can_be_started: bool = False,
) -> tuple[Prospect, ...]:
    """What each gating metric of `probe` could show.

    Args:
        probe: what would be measured.
        reference: what it would be compared with.
        rule: error rates without control.
        most: fresh starts of the build under test, at most.
        can_be_started: whether the baseline says how its build is started.
    """
    metrics, entry = probe.gating_metrics(), reference.entry
    itself = entry is None and measures_itself(probe)
    control = control_of(probe.scenario.gate.control, can_be_started=can_be_started)
    shared = replace(rule, max_runs=most)
    found = []
    for metric in metrics:
        has_values = itself or (entry is not None and bool(entry.values(metric)))
        if not is_accuracy(metric) and has_values:
            found.append(_speed(probe, metric, reference, shared, control))
        elif is_accuracy(metric) and entry is not None:
            found.append(_answers(probe, metric, entry))
        elif entry is None and metric in reference.documented:
            value = reference.documented[metric]
            if is_accuracy(metric):
                found.append(_score(probe, metric, value))
            else:
                found.append(_documented(probe, metric, value, most))
        else:
            found.append(Prospect(probe, metric, "nothing", band=_band(probe, metric)))
    return tuple(found)


def control_of(policy: ControlPolicy, *, can_be_started: bool) -> Control:
    """Which rule that is: with controls, without, or without where one is required."""
    if can_be_started and policy != "none":
        return "controlled"
    return "unproved" if policy == "required" else "alone"


def _band(probe: Probe, metric: str) -> float | None:
    return band_of(metric, probe.scenario)


def _speed(
    probe: Probe, metric: str, reference: Reference, rule: Rule, control: Control
) -> Prospect:
    """A performance metric against a baseline, stored or still to be measured."""
    known = lookup(metric)
    against: Kind = "baseline" if reference.entry else "itself"
    band = _band(probe, metric)
    try:
        declared = declared_band(known, band)
        level, origin = _level(probe, metric, reference, rule)
    except InputError as error:
        return Prospect(probe, metric, against, band=band, problem=_placed(probe, metric, error))
    margin, notes = scale.margin(known, declared), tuple[str, ...]()
    own = probe.scenario.gate.noise == "measured"
    if own:
        wide = measured_margin(level, margin)
        if wide > margin:
            notes = (f"band widened from {declared:.1%}, which this noise does not resolve",)
        margin = wide
    sigma = _sigma(metric, probe, reference, level)
    design = Design(
        int(level.n_base),
        int(level.sessions),
        margin / sigma,
        "alone" if own else control,
        level.rule.max_runs,
        level.noise.between,
        level.rule,
    )
    smallest = smallest_found(design)
    found = Prospect(
        probe,
        metric,
        against,
        n_base=design.n_base,
        sessions=design.sessions,
        noise=replace(level.noise, sigma=sigma),
        noise_from=origin,
        band=scale.band(known, margin),
        smallest=None if smallest is None else scale.band(known, smallest * margin),
        odds=tuple(odds(design, loss) for loss in LOSSES),
        test=SpeedTest(design, column_of(known)),
        notes=notes,
    )
    if own:
        return found
    return replace(found, problem=_too_weak(found, design, sigma), warnings=_warnings(design))


def _sigma(metric: str, probe: Probe, reference: Reference, level: BaselineLevel) -> float:
    """The noise that is planned with: as history or the prior has it, or more if the baseline's own
    spread says so. A baseline that is quiet by luck promises nothing."""
    if probe.scenario.gate.noise == "measured":
        return level.noise.sigma
    test = performance_test(metric, probe.scenario, reference.entry, reference.noise)
    prior = test.noise.sigma or lookup(metric).family.sigma
    return max(prior, level.noise.sigma)


def _level(
    probe: Probe, metric: str, reference: Reference, rule: Rule
) -> tuple[BaselineLevel, NoiseFrom]:
    """What new runs would be compared with, as the gate will have it, and where its noise is from.

    Raises:
        InputError: too few runs to measure the noise.
    """
    calibrated = metric in reference.noise
    test = performance_test(metric, probe.scenario, reference.entry, reference.noise)
    values = test.baseline
    if reference.entry is None:
        starts = probe.scenario.gate.reference_starts
        rule, prior = test.noise.rule(rule), test.noise.sigma or noises.WEAK_SIGMA
        origin: NoiseFrom = "calibrated" if calibrated else "prior"
        more = f"until the {counted(starts, 'reference start')} show more"
        noise = Noise(prior, rule.prior_dof + starts - 1, f"{origin} {prior:.2%}, {more}")
        return BaselineLevel(lookup(metric), 0.0, starts, noise, rule, "this machine"), origin
    level = test.level(rule)
    if calibrated:
        source = level.noise.source.replace("prior", "calibrated", 1)
        return replace(level, noise=replace(level.noise, source=source)), "calibrated"
    if test.noise.measured:
        return level, "measured"
    return level, "pooled" if len(values) > 1 else "prior"


def _warnings(design: Design) -> tuple[str, ...]:
    """What makes the test worse than it could be, in words."""
    told = []
    if design.band < FEW_SIGMAS - 0.01:
        told.append(
            f"the band is {design.band:.1f} sigma: under {FEW_SIGMAS:g}, an unchanged build takes "
            "more starts and a loss of one band is missed more often"
        )
    if design.sessions < FEW_SESSIONS:
        told.append(
            f"the baseline is of {counted(design.sessions, 'session')}: {FEW_SESSIONS} are wanted, "
            "of other nights or nodes (--record)"
        )
    if few := _few_starts(design):
        told.append(few)
    return tuple(told)


def _few_starts(design: Design) -> str:
    """What the allowed starts cannot show; empty: they can."""
    if design.control == "controlled" and design.most < _FEWEST_STARTS:
        return (
            f"{counted(design.most, 'start')} of the build allowed: no loss under 3 bands can be a "
            f"REGRESSION with fewer than {_FEWEST_STARTS} (5 with their controls)"
        )
    if design.control == "alone" and design.most < 2:
        return "a REGRESSION needs two starts, so none can be proved"
    return ""


def _too_weak(found: Prospect, design: Design, sigma: float) -> InputError | None:
    """The error of a test that finds too little, with what would mend it; None: it does not."""
    share = odds(design, REFUSED_AT).regression
    if share >= LEAST_FOUND:
        return None
    margin = design.band * sigma
    beyond = scale.band(lookup(found.metric), REFUSED_AT * margin)
    error = InputError(
        f"the gate of {found.metric} would find too little",
        found=f"{share:.0%} of losses of {beyond:.1%} ({REFUSED_AT:g} bands), with a band of "
        f"{found.band:.2%} or {design.band:.1f} sigma, "
        f"{counted(design.n_base, 'baseline start')} of {counted(design.sessions, 'session')} "
        f"and at most {counted(design.most, 'start')} of the build",
        expected=f"at least {LEAST_FOUND:.0%}",
    )
    return _placed(found.probe, found.metric, error, _remedies(found, design, sigma))


def _remedies(found: Prospect, design: Design, sigma: float) -> str:
    """Each change that would do by itself."""

    def does(**changes: object) -> bool:
        return odds(replace(design, **changes), REFUSED_AT).regression >= LEAST_FOUND  # type: ignore[arg-type]

    ways = []
    if design.control == "unproved":
        return (
            "gate.control: required needs a baseline that says how its build is started (accept "
            "one again), or set it to auto"
        )
    steps = int((_WIDEST - design.band) / _WIDER) + 1
    wider = (design.band + _WIDER * step for step in range(1, max(1, steps)))
    if enough := next((band for band in wider if does(band=band)), None):
        least = scale.band(lookup(found.metric), enough * sigma)
        ways.append(f"widen the band to {math.ceil(least * 1000) / 1000:.1%} or more")
    more = [n for n in (3, 5, 10, MOST_RUNS) if n > design.sessions]
    if sessions := next((n for n in more if does(n_base=max(n, design.n_base), sessions=n)), None):
        ways.append(f"accept a baseline of {sessions} sessions")
    allowed = range(design.most + 1, Rule().max_runs + 1)
    if starts := next((n for n in allowed if does(most=n)), None):
        ways.append(f"allow {starts} fresh starts (gate.max_starts)")
    return ", or ".join(ways) or "take the metric out of gate.metrics: it cannot gate so"


def _placed(probe: Probe, metric: str, error: InputError, hint: str | None = None) -> InputError:
    """The error with the place in the scenario's file that it is about."""
    return InputError(
        f"{probe.label}: {error.problem}",
        file=probe.scenario.file,
        field=f"{probe.scenario.id}.gate.bands.{metric}",
        found=error.found,
        expected=error.expected,
        hint=hint or error.hint,
    )


def _documented(probe: Probe, metric: str, value: DocumentedValue, most: int) -> Prospect:
    """A performance metric against its documented value, which comes without a spread."""
    known = lookup(metric)
    margin = documented_margin(known, tolerance_of(value, _band(probe, metric)))
    sigma = sigma_of(metric, probe.scenario) or known.family.sigma
    test = DocumentedTest(margin, sigma, most)
    smallest = bisected(lambda loss: documented_odds(test, loss).below)
    return Prospect(
        probe,
        metric,
        "documented",
        n_base=1,
        sessions=1,
        noise=Noise(sigma, math.inf, f"prior {sigma:.2%}, stipulated"),
        noise_from="prior",
        band=scale.band(known, margin),
        smallest=None if smallest is None else scale.band(known, smallest * margin),
        odds=tuple(_told(loss, documented_odds(test, loss)) for loss in LOSSES),
        test=test,
        notes=(f"{BETWEEN_MACHINES:.0%} between the document's machine and this one assumed",),
    )


def _answers(probe: Probe, metric: str, entry: Entry) -> Prospect:
    """An accuracy against a baseline's answers, question by question."""
    band, evaluations = _band(probe, metric), entry.answers(metric)
    values = entry.values(metric)
    if not values or band is None:
        return Prospect(probe, metric, "nothing", band=band)
    found = Prospect(probe, metric, "baseline", len(values), entry.sessions(metric), band=band)
    if not evaluations:
        note = "the baseline has no answers, so only the scores can be compared"
        return replace(found, notes=(note,))
    seen = changed_share(evaluations)
    changed = CHANGED_ANSWERS if seen is None else min(seen, MOST_CHANGED)
    test = AnswersTest(len(evaluations[0]), band, len(evaluations), changed)
    key = test.questions, changed, test.base_runs
    said = "if" if seen is None else "as the baseline's evaluations show,"
    return replace(
        found,
        n_base=test.base_runs,
        noise_from="answers",
        smallest=smallest_margin(*key),
        odds=tuple(_of_answers(loss, outcomes(*key, band, loss * band)) for loss in LOSSES),
        test=test,
        problem=_margin_too_small(found, test),
        notes=(
            f"{test.questions} questions, {said} {changed:.1%} of the answers differ from run to "
            "run",
        ),
    )


def _margin_too_small(found: Prospect, test: AnswersTest) -> InputError | None:
    """The error of a margin that the rule cannot hold, with what would mend it; None: it can."""
    key = test.questions, test.changed, test.base_runs
    least = smallest_margin(*key)
    if least is not None and test.margin >= least:
        return None
    share = found_share(*key, margin=test.margin)
    error = InputError(
        f"the margin of {found.metric} is too small for its questions",
        found=f"{100 * test.margin:g} points, of which {share:.0%} of drops would be found, with "
        f"{test.questions} questions and {counted(test.base_runs, 'evaluation')} of the baseline",
        expected=f"at least {LEAST_MARGIN_FOUND:.0%}",
    )
    ways = [] if least is None else [f"widen the margin to {100 * least:g} points or more"]
    more = smallest_margin(test.questions, test.changed, BASELINE_EVALUATIONS)
    if test.base_runs < BASELINE_EVALUATIONS and more is not None and more <= test.margin:
        ways.append(f"accept a baseline of {BASELINE_EVALUATIONS} evaluations")
    hint = ", or ".join(ways) or "ask more questions, or take the metric out of gate.metrics"
    return _placed(found.probe, found.metric, error, hint)


def _score(probe: Probe, metric: str, value: DocumentedValue) -> Prospect:
    """An accuracy against a documented score."""
    score = documented_score(value.value, value.stderr)
    band = value.tolerance or _band(probe, metric)
    found = Prospect(
        probe, metric, "documented", n_base=1, sessions=1, noise_from="document", band=band
    )
    if score.questions is None or band is None:
        return replace(found, notes=("a documented score without an error, taken as exact",))
    # As many questions are asked now as the documented standard error stands for.
    least, notes = least_margin(score, score.questions), tuple[str, ...]()
    if band < least:
        notes = (f"margin raised from {100 * band:.1f} points, which its error does not resolve",)
    test = ScoreTest(score, max(band, least))
    smallest = bisected(lambda loss: score_odds(test, loss).below)
    return replace(
        found,
        band=test.margin,
        smallest=None if smallest is None else smallest * test.margin,
        odds=tuple(_told(loss, score_odds(test, loss)) for loss in LOSSES),
        test=test,
        notes=notes,
    )


def _told(loss: float, found: ReferenceOdds) -> Odds:
    starts = sum(number * share for number, share in enumerate(found.starts, start=1))
    undecided = max(0.0, 1 - found.below - found.passed)
    return Odds(loss, found.below, found.passed, undecided, 0.0, starts, 0.0)


def _of_answers(loss: float, found: AnswerOutcomes) -> Odds:
    lost, passed = found.found_share, found.passed_share
    return Odds(loss, lost, passed, max(0.0, 1 - lost - passed), 0.0, found.evaluations, 0.0)
