"""Acceptance: what moved between baselines, and a person who accepts a candidate on that.

Candidates come from runs: `perfgate.baselines.recording`. Accepting one keeps the level of what
came before or not. Of a candidate that is proposed for review, every gating metric is compared with
the baseline before and the anchor (docs/how-to/baselines.md).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Literal

from perfgate.baselines.baseline import Baseline, Change, ChosenBaseline, Entry, few_sessions
from perfgate.baselines.candidates import unlike_machines
from perfgate.baselines.choice import in_order, newest_release
from perfgate.baselines.decisions import named
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import head_of, read
from perfgate.baselines.store import Store, rehearsal_store, suite_store
from perfgate.core import measurement
from perfgate.core.errors import InputError
from perfgate.core.metrics import ACCURACY, is_accuracy, lookup
from perfgate.core.verdict import Judgement, Verdict, counted
from perfgate.judging.assembly.bands import band_of
from perfgate.judging.rules.accuracy import judge_paired
from perfgate.judging.rules.performance import PerformanceTest
from perfgate.judging.rules.scale import anchor_band
from perfgate.runs.run_folder import now
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario

_COMPARED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)
_NOT_JUDGED = (Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE)


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
    was, is_now = (one.values(metric) if one else [] for one in (before, after))
    old, new = (fmean(values) if values else None for values in (was, is_now))
    if old is None or new is None or before is None or after is None:
        return MetricChange(label, metric, old, new)
    lost = gained = None
    if is_accuracy(metric):
        # Repeated evaluations ask the same questions again: one of each side counts them.
        first, second = before.answers(metric)[:1], after.answers(metric)[:1]
        if not (first and second and first[0].keys() == second[0].keys()):
            return MetricChange(label, metric, old, new, new - old)
        change: Judgement | measurement.Change = judge_paired(
            metric, first, second, margin=ACCURACY.band or 0.02
        )
        pairs = [(first[0][key], second[0][key]) for key in first[0]]
        lost, gained = pairs.count((True, False)), pairs.count((False, True))
    else:
        try:
            change = PerformanceTest(metric, None, was, is_now).change()
        except InputError:  # a value that has no logarithm
            return MetricChange(label, metric, old, new, new / old - 1 if old else None)
    numbers = (change.baseline, change.measured, change.change, change.interval)
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
    was, answers = before.answers(metric), after.answers(metric)
    judgeable = was and len(answers) == len(new) if is_accuracy(metric) else min(*old, *new) > 0
    if before.differences(after.fingerprint) or not judgeable:
        return Verdict.NOT_COMPARABLE
    if is_accuracy(metric):
        return judge_paired(metric, was, answers, margin=band).verdict
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
                if has_band if metrics is None else metric in metrics:
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
    return {metric.metric: metric.change for metric in compare(label, before, after).metrics}


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
    facts: tuple[str, ...]

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
    probes: tuple[ProbeChanges, ...]
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
        rehearsal: into the store of rehearsals, which takes what mocks made and nothing else.
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
            compare(label, before.entry(label) if before else None, entry)
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
        problem = "these numbers were measured, and belong into no store of rehearsals"
        hint, is_so = "leave out --rehearsal", str(found.synthetic).lower()
        if found.synthetic:
            problem = "mocks made these numbers: they can never be a baseline of measured ones"
            hint = "--rehearsal puts it into the store that rehearsals alone are compared with"
        raise InputError(problem, file=candidate, field="synthetic", found=is_so, hint=hint)
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

    def band(label: str, metric: str) -> float | None:
        is_judged = found.verdicts.get(label) in _COMPARED
        return None if is_judged else lookup(metric).family.band

    return [one for one in _compared(found, before, band) if one.verdict not in _NOT_JUDGED]


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
    if path.is_file():
        kept = read(path)
        is_kept = kept.retired is None and kept.engine == found.engine
        if is_kept and kept.entries.items() >= found.entries.items():
            return None
    gating = {probe.label: probe.gating_metrics() for probe in all_probes(scenario)}

    def band(label: str, metric: str) -> float | None:
        return band_of(metric, scenario) if metric in gating.get(label, ()) else None

    def wider(label: str, metric: str) -> float | None:
        declared = band(label, metric)
        return None if declared is None else anchor_band(metric, declared)

    before = store.choose(found.hardware, found.scenario, found.engine, repo)
    anchor = store.anchor(found.hardware, found.scenario, found.engine)
    evidence = []
    if before is not None:
        metrics = _compared(found, before, band)
        evidence.append(Evidence("the baseline before", before, metrics))
    if anchor is not None and (before is None or anchor.baseline.engine != before.baseline.engine):
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
    gates = [
        (label, metric)
        for label, entry in found.entries.items()
        for metric in entry.metrics()
        if band(label, metric) is not None
    ]
    return Proposal(candidate, promotion, tuple(evidence), tuple(gates), losses)


def _compared(
    candidate: Baseline, other: ChosenBaseline, band_for: Callable[[str, str], float | None]
) -> tuple[MetricEvidence, ...]:
    """The metrics of a candidate that have a band beside those of another baseline."""
    found = []
    for label, entry in candidate.entries.items():
        old = other.entry(label)
        changes = compare(label, old, entry)
        for change in changes.metrics:
            band = band_for(label, change.metric)
            if band is not None and change.after is not None:
                verdict = verdict_between(change.metric, old, entry, band)
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
