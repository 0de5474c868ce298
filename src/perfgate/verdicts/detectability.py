"""Detectability: what the gate could show of each metric before anything is measured.

Pure. Noise, margins and error rates are those that the gate itself takes
(`perfgate.verdicts.judgement`), so that a run holds to what is promised here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scipy.special import ndtri

from perfgate.baselines import MOST_RUNS
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.gate import noise as noises
from perfgate.gate import scale
from perfgate.gate.noise import Noise
from perfgate.gate.performance import DOCUMENTED_RULE, ENVIRONMENT_SIGMA, LEAST_TOLERANCE
from perfgate.gate.rule import Rule
from perfgate.gate.scores import documented_score
from perfgate.gate.verdict import counted
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe
from perfgate.verdicts.judgement import Reference, band_of, sigma_of
from perfgate.verdicts.references import measures_itself
from perfgate.verdicts.start_effort import CHANGED_ANSWERS, AnswersTest, SpeedTest

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
    metrics = probe.gating_metrics()
    itself = reference.entry is None and measures_itself(probe)
    judged = [
        metric
        for metric in metrics
        if not is_accuracy(metric)
        and (itself or (reference.entry is not None and reference.entry.values(metric)))
    ]
    # Metrics of one probe share alpha (Holm 1979); at the worst one of them has only its part.
    shared = replace(rule, alpha=rule.alpha / max(1, len(judged)))
    found = []
    for metric in metrics:
        if metric in judged:
            found.append(_speed(probe, metric, reference, shared, most))
        elif is_accuracy(metric) and reference.entry is not None:
            found.append(_answers(probe, metric, reference))
        elif reference.entry is None and metric in reference.documented:
            value = reference.documented[metric]
            judge = _score if is_accuracy(metric) else _documented
            found.append(judge(probe, metric, value, most))
        else:
            found.append(Prospect(probe, metric, "nothing", band=_band(probe, metric)))
    return tuple(found)


def _band(probe: Probe, metric: str) -> float | None:
    return band_of(metric, probe.scenario)


def _speed(probe: Probe, metric: str, reference: Reference, rule: Rule, most: int) -> Prospect:
    """A performance metric against a baseline, stored or still to be measured."""
    known = lookup(metric)
    declared = _band(probe, metric)
    against: Kind = "baseline" if reference.entry else "itself"
    if declared is None:
        error = InputError(
            f"{metric} is only reported: it has no default band and cannot gate without one",
            file=probe.scenario.file,
            field=f"{probe.scenario.id}.gate.bands.{metric}",
            hint="give it a band, or take it out of gate.metrics",
        )
        return Prospect(probe, metric, against, problem=error)
    measured = probe.scenario.gate.noise == "measured"
    if measured:
        rule = replace(
            rule,
            alpha=noises.MEASURED_ALPHA,
            beta=noises.MEASURED_BETA,
            prior_dof=noises.WEAK_DOF,
        )
    try:
        noise, n_base, origin = _noise(probe, metric, reference, rule)
    except InputError as error:
        placed = _placed(probe, metric, error)
        return Prospect(probe, metric, against, band=declared, problem=placed)
    margin = scale.margin(known, declared)
    notes: tuple[str, ...] = ()
    problem = None
    if measured:
        wide = noises.measured_margin(noise, n_base=n_base, max_runs=most, floor=margin)
        if wide > margin:
            notes = (f"band widened from {declared:.1%}, which this noise does not resolve",)
        margin = wide
    else:
        problem = _below_the_floor(probe, metric, declared, noise, n_base, most, rule.alpha)
    return Prospect(
        probe,
        metric,
        against,
        n_base=n_base,
        noise=noise,
        noise_from=origin,
        band=scale.band(known, margin),
        smallest=_smallest(metric, noise, n_base, most, rule.alpha),
        test=SpeedTest(margin, noise, n_base, rule.alpha, rule.beta, most),
        problem=problem,
        notes=notes,
    )


def _noise(
    probe: Probe, metric: str, reference: Reference, rule: Rule
) -> tuple[Noise, int, NoiseFrom]:
    """Noise of one fresh start as the gate will get it, the baseline's runs, and its origin.

    Raises:
        InputError: too few runs to measure the noise.
    """
    policy = probe.scenario.gate
    known = lookup(metric)
    prior = sigma_of(metric, probe.scenario) or noises.WEAK_SIGMA
    dof = rule.prior_dof
    calibrated = reference.noise.get(metric)
    if calibrated is not None:
        prior = calibrated.sigma
        dof = dof if policy.noise == "measured" else calibrated.dof
    if reference.entry is None:
        starts = policy.reference_starts
        origin: NoiseFrom = "prior" if calibrated is None else "calibrated"
        more = f"until the {counted(starts, 'reference start')} show more"
        return Noise(prior, dof + starts - 1, f"{origin} {prior:.2%}, {more}"), starts, origin
    values = scale.badness(known, reference.entry.values(metric), "baseline")
    if policy.noise == "measured" and len(values) < noises.FEWEST_TO_MEASURE_NOISE:
        raise InputError(
            f"too few baseline runs to measure this machine's noise in {metric}",
            found=len(values),
            expected=f"{noises.FEWEST_TO_MEASURE_NOISE} or more",
            hint="measure the reference again with 4 or 5 fresh starts (gate.reference_starts)",
        )
    kept, _ = noises.winsorise(values, prior)
    noise = noises.pooled(prior, dof, [kept])
    if calibrated is not None:
        noise = replace(noise, source=noise.source.replace("prior", "calibrated", 1))
        return noise, len(kept), "calibrated"
    if policy.noise == "measured":
        return noise, len(kept), "measured"
    return noise, len(kept), "pooled" if len(kept) > 1 else "prior"


def _smallest(
    metric: str,
    noise: Noise,
    n_base: int,
    most: int,
    alpha: float,
    environment_sigma: float = 0.0,
) -> tuple[float, ...]:
    return tuple(
        scale.band(
            lookup(metric),
            noises.smallest_detectable(
                noise, n_base, starts, alpha=alpha, environment_sigma=environment_sigma
            ),
        )
        for starts in range(1, most + 1)
    )


def _below_the_floor(
    probe: Probe, metric: str, band: float, noise: Noise, n_base: int, most: int, alpha: float
) -> InputError | None:
    """The error of a band that the gate cannot resolve, with what would mend it; None: it can."""

    def resolves(runs: int, starts: int) -> bool:
        try:
            noises.check_band(metric, band, n_base=runs, max_runs=starts, alpha=alpha, noise=noise)
        except InputError:
            return False
        return True

    try:
        noises.check_band(metric, band, n_base=n_base, max_runs=most, alpha=alpha, noise=noise)
    except InputError as error:
        least = _smallest(metric, noise, n_base, most, alpha)[-1]
        ways = [f"widen the band to {math.ceil(least * 1000) / 1000:.1%} or more"]
        runs = [n for n in range(n_base + 1, MOST_RUNS + 1) if resolves(n, most)]
        if runs:
            ways.append(f"accept {runs[0]} baseline runs")
        starts = [n for n in range(most + 1, Rule().max_runs + 1) if resolves(n_base, n)]
        if len(starts):
            ways.append(f"allow {starts[0]} fresh starts (gate.max_starts)")
        problem = InputError(
            error.problem,
            found=error.found,
            expected=error.expected,
            hint=", or ".join(ways)
            if len(ways) > 1
            else f"{ways[0]}; more runs alone would not do",
        )
        return _placed(probe, metric, problem)
    return None


def _placed(probe: Probe, metric: str, error: InputError) -> InputError:
    """The error with the place in the scenario's file that it is about."""
    return InputError(
        f"{probe.label}: {error.problem}",
        file=probe.scenario.file,
        field=f"{probe.scenario.id}.gate.bands.{metric}",
        found=error.found,
        expected=error.expected,
        hint=error.hint,
    )


def _documented(probe: Probe, metric: str, value: DocumentedValue, most: int) -> Prospect:
    """A performance metric against its documented value, which comes without a spread."""
    known = lookup(metric)
    wanted = value.tolerance or max(_band(probe, metric) or 0.0, LEAST_TOLERANCE)
    margin = scale.margin(known, max(wanted, LEAST_TOLERANCE))
    prior = sigma_of(metric, probe.scenario) or known.family.sigma
    noise = Noise(prior, math.inf, f"prior {prior:.2%}, stipulated")
    alpha, beta = DOCUMENTED_RULE.alpha, DOCUMENTED_RULE.beta
    most = min(most, DOCUMENTED_RULE.max_runs)
    smallest = _smallest(metric, noise, 1, most, alpha, ENVIRONMENT_SIGMA)
    notes = [f"{ENVIRONMENT_SIGMA:.0%} between machines granted, so more starts hardly help"]
    if scale.band(known, margin) < smallest[-1]:
        notes.append(_MISSED_MORE)
    return Prospect(
        probe,
        metric,
        "documented",
        n_base=1,
        noise=noise,
        noise_from="prior",
        band=scale.band(known, margin),
        smallest=smallest,
        test=SpeedTest(margin, noise, 1, alpha, beta, most, ENVIRONMENT_SIGMA),
        notes=tuple(notes),
    )


def _answers(probe: Probe, metric: str, reference: Reference) -> Prospect:
    """An accuracy against a baseline's answers, question by question."""
    run = reference.entry.runs[0] if reference.entry else None
    answers: Mapping[str, bool] = run.answers.get(metric, {}) if run else {}
    band = _band(probe, metric)
    if run is None or metric not in run.metrics or band is None:
        return Prospect(probe, metric, "nothing", band=band)
    if not answers:
        note = "the baseline has no answers, so only the scores can be compared"
        return Prospect(probe, metric, "baseline", 1, band=band, notes=(note,))
    test = AnswersTest(len(answers), band)
    # The minimum detectable effect of b - c out of n, with b + c answers that changed.
    reach = float(ndtri(1 - test.alpha)) + float(ndtri(1 - noises.MISSED))
    smallest = reach * math.sqrt(CHANGED_ANSWERS / test.questions)
    return Prospect(
        probe,
        metric,
        "baseline",
        n_base=1,
        noise_from="answers",
        band=band,
        smallest=(smallest,),
        test=test,
        notes=(
            f"{test.questions} questions, if {CHANGED_ANSWERS:.0%} of the answers differ from run "
            "to run",
            *((_MISSED_MORE,) if smallest > band else ()),
        ),
    )


def _score(probe: Probe, metric: str, value: DocumentedValue, most: int) -> Prospect:  # noqa: ARG001
    """An accuracy against a documented score; one evaluation settles it."""
    band = value.tolerance or _band(probe, metric)
    score = documented_score(value.value, value.stderr)
    smallest: Sequence[float] = ()
    if value.stderr is not None:
        # As many questions are asked now as the documented standard error stands for.
        reach = float(ndtri(1 - AnswersTest.alpha)) + float(ndtri(1 - noises.MISSED))
        smallest = (reach * math.sqrt(2) * value.stderr,)
    notes = () if score.questions else ("a documented score without an error, taken as exact",)
    return Prospect(
        probe,
        metric,
        "documented",
        n_base=1,
        noise_from="document",
        band=band,
        smallest=tuple(smallest),
        notes=notes,
    )
