"""Proposal: what accepting a candidate would mean, held against the baseline before and the anchor.

Pure; docs/how-to/baselines.md.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Literal

from perfgate.baselines.baseline import Baseline, Change, ChosenBaseline, Entry
from perfgate.baselines.difference import MetricChange, compare
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.accuracy import judge_paired
from perfgate.judging.rules.performance import Comparison, judge
from perfgate.judging.rules.scale import anchor_band

Bands = Mapping[str, Mapping[str, float]]
"""Probe label → gating metric → the loss that counts, as a fraction."""


@dataclass(frozen=True)
class MetricEvidence:
    """One gating metric held against one other baseline.

    Attributes:
        change: both values, and how far apart they are, over all starts.
        band: the loss that counts, as a fraction.
        verdict: the gate's, on the candidate's starts in their order; NO_BASELINE: the other has no
            such metric; NOT_COMPARABLE: facts differ that must be equal.
        facts: which.
    """

    change: MetricChange
    band: float
    verdict: Verdict
    facts: tuple[str, ...] = ()

    @property
    def is_loss(self) -> bool:
        """Whether it is a REGRESSION, or lost more than the band by its central value."""
        if self.verdict in (Verdict.NOT_COMPARABLE, Verdict.NO_BASELINE):
            return False
        moved = self.change.change
        if moved is None:
            return self.verdict == Verdict.REGRESSION
        lost = -moved if lookup(self.change.metric).direction == "higher" else moved
        return self.verdict == Verdict.REGRESSION or lost > self.band


@dataclass(frozen=True)
class Held:
    """A candidate held against another baseline.

    Attributes:
        against: which.
        other: that one.
        metrics: every gating metric of the candidate.
    """

    against: Literal["baseline", "anchor"]
    other: ChosenBaseline
    metrics: tuple[MetricEvidence, ...]


@dataclass(frozen=True)
class Noise:
    """How far the fresh starts of a candidate differ.

    Attributes:
        probe: the probe's label.
        metric: canonical name.
        starts: fresh starts.
        sessions: the runs that they were made in.
        spread: standard deviation of one start: performance as a fraction, of an accuracy absolute;
            None: one start, or values of zero.
    """

    probe: str
    metric: str
    starts: int
    sessions: int
    spread: float | None


@dataclass(frozen=True)
class Proposal:
    """A new baseline, and what speaks for it and against it.

    Attributes:
        baseline: as it would be accepted.
        change: what accepting it changes.
        held: against the baseline before, and the anchor; empty: there is nothing to compare with.
        noise: of each gating metric.
        losses: what is lost, in words; empty: nothing.
        runs: ids of the runs that were named.
        contents: probe label → hash of its content.
        notes: what else a reviewer should know.
    """

    baseline: Baseline
    change: Change
    held: tuple[Held, ...]
    noise: tuple[Noise, ...]
    losses: tuple[str, ...]
    runs: tuple[str, ...]
    contents: Mapping[str, str]
    notes: tuple[str, ...] = ()


def held_against(
    candidate: Baseline, other: ChosenBaseline, against: Literal["baseline", "anchor"], bands: Bands
) -> Held:
    """A candidate's gating metrics beside those of another baseline."""
    found: list[MetricEvidence] = []
    for label, entry in candidate.entries.items():
        old = other.entry(label)
        told = compare(label, old, entry)
        for change in told.metrics:
            band = bands.get(label, {}).get(change.metric)
            if band is None or change.after is None:
                continue
            if against == "anchor":
                band = anchor_band(change.metric, band)
            verdict = _verdict(change.metric, old, entry, band)
            found.append(MetricEvidence(change, band, verdict, told.facts))
    return Held(against, other, tuple(found))


def noise_of(candidate: Baseline, bands: Bands) -> tuple[Noise, ...]:
    """The spread of each gating metric over the candidate's fresh starts."""
    return tuple(
        Noise(
            label,
            metric,
            len(entry.values(metric)),
            entry.sessions(metric),
            _spread(metric, entry.values(metric)),
        )
        for label, entry in candidate.entries.items()
        for metric in entry.metrics()
        if metric in bands.get(label, {})
    )


def losses_in(held: Sequence[Held]) -> Iterator[str]:
    """What is lost, one line a metric, of comparisons with what came before."""
    for one in held:
        if one.other.is_newer:
            continue  # it did not come before
        name = "the baseline before" if one.against == "baseline" else "the anchor"
        for metric in one.metrics:
            if metric.is_loss:
                moved = metric.change.change
                unit = "points" if is_accuracy(metric.change.metric) else "%"
                said = "" if moved is None else f" {100 * moved:+.1f} {unit}"
                yield (
                    f"{metric.change.probe} {metric.change.metric}{said} against {name}, "
                    f"band {100 * metric.band:.1f} {unit}, {metric.verdict.value}"
                )


def is_unchanged(kept: Baseline | None, candidate: Baseline) -> bool:
    """Whether a baseline holds all that a candidate would add to it."""
    if kept is None or kept.retired is not None or kept.engine != candidate.engine:
        return False
    return all(kept.entries.get(label) == entry for label, entry in candidate.entries.items())


def _verdict(metric: str, old: Entry | None, new: Entry, band: float) -> Verdict:
    before = old.values(metric) if old else []
    if old is None or not before:
        return Verdict.NO_BASELINE
    if old.differences(new.fingerprint):
        return Verdict.NOT_COMPARABLE
    if is_accuracy(metric):
        was, now = old.answers(metric), new.answers(metric)
        if not was or len(now) != len(new.values(metric)):
            return Verdict.NOT_COMPARABLE
        return judge_paired(metric, was, now, margin=band).verdict
    test = Comparison(metric, band, before, new.values(metric), sessions=old.sessions(metric))
    return judge(test).verdict


def _spread(metric: str, values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    if is_accuracy(metric):
        return stdev(values)
    return stdev(map(math.log, values)) if min(values) > 0 else None
