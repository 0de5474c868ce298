"""Difference: what differs between two baselines, probe by probe and metric by metric."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from perfgate.baselines.baseline import Entry
from perfgate.core.errors import InputError
from perfgate.core.metrics import ACCURACY, is_accuracy
from perfgate.judging.rules.accuracy import judge_paired
from perfgate.judging.rules.performance import Comparison, describe


@dataclass(frozen=True)
class MetricChange:
    """How far one metric of one probe moved.

    Attributes:
        probe: the probe's label.
        metric: canonical name.
        before: central value before; None: it was not measured.
        after: central value after; None: it was not measured.
        change: relative for performance (-0.05: the value fell by 5 %), after minus before for
            accuracy; None where there is nothing to relate.
        interval: confidence bounds of `change`, low first; None where they cannot be told.
        lost: questions answered rightly before and wrongly after; None: answers are not known.
        gained: the reverse.
    """

    probe: str
    metric: str
    before: float | None
    after: float | None
    change: float | None = None
    interval: tuple[float, float] | None = None
    lost: int | None = None
    gained: int | None = None


@dataclass(frozen=True)
class ProbeChanges:
    """One probe's changes, and the facts in which the two measurements differ."""

    probe: str
    metrics: tuple[MetricChange, ...]
    facts: tuple[str, ...] = ()


def compare(label: str, before: Entry | None, after: Entry | None) -> ProbeChanges:
    """The changes of one probe; None stands for not measured."""
    names = {name for entry in (before, after) if entry for name in entry.metrics()}
    return ProbeChanges(
        label,
        tuple(_change(label, name, before, after) for name in sorted(names)),
        before.differences(after.fingerprint) if before and after else (),
    )


def _change(label: str, metric: str, before: Entry | None, after: Entry | None) -> MetricChange:
    old = before.values(metric) if before else []
    new = after.values(metric) if after else []
    if not old or not new or before is None or after is None:
        return MetricChange(label, metric, _mean(old), _mean(new))
    if is_accuracy(metric):
        return _accuracy(label, metric, before, after)
    try:
        told = describe(Comparison(metric, None, old, new))
    except InputError:  # a value that has no logarithm
        change = fmean(new) / fmean(old) - 1 if fmean(old) else None
        return MetricChange(label, metric, fmean(old), fmean(new), change)
    return MetricChange(label, metric, told.baseline, told.measured, told.change, told.interval)


def _accuracy(label: str, metric: str, before: Entry, after: Entry) -> MetricChange:
    old, new = fmean(before.values(metric)), fmean(after.values(metric))
    # Repeated evaluations ask the same questions again: one of each side counts them.
    was = next((run.answers[metric] for run in before.runs if run.answers.get(metric)), None)
    now = next((run.answers[metric] for run in after.runs if run.answers.get(metric)), None)
    if was is None or now is None or was.keys() != now.keys():
        return MetricChange(label, metric, old, new, new - old)
    judged = judge_paired(metric, [was], [now], margin=ACCURACY.band or 0.02)
    return MetricChange(
        label,
        metric,
        judged.baseline,
        judged.measured,
        judged.change,
        judged.interval,
        lost=sum(was[key] and not now[key] for key in was),
        gained=sum(now[key] and not was[key] for key in was),
    )


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
