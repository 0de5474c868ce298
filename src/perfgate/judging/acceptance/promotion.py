"""Promotion: a person accepts a candidate, which keeps the level of what came before or not.

Candidates come from runs: `perfgate.baselines.recording`.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.baselines.baseline import Baseline, Change, ChosenBaseline, Entry, few_sessions
from perfgate.baselines.candidates import unlike_machines
from perfgate.baselines.choice import newest_release
from perfgate.baselines.decisions import named
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import head_of, read
from perfgate.baselines.store import Store, rehearsal_store, suite_store
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Verdict, counted
from perfgate.judging.acceptance.difference import ProbeChanges, compare, verdict_between
from perfgate.runs.run_folder import now

_COMPARED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)


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
        losses = losses_of(found, before)
        why_accepted = _why_accepted(found, candidate, losses, accept_regression)
        change = change_of(found, before, losses)
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
        _require_like_machines(accepted, candidate)
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


def _require_like_machines(accepted: Baseline, candidate: Path) -> None:
    differing = unlike_machines(accepted.entries)
    if differing:
        raise InputError(
            "the baseline would mix numbers of different machines",
            file=candidate,
            found="; ".join(differing),
            expected="probes of one scenario, measured on machines with equal facts",
            hint="record all probes on one of them",
        )


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


def losses_of(found: Baseline, before: ChosenBaseline | None) -> list[str]:
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
            f"{label} {metric}: its run did not compare it, and now it is {verdict.value}"
            for label, metric, verdict in _judged_now(found, before)
            if verdict not in (Verdict.PASS, Verdict.IMPROVEMENT)
        ),
    ]


def change_of(found: Baseline, before: ChosenBaseline | None, losses: Sequence[str]) -> Change:
    """What accepting the candidate changes, given where it lost."""
    if losses:
        return "regression"
    if not any(_comparable(label, entry, before) for label, entry in found.entries.items()):
        return "first"
    now = [verdict for _, _, verdict in _judged_now(found, before)]
    return "improvement" if Verdict.IMPROVEMENT in (*found.verdicts.values(), *now) else "none"


def _judged_now(
    found: Baseline, before: ChosenBaseline | None
) -> Iterator[tuple[str, str, Verdict]]:
    """Probe, metric and verdict of what the candidate's run did not compare, and is comparable now.

    Of each probe every metric counts that has a band by itself.
    """
    for label, entry in found.entries.items():
        old = _comparable(label, entry, before)
        if old is None or found.verdicts.get(label) in _COMPARED:
            continue
        for metric in entry.metrics():
            band, values = lookup(metric).family.band, [*old.values(metric), *entry.values(metric)]
            if band is None or not old.values(metric):
                continue
            if is_accuracy(metric) or min(values) > 0:
                verdict = verdict_between(metric, old, entry, band)
                if verdict is not None:
                    yield label, metric, verdict


def _comparable(label: str, entry: Entry, before: ChosenBaseline | None) -> Entry | None:
    """What came before and has equal facts; a newer build did not come before."""
    old = before.entry(label) if before and not before.is_newer else None
    return None if old is None or old.differences(entry.fingerprint) else old
