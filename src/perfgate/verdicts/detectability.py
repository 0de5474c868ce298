"""Detectability: what the gate could show of each metric before anything is measured.

Pure. Noise, margins and error rates are those that the gate itself takes
(`perfgate.verdicts.judgement`), so that a run holds to what is promised here.
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
from perfgate.gate.documented import MOST_STARTS, documented_margin, smallest_found
from perfgate.gate.noise import Noise
from perfgate.gate.performance import declared_band, measured_margin
from perfgate.gate.rule import Rule
from perfgate.gate.scores import documented_score, least_margin, standard_error
from perfgate.gate.simulated_answers import found_share, smallest_margin
from perfgate.gate.verdict import counted
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe
from perfgate.verdicts.documented_values import tolerance_of
from perfgate.verdicts.judgement import Reference, band_of, performance_test, sigma_of
from perfgate.verdicts.references import measures_itself
from perfgate.verdicts.start_effort import CHANGED_ANSWERS, AnswersTest, SpeedTest

# A drop of so many standard errors is called in 19 of 20 cases.
_FOUND_ERRORS = 2.576 + 1.645
_MISSED_MORE = "a loss of just the band would be missed more often than that"

Kind = Literal["baseline", "itself", "documented", "nothing"]
NoiseFrom = Literal["calibrated", "pooled", "prior", "measured", "answers", "document", "unknown"]


@dataclass(frozen=True)
class Prospect:
    """What one gating metric of one probe could show.

    Attributes:
        probe: what is measured.
        metric: canonical name.
        against: what it would be compared with.
        n_base: fresh starts of that.
        noise: of one fresh start, on the log scale; None: not known, or an accuracy.
        noise_from: where it comes from; "measured": what this machine showed, with a weak prior.
        band: the loss that counts, as a fraction (accuracy: absolute); None: none is declared.
        smallest: the loss that is found in 19 of 20 runs, with 1, 2, … fresh starts.
        test: what the simulation of the effort needs; None: one start settles it.
        problem: why the gate cannot work so.
        notes: what else a person should know.
    """

    probe: Probe
    metric: str
    against: Kind
    n_base: int = 0
    noise: Noise | None = None
    noise_from: NoiseFrom = "unknown"
    band: float | None = None
    smallest: tuple[float, ...] = ()
    test: SpeedTest | AnswersTest | None = None
    problem: InputError | None = None
    notes: tuple[str, ...] = ()


def prospects(probe: Probe, reference: Reference, rule: Rule, most: int) -> tuple[Prospect, ...]:
    """What each gating metric of `probe` could show.

    Args:
        probe: what would be measured.
        reference: what it would be compared with.
        rule: error rates of the selection.
        most: fresh starts of the build under test, at most.
    """
    metrics, entry = probe.gating_metrics(), reference.entry
    itself = entry is None and measures_itself(probe)
    judged = [
        metric
        for metric in metrics
        if not is_accuracy(metric) and (itself or (entry is not None and entry.values(metric)))
    ]
    shared = replace(rule, max_runs=most)
    found = []
    for metric in metrics:
        if metric in judged:
            found.append(_speed(probe, metric, reference, shared))
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


def _band(probe: Probe, metric: str) -> float | None:
    return band_of(metric, probe.scenario)


def _speed(probe: Probe, metric: str, reference: Reference, rule: Rule) -> Prospect:
    """A performance metric against a baseline, stored or still to be measured."""
    known = lookup(metric)
    against: Kind = "baseline" if reference.entry else "itself"
    band = _band(probe, metric)
    try:
        declared = declared_band(known, band)
        level, origin = _level(probe, metric, reference, rule)
    except InputError as error:
        return Prospect(probe, metric, against, band=band, problem=_placed(probe, metric, error))
    margin = scale.margin(known, declared)
    problem: InputError | None = None
    notes: tuple[str, ...] = ()
    if probe.scenario.gate.noise == "measured":
        wide = measured_margin(level, margin)
        if wide > margin:
            notes = (f"band widened from {declared:.1%}, which this noise does not resolve",)
        margin = wide
    else:
        problem = _below_the_floor(probe, level, declared)
    found = _against(probe, level, against, origin, margin)
    return replace(found, problem=problem, notes=notes)


def _against(
    probe: Probe, level: BaselineLevel, kind: Kind, origin: NoiseFrom, margin: float
) -> Prospect:
    metric, looks = level.metric, range(1, level.rule.max_runs + 1)
    return Prospect(
        probe,
        metric.name,
        kind,
        n_base=int(level.n_base),
        noise=level.noise,
        noise_from=origin,
        band=scale.band(metric, margin),
        smallest=tuple(scale.band(metric, level.smallest_detectable(n)) for n in looks),
        test=SpeedTest(level, margin),
    )


def _level(
    probe: Probe, metric: str, reference: Reference, rule: Rule
) -> tuple[BaselineLevel, NoiseFrom]:
    """What new runs would be compared with, as the gate will have it, and where its noise is from.

    Raises:
        InputError: too few runs to measure the noise.
    """
    learnt = reference.noise.get(metric)
    calibrated = learnt is not None and learnt.differences > 0
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


def _below_the_floor(probe: Probe, level: BaselineLevel, band: float) -> InputError | None:
    """The error of a band that the gate cannot resolve, with what would mend it; None: it can."""
    metric, n_base, most = level.metric, int(level.n_base), level.rule.max_runs
    margin = scale.margin(metric, band)

    def resolves(runs: int, starts: int) -> bool:
        return margin >= replace(level, n_base=runs).smallest_detectable(starts)

    try:
        noises.check_band(
            metric.name,
            band,
            n_base=n_base,
            max_runs=most,
            alpha=level.rule.alpha,
            noise=level.noise,
        )
    except InputError as error:
        least = scale.band(metric, level.smallest_detectable(most))
        ways = [f"widen the band to {math.ceil(least * 1000) / 1000:.1%} or more"]
        runs = [n for n in range(n_base + 1, MOST_RUNS + 1) if resolves(n, most)]
        if runs:
            ways.append(f"accept {runs[0]} baseline runs")
        starts = [n for n in range(most + 1, Rule().max_runs + 1) if resolves(n_base, n)]
        if starts:
            ways.append(f"allow {starts[0]} fresh starts (gate.max_starts)")
        if len(ways) == 1:
            ways = [f"{ways[0]}; more runs alone would not do"]
        return _placed(probe, metric.name, error, ", or ".join(ways))
    return None


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
    looks = range(2, min(most, MOST_STARTS) + 1)
    found = tuple(scale.band(known, smallest_found(margin, sigma, n)) for n in looks)
    return Prospect(
        probe,
        metric,
        "documented",
        n_base=1,
        noise=Noise(sigma, math.inf, f"prior {sigma:.2%}, stipulated"),
        noise_from="prior",
        band=scale.band(known, margin),
        smallest=found,
        notes=("the tolerance covers what the document's machine and this one differ by",),
    )


def _answers(probe: Probe, metric: str, entry: Entry) -> Prospect:
    """An accuracy against a baseline's answers, question by question."""
    band, evaluations = _band(probe, metric), entry.answers(metric)
    if not entry.values(metric) or band is None:
        return Prospect(probe, metric, "nothing", band=band)
    if not evaluations:
        note = "the baseline has no answers, so only the scores can be compared"
        return Prospect(probe, metric, "baseline", 1, band=band, notes=(note,))
    seen = changed_share(evaluations)
    changed = CHANGED_ANSWERS if seen is None else seen
    test = AnswersTest(len(evaluations[0]), band, len(evaluations), changed)
    least = smallest_margin(test.questions, changed, test.base_runs)
    note = f"{test.questions} questions, if {changed:.0%} of the answers differ from run to run"
    notes: tuple[str, ...] = (note,)
    if least is None or band < least:
        share = found_share(test.questions, changed, test.base_runs, margin=band)
        notes = (note, f"{_MISSED_MORE}: a drop of the margin is found in {share:.0%}")
    return Prospect(
        probe,
        metric,
        "baseline",
        n_base=test.base_runs,
        noise_from="answers",
        band=band,
        smallest=() if least is None else (least,),
        test=test,
        notes=notes,
    )


def _score(probe: Probe, metric: str, value: DocumentedValue) -> Prospect:
    """An accuracy against a documented score."""
    band = value.tolerance or _band(probe, metric)
    reference = documented_score(value.value, value.stderr)
    found = Prospect(probe, metric, "documented", n_base=1, noise_from="document", band=band)
    if reference.questions is None or band is None:
        return replace(found, notes=("a documented score without an error, taken as exact",))
    # As many questions are asked now as the documented standard error stands for.
    return replace(
        found,
        band=max(band, least_margin(reference, reference.questions)),
        smallest=(_FOUND_ERRORS * standard_error(reference, reference.questions, 3),),
    )
