"""Judging: a probe's measurements against its baseline entry, or else against what is documented.

Pure. Both are judged under the scenario's policy; they are never mixed: where there is a measured
baseline it decides, and what is documented becomes a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfgate.against_documents import (
    faults_of,
    judge_documented_value,
    measured_score,
    with_gap,
)
from perfgate.baselines import Entry
from perfgate.documented import DocumentedValue
from perfgate.errors import InputError
from perfgate.gate.accuracy import judge_paired
from perfgate.gate.performance import Rule, judge_performance
from perfgate.gate.scores import Score, judge_unpaired
from perfgate.gate.verdict import Judgement, Verdict, worst
from perfgate.measurement import Measurement
from perfgate.metrics import ACCURACY, is_accuracy, lookup
from perfgate.probe import Probe
from perfgate.scenarios.scenario import GatePolicy


@dataclass(frozen=True)
class Judged:
    """The verdict of one probe, and whether another fresh start may change it."""

    verdict: Verdict
    judgements: tuple[Judgement, ...] = ()
    reason: str = ""
    needs_more_runs: bool = False


def judge(
    probe: Probe,
    entry: Entry | None,
    measurements: Sequence[Measurement],
    fingerprint: Mapping[str, str],
    rule: Rule,
    *,
    documented: Mapping[str, DocumentedValue] | None = None,
) -> Judged:
    """Judge every gating metric of `probe` and take the worst verdict.

    Args:
        probe: what was measured.
        entry: the baseline's part for this probe; None if there is no baseline.
        measurements: one per fresh start, in order.
        fingerprint: the facts of the measurements that must equal the baseline's.
        rule: error rates and the most fresh starts.
        documented: what is documented for this probe: metric → value. It is judged where there is
            no baseline, metrics without a documented value staying unjudged; beside a baseline it
            is only told.

    Raises:
        InputError: a baseline and no gating metric, or values that cannot be judged.
    """
    documented = documented or {}
    metrics = probe.gating_metrics()
    if entry is None:
        if not documented.keys() & set(metrics):
            return Judged(Verdict.NO_BASELINE, reason="there is no baseline for this probe yet")
        return _against_documents(probe, documented, measurements, rule)
    different = entry.differences(fingerprint)
    if different:
        return Judged(Verdict.NOT_COMPARABLE, reason="; ".join(different))
    if not metrics:
        raise InputError(
            "nothing to judge",
            field="gate.metrics",
            found=f"no metric that {probe.id} gives",
            hint="name one of its metrics in the scenario's gate, or drop the probe",
        )
    judgements = tuple(
        with_gap(
            judge_metric(metric, probe.scenario.gate, entry, measurements, rule),
            documented.get(metric),
        )
        for metric in metrics
    )
    return _together(judgements)


def _together(judgements: tuple[Judgement, ...], unjudged: tuple[Judgement, ...] = ()) -> Judged:
    """The worst of `judgements`; what is unjudged is listed after them."""
    verdict = worst(judgement.verdict for judgement in judgements)
    # A proved regression needs no further starts, whatever the other metrics say.
    more = verdict != Verdict.REGRESSION and any(
        judgement.needs_more_runs for judgement in judgements
    )
    return Judged(verdict, (*judgements, *unjudged), needs_more_runs=more)


def judge_metric(
    metric: str,
    policy: GatePolicy,
    entry: Entry,
    measurements: Sequence[Measurement],
    rule: Rule,
) -> Judgement:
    """Judge one metric with the band the scenario gives it, else the metric's own."""
    band = _band(metric, policy)
    if is_accuracy(metric):
        return _judge_accuracy(metric, entry, measurements, band)
    baseline = entry.values(metric)
    if not baseline:
        return _unjudged(metric, measurements, band, f"the baseline has no {metric}")
    return judge_performance(
        metric,
        baseline,
        [measurement.metrics[metric] for measurement in measurements],
        band=band,
        rule=rule,
        measured_noise=policy.noise == "measured",
    )


def _against_documents(
    probe: Probe,
    documented: Mapping[str, DocumentedValue],
    measurements: Sequence[Measurement],
    rule: Rule,
) -> Judged:
    policy = probe.scenario.gate
    judged, unjudged = [], []
    for metric in probe.gating_metrics():
        value = documented.get(metric)
        if value is None:
            why = "not judged: nothing is documented for it, and there is no baseline yet"
            band = _band(metric, policy)
            unjudged.append(_unjudged(metric, measurements, band, why))
        else:
            judged.append(
                judge_documented_value(metric, value, measurements, _band(metric, policy), rule)
            )
    return _together(tuple(judged), tuple(unjudged))


def _unjudged(
    metric: str, measurements: Sequence[Measurement], band: float | None, why: str
) -> Judgement:
    return Judgement(
        metric=metric,
        verdict=Verdict.NO_BASELINE,
        baseline=None,
        measured=measurements[-1].metrics.get(metric),
        change=None,
        interval=None,
        band=band,
        runs_used=0,
        needs_more_runs=False,
        reason=why,
    )


def _band(metric: str, policy: GatePolicy) -> float | None:
    return policy.bands.get(metric, lookup(metric).family.band)


def _judge_accuracy(
    metric: str, entry: Entry, measurements: Sequence[Measurement], band: float | None
) -> Judgement:
    margin = band or ACCURACY.band or 0.0
    reference = entry.runs[0]
    before = reference.answers.get(metric, {})
    now = [measurement.answers.get(metric, {}) for measurement in measurements]
    if before and all(now):
        judgement = judge_paired(metric, before, now, margin=margin)
    elif metric not in reference.metrics:
        return _unjudged(metric, measurements, band, f"the baseline has no {metric}")
    else:  # equal fingerprints asked equally many questions
        score = measured_score(metric, measurements[0])
        known = Score(reference.metrics[metric], score.questions)
        judgement = judge_unpaired(metric, known, score, margin=margin)
    faults = faults_of(metric, reference.metrics, measurements[-1])
    return replace(judgement, notes=(*judgement.notes, *faults))
