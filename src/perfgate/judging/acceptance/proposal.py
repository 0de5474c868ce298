"""Proposal: a candidate accepted into a store, with its evidence against baseline and anchor.

docs/how-to/baselines.md
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from perfgate.baselines.baseline import Baseline, ChosenBaseline, Entry
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import read
from perfgate.baselines.store import Store
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.acceptance.difference import MetricChange, compare, verdict_between
from perfgate.judging.acceptance.promotion import Promotion, losses_of, promote
from perfgate.judging.assembly.bands import band_of
from perfgate.judging.rules.scale import anchor_band
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class MetricEvidence:
    """One gating metric compared with one earlier baseline.

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
        change = self.change.change or 0.0
        lost = -change if lookup(self.change.metric).direction == "higher" else change
        return self.verdict == Verdict.REGRESSION or lost > self.band


@dataclass(frozen=True)
class Evidence:
    """A candidate compared with an earlier baseline.

    Attributes:
        against: which.
        other: that one.
        metrics: every gating metric of the candidate.
    """

    against: Literal["the baseline before", "the anchor"]
    other: ChosenBaseline
    metrics: tuple[MetricEvidence, ...]


@dataclass(frozen=True)
class Proposal:
    """A new baseline, and its evidence.

    Attributes:
        candidate: all that was measured, with who accepts it and why.
        promotion: the file, and what accepting it changes.
        evidence: against the baseline before, and the anchor; empty: there is neither.
        gating: probe label and gating metric of each that the candidate has.
        losses: what is lost, in words; empty: nothing.
    """

    candidate: Baseline
    promotion: Promotion
    evidence: tuple[Evidence, ...]
    gating: tuple[tuple[str, str], ...]
    losses: tuple[str, ...]


def propose(
    file: Path,
    store: Store,
    scenario: Scenario,
    *,
    by: str,
    reason: str = "",
    repo: EngineRepo | None = None,
) -> Proposal | None:
    """Accept a candidate into a store; None: the store has all of it already.

    Args:
        file: the candidate's file.
        store: a store that is not in use yet, as one for a branch.
        scenario: the candidate's, whose bands count.
        by: who accepts it.
        reason: why; empty: as the candidate says, and then no loss is accepted.
        repo: a clone of the engine, which tells the nearest ancestor.

    Raises:
        InputError: there is a loss and no reason, or as `promote`.
    """
    found = read(file)
    path = store.path(found.hardware, found.scenario, found.engine.commit)
    if path.is_file() and _has_all(read(path), found):
        return None
    gating = {probe.label: probe.gating_metrics() for probe in all_probes(scenario)}
    bands = {
        (label, metric): band
        for label, entry in found.entries.items()
        for metric in entry.metrics()
        if metric in gating.get(label, ()) and (band := band_of(metric, scenario)) is not None
    }
    before = store.choose(found.hardware, found.scenario, found.engine, repo)
    anchor = store.anchor(found.hardware, found.scenario, found.engine)
    evidence = []
    if before is not None:
        metrics = _compared(found, before, bands)
        evidence.append(Evidence("the baseline before", before, metrics))
    if anchor is not None and (before is None or anchor.baseline.engine != before.baseline.engine):
        wider = {key: anchor_band(key[1], band) for key, band in bands.items()}
        evidence.append(Evidence("the anchor", anchor, _compared(found, anchor, wider)))
    proved = losses_of(found, before)
    losses = (*proved, *_losses_in(evidence))
    if losses and not reason:
        raise InputError(
            "the candidate has lost, and no reason is given why that is right",
            field="--reason",
            found=f"{found.scenario}: {'; '.join(losses)}",
            expected="a loss is accepted by a person, with a reason",
            hint="fix the build, or use --reason 'why this loss is right'",
        )
    promotion = promote(
        file,
        by=by,
        reason=reason or found.reason,
        accept_regression=reason if proved else None,
        repo=repo,
        store=store,
    )
    candidate = replace(read(promotion.file), entries=found.entries)
    return Proposal(candidate, promotion, tuple(evidence), tuple(bands), losses)


def _has_all(kept: Baseline, candidate: Baseline) -> bool:
    if kept.retired is not None or kept.engine != candidate.engine:
        return False
    return all(kept.entries.get(label) == entry for label, entry in candidate.entries.items())


def _compared(
    candidate: Baseline, other: ChosenBaseline, bands: dict[tuple[str, str], float]
) -> tuple[MetricEvidence, ...]:
    """The gating metrics of a candidate beside those of another baseline."""
    found = []
    for label, entry in candidate.entries.items():
        old = other.entry(label)
        changes = compare(label, old, entry)
        for change in changes.metrics:
            band = bands.get((label, change.metric))
            if band is not None:
                verdict = _verdict(change.metric, old, entry, band)
                found.append(MetricEvidence(change, band, verdict, changes.facts))
    return tuple(found)


def _verdict(metric: str, old: Entry | None, new: Entry, band: float) -> Verdict:
    if old is None or not old.values(metric):
        return Verdict.NO_BASELINE
    if old.differences(new.fingerprint):
        return Verdict.NOT_COMPARABLE
    return verdict_between(metric, old, new, band) or Verdict.NOT_COMPARABLE


def _losses_in(evidence: Sequence[Evidence]) -> Iterator[str]:
    """What is lost, one line a metric, against what came before."""
    for comparison in evidence:
        if comparison.other.is_newer:
            continue  # it did not come before
        for metric in comparison.metrics:
            if metric.is_loss:
                change = metric.change.change
                unit = "points" if is_accuracy(metric.change.metric) else "%"
                moved = "" if change is None else f" {100 * change:+.1f} {unit}"
                yield (
                    f"{metric.change.probe} {metric.change.metric}{moved} against "
                    f"{comparison.against}, band {100 * metric.band:.1f} {unit}, "
                    f"{metric.verdict.value}"
                )
