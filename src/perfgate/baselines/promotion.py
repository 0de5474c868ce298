"""Promotion: what a person decides about baselines: accept a candidate, retire one, pin the anchor.

Candidates themselves come from runs: `perfgate.baselines.recording`.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.baselines import (
    NOBODY,
    Anchor,
    Baseline,
    Change,
    ChosenBaseline,
    Retired,
    Store,
    read,
    rehearsal_store,
    suite_store,
)
from perfgate.baselines.baseline import few_sessions
from perfgate.baselines.candidates import unlike_machines
from perfgate.baselines.choice import newest_build, newest_release
from perfgate.baselines.difference import ProbeChanges, compare
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import head_of
from perfgate.baselines.levels import change_of, losses_of
from perfgate.baselines.recording import record_candidates
from perfgate.core.errors import InputError
from perfgate.core.verdict import counted
from perfgate.runs.records import now

__all__ = ["Promotion", "pin_anchor", "promote", "record_candidates", "retire"]


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
    by, reason = _named("--by", by), _named("--reason", reason)
    if store is None:
        store = rehearsal_store() if rehearsal else suite_store()
    with nullcontext() if dry_run else store.changing():
        return _promote(store, candidate, by, reason, accept_regression, dry_run, repo)


def _promote(
    store: Store,
    candidate: Path,
    by: str,
    reason: str,
    accept_regression: str | None,
    dry_run: bool,
    repo: EngineRepo | None,
) -> Promotion:
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
    why = _named("--accept-regression", accept_regression)
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


def retire(file: Path, *, by: str, reason: str) -> Path:
    """Mark a baseline as one that nothing is compared with any more; it stays in git.

    Raises:
        InputError: the file is no accepted baseline, already retired, or the anchor; or name or
            reason are empty.
    """
    by, reason = _named("--by", by), _named("--reason", reason)
    store = _store_of(file)
    with store.changing():
        return _retire(store, file, by, reason)


def _retire(store: Store, file: Path, by: str, reason: str) -> Path:
    baseline = _accepted(file)
    pinned = store.pinned(baseline.hardware, baseline.scenario)
    family = store.heads(baseline.hardware, baseline.scenario)
    if pinned is not None and pinned.commit == baseline.engine.commit:
        raise InputError(
            "the anchor cannot be retired",
            file=file,
            found=f"pinned by {pinned.by} on {pinned.at[:10]}: {pinned.reason}",
            hint="pin another first: perfgate baseline anchor FILE --by … --reason …",
        )
    others = [one for one in family if one.retired is None and one.engine != baseline.engine]
    if others and pinned is None:
        anchor = store.anchor(baseline.hardware, baseline.scenario, newest_build(family))
        if anchor is not None and anchor.baseline.engine == baseline.engine:
            raise InputError(
                "the anchor cannot be retired",
                file=file,
                found=f"{baseline.engine.version} is the {anchor.why}",
                hint="pin another first: perfgate baseline anchor FILE --by … --reason …",
            )
    return store.save(replace(baseline, retired=Retired(by, now(), reason)), merge=False)


def pin_anchor(file: Path, *, by: str, reason: str) -> Path:
    """Pin a baseline as its scenario's anchor; small losses then add up against it.

    Returns:
        the anchor's file.

    Raises:
        InputError: the file is no accepted baseline, or a retired one; or name or reason are empty.
    """
    by, reason = _named("--by", by), _named("--reason", reason)
    store = _store_of(file)
    with store.changing():
        baseline = _accepted(file)
        commit = baseline.engine.commit
        return store.pin(Anchor(baseline.scenario, baseline.hardware, commit, by, now(), reason))


def _named(option: str, text: str) -> str:
    if not text.strip():
        raise InputError("must not be empty", field=option)
    return text.strip()


def _store_of(file: Path) -> Store:
    """The store that a baseline lies in."""
    accepted = _accepted(file)  # else the folders above it may be anything
    return Store(file.resolve().parents[2], synthetic=accepted.synthetic)


def _accepted(file: Path) -> Baseline:
    """A baseline that a person accepted and nobody retired."""
    baseline = read(file)
    if baseline.accepted_by == NOBODY:
        raise InputError(
            "a candidate is not yet a baseline",
            file=file,
            hint="accept it with `perfgate baseline promote`, or delete the file",
        )
    if baseline.retired is not None:
        raise InputError(
            "the baseline is retired",
            file=file,
            field="retired",
            found=f"{baseline.retired.by} on {baseline.retired.at[:10]}: {baseline.retired.reason}",
        )
    return baseline


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
