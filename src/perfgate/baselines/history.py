"""History: the baselines of one scenario, oldest first, and how far each moved."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean

from perfgate.baselines.baseline import Baseline, Entry
from perfgate.baselines.choice import in_order
from perfgate.baselines.difference import compare
from perfgate.baselines.store import Store
from perfgate.core.metrics import lookup


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
    steps = []
    for number, one in enumerate(found):
        before = [other for other in found[:number] if other.retired is None]
        values = tuple(
            value
            for label, entry in sorted(one.entries.items())
            for value in _values(label, entry, _entry(before, label), anchor, metrics)
        )
        steps.append(HistoryEntry(one, anchor is not None and one.engine == anchor.engine, values))
    return tuple(steps)


def _entry(baselines: Sequence[Baseline], label: str) -> Entry | None:
    """The probe's part in the newest of `baselines` that has it."""
    return next((one.entries[label] for one in reversed(baselines) if label in one.entries), None)


def _values(
    label: str,
    entry: Entry,
    before: Entry | None,
    anchor: Baseline | None,
    metrics: Collection[str] | None,
) -> list[MetricHistory]:
    since_before = _changes(label, before, entry)
    since_anchor = _changes(label, anchor.entries.get(label) if anchor else None, entry)
    return [
        MetricHistory(
            label,
            metric,
            fmean(entry.values(metric)),
            since_before.get(metric),
            since_anchor.get(metric),
        )
        for metric in entry.metrics()
        if (lookup(metric).family.band is not None if metrics is None else metric in metrics)
    ]


def _changes(label: str, before: Entry | None, after: Entry) -> dict[str, float | None]:
    if before is None or before.differences(after.fingerprint):
        return {}
    return {one.metric: one.change for one in compare(label, before, after).metrics}
