"""Difference: how far two baselines are from each other, and each of a scenario from the last."""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean

from perfgate.baselines.baseline import Baseline, Entry
from perfgate.baselines.choice import in_order
from perfgate.baselines.store import Store
from perfgate.core.errors import InputError
from perfgate.core.measurement import Change
from perfgate.core.metrics import ACCURACY, is_accuracy, lookup
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.rules.accuracy import judge_paired
from perfgate.judging.rules.performance import PerformanceTest


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
    was, now = (one.values(metric) if one else [] for one in (before, after))
    old, new = (fmean(values) if values else None for values in (was, now))
    if old is None or new is None or before is None or after is None:
        return MetricChange(label, metric, old, new)
    lost = gained = None
    if is_accuracy(metric):
        # Repeated evaluations ask the same questions again: one of each side counts them.
        first, second = before.answers(metric)[:1], after.answers(metric)[:1]
        if not (first and second and first[0].keys() == second[0].keys()):
            return MetricChange(label, metric, old, new, new - old)
        told: Judgement | Change = judge_paired(metric, first, second, margin=ACCURACY.band or 0.02)
        pairs = [(first[0][key], second[0][key]) for key in first[0]]
        lost, gained = pairs.count((True, False)), pairs.count((False, True))
    else:
        try:
            told = PerformanceTest(metric, None, was, now).change()
        except InputError:  # a value that has no logarithm
            return MetricChange(label, metric, old, new, new / old - 1 if old else None)
    numbers = (told.baseline, told.measured, told.change, told.interval)
    return MetricChange(label, metric, *numbers, lost, gained)


def verdict_between(metric: str, before: Entry | None, after: Entry, band: float) -> Verdict:
    """The gate's verdict on one metric.

    Args:
        metric: canonical name.
        before: what it is compared with.
        after: the starts that are judged, in their order.
        band: the loss that counts, as a fraction.

    Returns:
        NO_BASELINE: there is no such metric before; NOT_COMPARABLE: facts differ that must be
        equal, an accuracy's answers are not known, or a speed has no logarithm.

    Raises:
        InputError: values that cannot be judged.
    """
    old, new = before.values(metric) if before else [], after.values(metric)
    if before is None or not old:
        return Verdict.NO_BASELINE
    was, now = before.answers(metric), after.answers(metric)
    judgeable = was and len(now) == len(new) if is_accuracy(metric) else min(*old, *new) > 0
    if before.differences(after.fingerprint) or not judgeable:
        return Verdict.NOT_COMPARABLE
    if is_accuracy(metric):
        return judge_paired(metric, was, now, margin=band).verdict
    sessions = before.sessions(metric)
    return PerformanceTest(metric, band, old, new, sessions=sessions).judge().verdict


@dataclass(frozen=True)
class MetricHistory:
    """One metric of one probe in one baseline.

    Attributes:
        probe: the probe's label.
        metric: canonical name.
        mean: over its fresh starts.
        since_before: change against the baseline before it, as in `MetricChange`; None: none of
            equal facts.
        since_anchor: the same against the anchor.
    """

    probe: str
    metric: str
    mean: float
    since_before: float | None
    since_anchor: float | None


@dataclass(frozen=True)
class HistoryEntry:
    """One baseline of the history.

    Attributes:
        baseline: the baseline.
        is_anchor: whether it is what small losses add up against now.
        values: its metrics, probe by probe.
    """

    baseline: Baseline
    is_anchor: bool
    values: tuple[MetricHistory, ...]

    @property
    def starts(self) -> int:
        """Fresh starts of the probe that has most."""
        return max(len(entry.runs) for entry in self.baseline.entries.values())


def history(
    store: Store, hardware: str, scenario: str, metrics: Collection[str] | None = None
) -> tuple[HistoryEntry, ...]:
    """The baselines of `scenario`, oldest first; empty if there is none.

    Args:
        store: where they are.
        hardware: the hardware's label.
        scenario: the scenario's id.
        metrics: those to tell; None: every metric that has a band of its own.

    Raises:
        InputError: a baseline is unusable.
    """
    found = in_order(store.of_scenario(hardware, scenario))
    if not found:
        return ()
    chosen = store.anchor(hardware, scenario, found[-1].engine)
    anchor = chosen.baseline if chosen else None
    newest: dict[str, Entry] = {}  # each probe's part in the newest baseline that is not retired
    steps = []
    for one in found:
        values = []
        for label, entry in sorted(one.entries.items()):
            before = _changes(label, newest.get(label), entry)
            since = _changes(label, anchor.entries.get(label) if anchor else None, entry)
            for metric in entry.metrics():
                has_band = lookup(metric).family.band is not None
                shown = has_band if metrics is None else metric in metrics
                if shown:
                    mean = fmean(entry.values(metric))
                    changes = (before.get(metric), since.get(metric))
                    values.append(MetricHistory(label, metric, mean, *changes))
        is_anchor = anchor is not None and one.engine == anchor.engine
        steps.append(HistoryEntry(one, is_anchor, tuple(values)))
        if one.retired is None:
            newest |= one.entries
    return tuple(steps)


def _changes(label: str, before: Entry | None, after: Entry) -> dict[str, float | None]:
    if before is None or before.differences(after.fingerprint):
        return {}
    return {one.metric: one.change for one in compare(label, before, after).metrics}
