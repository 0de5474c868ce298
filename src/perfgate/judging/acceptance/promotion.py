"""Promotion: a person accepts a candidate, which keeps the level of what came before or not.

Candidates come from runs: `perfgate.baselines.recording`. Of a candidate that is proposed for
review, every gating metric is compared with the baseline before and the anchor
(docs/how-to/baselines.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from perfgate.baselines.baseline import Baseline, Change, ChosenBaseline, few_sessions
from perfgate.baselines.candidates import unlike_machines
from perfgate.baselines.choice import newest_release
from perfgate.baselines.decisions import named
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import head_of, read
from perfgate.baselines.store import Store, rehearsal_store, suite_store
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Verdict, counted
from perfgate.judging.acceptance import difference
from perfgate.judging.assembly.bands import band_of
from perfgate.judging.rules.scale import anchor_band
from perfgate.runs.run_folder import now
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario

_COMPARED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)
_NOT_JUDGED = (Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE)


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

    change: difference.MetricChange
    band: float
    verdict: Verdict
    facts: tuple[str, ...] = ()

    @property
    def is_loss(self) -> bool:
        """Whether it is a REGRESSION, or lost more than the band by its central value."""
        if self.verdict in _NOT_JUDGED:
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
class Promotion:
    """What accepting a candidate does.

    Attributes:
        file: the baseline's file.
        written: whether it was written; a dry run only tells.
        change: what it changes: nothing was comparable before, a loss is accepted, …
        before: the baseline that it was compared with; None: there is none.
        probes: what changes, probe by probe.
        notes: what else the person should know.
    """

    file: Path
    written: bool
    change: Change
    before: ChosenBaseline | None
    probes: tuple[difference.ProbeChanges, ...]
    notes: tuple[str, ...] = ()


def promote(
    candidate: Path,
    *,
    by: str,
    reason: str,
    accept_regression: str | None = None,
    dry_run: bool = False,
    repo: EngineRepo | None = None,
    rehearsal: bool = False,
    store: Store | None = None,
) -> Promotion:
    """Accept a candidate: write it into the suite's store under a person's name.

    Args:
        candidate: the candidate's file.
        by: the person.
        reason: why these numbers are right.
        accept_regression: why a loss that the run proved is accepted; it starts a new level.
        dry_run: tell what would change, and write nothing.
        repo: a clone of the engine, which tells the nearest ancestor.
        rehearsal: into the store of rehearsals, which takes what stand-ins made and nothing else.
        store: the store to accept it into; None: the suite's, or that of rehearsals.

    Raises:
        InputError: the candidate is unusable, edited, of the other kind, retired, from unlike
            machines, or a loss that is not accepted; or name or reason are empty.
    """
    by, reason = named("--by", by), named("--reason", reason)
    if store is None:
        store = rehearsal_store() if rehearsal else suite_store()
    with nullcontext() if dry_run else store.changing():
        found = _acceptable(candidate, store)
        before = store.choose(found.hardware, found.scenario, found.engine, repo)
        judged = _judged_now(found, before)
        losses = _losses_of(found, judged)
        why_accepted = _why_accepted(found, candidate, losses, accept_regression)
        change = _change_of(found, before, judged, losses)
        accepted = replace(
            found,
            accepted_by=by,
            accepted_at=now(),
            reason=reason,
            change=change,
            regression=why_accepted,
        )
        path = store.path(found.hardware, found.scenario, found.engine.commit)
        kept = read(path) if path.is_file() else None
        if kept is not None and kept.retired is None:
            accepted = kept.merged(accepted)
        if differing := unlike_machines(accepted.entries):
            raise InputError(
                "the baseline would mix numbers of different machines",
                file=candidate,
                found="; ".join(differing),
                expected="probes of one scenario, measured on machines with equal facts",
                hint="record all probes on one of them",
            )
        probes = tuple(
            difference.compare(label, before.entry(label) if before else None, entry)
            for label, entry in found.entries.items()
        )
        notes = _notes(accepted, store, kept, found.sessions)
        if not dry_run:
            store.save(accepted, merge=False)
        return Promotion(path, not dry_run, change, before, probes, notes)


def _acceptable(candidate: Path, store: Store) -> Baseline:
    """The candidate, of the store's kind and not retired.

    Raises:
        InputError: it is not.
    """
    found = read(candidate)
    if found.synthetic != store.synthetic:
        raise InputError(
            "stand-ins made these numbers: they can never be a baseline of measured ones"
            if found.synthetic
            else "these numbers were measured, and belong into no store of rehearsals",
            file=candidate,
            field="synthetic",
            found=str(found.synthetic).lower(),
            hint="--rehearsal puts it into the store that rehearsals alone are compared with"
            if found.synthetic
            else "leave out --rehearsal",
        )
    if found.retired is not None:
        raise InputError(
            "a retired baseline cannot be accepted again",
            file=candidate,
            field="retired",
            found=f"{found.retired.by}: {found.retired.reason}",
            hint="measure the build again and record that run",
        )
    return found


def _why_accepted(
    found: Baseline, candidate: Path, losses: Sequence[str], accept_regression: str | None
) -> str:
    """Why the candidate's losses are accepted; empty: it has none.

    Raises:
        InputError: there are losses and no reason, or a reason and no losses.
    """
    if accept_regression is None:
        if losses:
            raise InputError(
                "the candidate is a regression",
                file=candidate,
                found="; ".join(losses),
                expected="a loss is accepted by a person, with its own reason",
                hint="fix the build, or use --accept-regression 'why this loss is right'",
            )
        return ""
    why = named("--accept-regression", accept_regression)
    if not losses:
        raise InputError(
            "there is no regression to accept",
            field="--accept-regression",
            file=candidate,
            found=", ".join(f"{label} {said}" for label, said in found.verdicts.items()),
            hint="leave the option out",
        )
    return why


def _notes(
    accepted: Baseline, store: Store, kept: Baseline | None, sessions: int
) -> tuple[str, ...]:
    notes = []
    if few := few_sessions(sessions):
        notes.append(f"{few}: more losses stay unseen (docs/how-to/baselines.md)")
    if kept is not None:
        was = "retired " if kept.retired else ""
        notes.append(
            f"replaces the {was}baseline of this commit, accepted by {kept.accepted_by}, "
            f"{counted(kept.sessions, 'session')}"
        )
    family = store.heads(accepted.hardware, accepted.scenario)
    others = [one for one in family if one.engine.commit != accepted.engine.commit]
    anchor = store.anchor(accepted.hardware, accepted.scenario, accepted.engine)
    becomes_it = store.pinned(accepted.hardware, accepted.scenario) is None and newest_release(
        [*others, head_of(accepted)], accepted.engine
    ) == head_of(accepted)
    if accepted.change == "regression" and anchor is not None and not becomes_it:
        notes.append(
            f"the anchor is still {anchor.baseline.engine.version} ({anchor.why}): this loss "
            "counts against it until `perfgate baseline anchor` pins another"
        )
    return tuple(notes)


def _losses_of(found: Baseline, judged: Sequence[MetricEvidence]) -> list[str]:
    """Where the candidate lost, as its run judged it or, where that could not judge, as it is now.

    A run that had nothing to compare with proves nothing; if a baseline has come since, a loss
    against it must not slip in.
    """
    return [
        *(
            f"{label}: its run ended in REGRESSION"
            for label, verdict in found.verdicts.items()
            if verdict == Verdict.REGRESSION
        ),
        *(
            f"{one.change.probe} {one.change.metric}: its run did not compare it, and now it is "
            f"{one.verdict.value}"
            for one in judged
            if one.verdict not in (Verdict.PASS, Verdict.IMPROVEMENT)
        ),
    ]


def _change_of(
    found: Baseline,
    before: ChosenBaseline | None,
    judged: Sequence[MetricEvidence],
    losses: Sequence[str],
) -> Change:
    """What accepting the candidate changes, given where it lost."""
    if losses:
        return "regression"
    if before is None or before.is_newer:
        return "first"
    old = ((before.entry(label), entry.fingerprint) for label, entry in found.entries.items())
    if not any(entry is not None and not entry.differences(facts) for entry, facts in old):
        return "first"
    now = [one.verdict for one in judged]
    return "improvement" if Verdict.IMPROVEMENT in (*found.verdicts.values(), *now) else "none"


def _judged_now(found: Baseline, before: ChosenBaseline | None) -> list[MetricEvidence]:
    """What the candidate's run did not compare, and is comparable now.

    Of each probe every metric counts that has a band by itself; a newer build did not come before.
    """
    if before is None or before.is_newer:
        return []
    bands = {
        (label, metric): band
        for label, entry in found.entries.items()
        if found.verdicts.get(label) not in _COMPARED
        for metric in entry.metrics()
        if (band := lookup(metric).family.band) is not None
    }
    judged = _compared(found, before, bands)
    return [one for one in judged if one.verdict not in _NOT_JUDGED]


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
    proved = _losses_of(found, _judged_now(found, before))
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
    candidate: Baseline, other: ChosenBaseline, bands: Mapping[tuple[str, str], float]
) -> tuple[MetricEvidence, ...]:
    """The metrics of a candidate that have a band beside those of another baseline."""
    found = []
    for label, entry in candidate.entries.items():
        old = other.entry(label)
        changes = difference.compare(label, old, entry)
        for change in changes.metrics:
            band = bands.get((label, change.metric))
            if band is not None:
                verdict = difference.verdict_between(change.metric, old, entry, band)
                found.append(MetricEvidence(change, band, verdict, changes.facts))
    return tuple(found)


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
