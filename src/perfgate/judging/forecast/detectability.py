"""Detectability: what the gate could show of each metric before anything is measured.

Pure. Noise, bands and error rates are those that the gate itself takes
(`assembly.judgement`), and the rule is simulated as it stands (`forecast.power`),
so that a run holds to what is promised here.
"""

import math
from dataclasses import replace

from perfgate.baselines import MOST_RUNS
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import ControlPolicy, Rule
from perfgate.core.verdict import counted
from perfgate.judging.assembly.bands import BandSource, band_of, resolve_band
from perfgate.judging.assembly.judgement import Reference, performance_test
from perfgate.judging.assembly.references import measures_itself
from perfgate.judging.forecast.power import (
    FEW_SESSIONS,
    FEW_SIGMAS,
    LEAST_FOUND,
    REFUSED_AT,
    Control,
    Design,
    bisected,
    odds,
    smallest_found,
)
from perfgate.judging.forecast.prospect import LOSSES, Kind, NoiseFrom, Prospect, placed
from perfgate.judging.forecast.reference_prospects import of_answers, of_document, of_score
from perfgate.judging.forecast.start_effort import (
    InterleavedTest,
    SpeedTest,
    column_of,
    interleaved_margin,
    interleaved_odds,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import OWN_SIGMA, WIDEST_BAND, Noise
from perfgate.judging.rules.performance import BaselineLevel, declared_band, forced_margin
from perfgate.scenarios.probe import Probe

_WIDER = 0.25  # sigma: the step in which a band that would do is sought …
_WIDEST = 20.0  # … and where that ends
_FEWEST_STARTS = 3  # of the new build: three must lie over half a band, or all over three bands


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
        has_values = entry is not None and bool(entry.values(metric))
        if not is_accuracy(metric) and itself:
            found.append(_itself(probe, metric, reference, most))
        elif not is_accuracy(metric) and has_values:
            found.append(_speed(probe, metric, reference, shared, control))
        elif is_accuracy(metric) and entry is not None:
            found.append(of_answers(probe, metric, entry))
        elif entry is None and metric in reference.documented:
            value = reference.documented[metric]
            if is_accuracy(metric):
                found.append(of_score(probe, metric, value))
            else:
                found.append(of_document(probe, metric, value, most))
        else:
            found.append(Prospect(probe, metric, "nothing", band=_band(probe, metric)))
    return tuple(replace(one, band_source=_band_source(one, reference)) for one in found)


def _band_source(one: Prospect, reference: Reference) -> BandSource:
    value = reference.documented.get(one.metric) if one.against == "documented" else None
    return resolve_band(one.metric, one.probe.scenario, value).source


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
    """A performance metric against a stored baseline."""
    known = lookup(metric)
    against: Kind = "baseline"
    band = _band(probe, metric)
    try:
        declared = declared_band(known, band)
        level, origin = _level(probe, metric, reference, rule)
    except InputError as error:
        return Prospect(probe, metric, against, band=band, problem=placed(probe, metric, error))
    margin, notes = scale.margin(known, declared), tuple[str, ...]()
    own = probe.scenario.gate.noise == "measured"
    if own:
        wide = max(margin, forced_margin(level))
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
    test = performance_test(metric, probe.scenario, reference.entry, reference.noise)
    level = test.level(rule)
    if _is_learnt(reference, metric):
        source = level.noise.source.replace("prior", "history", 1)
        return replace(level, noise=replace(level.noise, source=source)), "history"
    if test.noise.widen:
        return level, "measured"
    return level, "pooled" if len(test.baseline) > 1 else "prior"


def _is_learnt(reference: Reference, metric: str) -> bool:
    """Whether the noise is known from this hardware's history."""
    noise = reference.noise.get(metric)
    return noise is not None and noise.differences > 0


def _itself(probe: Probe, metric: str, reference: Reference, most: int) -> Prospect:
    """A performance metric against references that this machine is still to make in between."""
    known, band = lookup(metric), _band(probe, metric)
    try:
        declared = declared_band(known, band)
    except InputError as error:
        return Prospect(probe, metric, "itself", band=band, problem=placed(probe, metric, error))
    starts = probe.scenario.gate.reference_starts
    prior = performance_test(metric, probe.scenario, None, reference.noise).noise.sigma
    sigma = OWN_SIGMA if prior is None else prior
    margins = scale.margin(known, declared), scale.margin(known, WIDEST_BAND)
    test = InterleavedTest(*margins, sigma, starts, most)
    margin = interleaved_margin(test)
    smallest = bisected(lambda loss: interleaved_odds(test, loss).regression)
    origin: NoiseFrom = "history" if _is_learnt(reference, metric) else "prior"
    more = f"until the {counted(starts, 'reference start')} show more"
    notes = (
        f"band of {scale.band(known, margin):.1%} by the noise in the middle run, {declared:.1%} "
        "declared",
    )
    return Prospect(
        probe,
        metric,
        "itself",
        n_base=starts,
        sessions=1,
        noise=Noise(sigma, starts - 1, f"{origin} {sigma:.2%}, {more}"),
        noise_from=origin,
        band=scale.band(known, margin),
        smallest=None if smallest is None else scale.band(known, smallest * margin),
        odds=tuple(interleaved_odds(test, loss) for loss in LOSSES),
        test=test,
        notes=notes if margin > scale.margin(known, declared) else (),
    )


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
    return placed(found.probe, found.metric, error, _remedies(found, design, sigma))


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
