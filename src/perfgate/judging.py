"""Judging: a probe's measurements against its baseline entry, under its scenario's policy. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfgate.baselines import Entry
from perfgate.errors import InputError
from perfgate.gate.accuracy import judge_paired
from perfgate.gate.performance import Rule, judge_performance
from perfgate.gate.sanity import sanity
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
) -> Judged:
    """Judge every gating metric of `probe` and take the worst verdict.

    Args:
        probe: what was measured.
        entry: the baseline's part for this probe; None if there is no baseline.
        measurements: one per fresh start, in order.
        fingerprint: the facts of the measurements that must equal the baseline's.
        rule: error rates and the most fresh starts.
    """
    if entry is None:
        return Judged(Verdict.NO_BASELINE, reason="there is no baseline for this probe yet")
    different = entry.differences(fingerprint)
    if different:
        return Judged(Verdict.NOT_COMPARABLE, reason="; ".join(different))
    if not probe.gating_metrics():
        raise InputError(
            "nothing to judge",
            field="gate.metrics",
            found=f"no metric that {probe.id} gives",
            hint="name one of its metrics in the scenario's gate, or drop the probe",
        )
    judgements = tuple(
        judge_metric(metric, probe.scenario.gate, entry, measurements, rule)
        for metric in probe.gating_metrics()
    )
    # A proved regression needs no further starts, whatever the other metrics say.
    verdict = worst(judgement.verdict for judgement in judgements)
    more = verdict != Verdict.REGRESSION and any(
        judgement.needs_more_runs for judgement in judgements
    )
    return Judged(verdict, judgements, needs_more_runs=more)


def judge_metric(
    metric: str,
    policy: GatePolicy,
    entry: Entry,
    measurements: Sequence[Measurement],
    rule: Rule,
) -> Judgement:
    """Judge one metric with the band the scenario gives it, else the metric's own."""
    band = policy.bands.get(metric, lookup(metric).family.band)
    if is_accuracy(metric):
        return _judge_accuracy(metric, entry, measurements, band)
    baseline = entry.values(metric)
    if not baseline:
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
            reason=f"the baseline has no {metric}",
        )
    return judge_performance(
        metric,
        baseline,
        [measurement.metrics[metric] for measurement in measurements],
        band=band,
        rule=rule,
        measured_noise=policy.noise == "measured",
    )


def _judge_accuracy(
    metric: str, entry: Entry, measurements: Sequence[Measurement], band: float | None
) -> Judgement:
    judgement = judge_paired(
        metric,
        entry.runs[0].answers.get(metric, {}),
        [measurement.answers.get(metric, {}) for measurement in measurements],
        margin=band or ACCURACY.band or 0.0,
    )
    faults = _faults(metric, entry.runs[0].metrics, measurements[-1])
    return replace(judgement, notes=(*judgement.notes, *faults))


def _faults(metric: str, reference: Mapping[str, float], measured: Measurement) -> tuple[str, ...]:
    """What a loss looks like, where it is no small loss but broken output or a broken format."""
    task = metric.rpartition(":")[0]
    strict, flexible = f"{task}:strict-match", f"{task}:flexible-extract"
    if strict not in measured.metrics:
        return ()
    return sanity(
        measured.metrics[strict],
        measured.metrics.get(flexible),
        reference_strict=reference.get(strict),
    )
