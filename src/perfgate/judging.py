"""Judging: a probe's measurements against its baseline entry, under its scenario's policy. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfgate.baselines import Entry
from perfgate.gate.accuracy import judge_paired
from perfgate.gate.performance import Rule, judge_performance
from perfgate.gate.verdict import Judgement, Verdict, worst
from perfgate.measurement import Measurement
from perfgate.metrics import is_accuracy, lookup
from perfgate.probe import Probe
from perfgate.scenario import GatePolicy


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
    answers = entry.runs[0].answers.get(metric)
    if answers is None:
        raise KeyError(metric)
    return judge_paired(
        metric,
        answers,
        [measurement.answers[metric] for measurement in measurements],
        margin=band if band is not None else 0.02,
    )
