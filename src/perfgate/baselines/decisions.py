"""Decisions of a person on stored baselines: retire one, pin the anchor.

A candidate is accepted by `perfgate.judging.acceptance`, which judges it.
"""

from dataclasses import replace
from pathlib import Path

from perfgate.baselines.baseline import NOBODY, Baseline, Retired
from perfgate.baselines.choice import newest_build
from perfgate.baselines.file import read
from perfgate.baselines.store import Anchor, Store
from perfgate.core.errors import InputError
from perfgate.runs.run_folder import now


def retire(file: Path, *, by: str, reason: str) -> Path:
    """Mark a baseline as one that nothing is compared with any more; it stays in git.

    Raises:
        InputError: the file is no accepted baseline, already retired, or the anchor; or name or
            reason are empty.
    """
    by, reason = named("--by", by), named("--reason", reason)
    store = _store_of(file)
    with store.changing():
        return _retire(store, file, by, reason)


def _retire(store: Store, file: Path, by: str, reason: str) -> Path:
    baseline = _accepted(file)
    pinned = store.pinned(baseline.hardware, baseline.scenario)
    family = store.heads(baseline.hardware, baseline.scenario)
    why = ""
    if pinned is not None and pinned.commit == baseline.engine.commit:
        why = f"pinned by {pinned.by} on {pinned.at[:10]}: {pinned.reason}"
    elif pinned is None and any(
        one.retired is None and one.engine != baseline.engine for one in family
    ):
        anchor = store.anchor(baseline.hardware, baseline.scenario, newest_build(family))
        if anchor is not None and anchor.baseline.engine == baseline.engine:
            why = f"{baseline.engine.version} is the {anchor.why}"
    if why:
        raise InputError(
            "the anchor cannot be retired",
            file=file,
            found=why,
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
    by, reason = named("--by", by), named("--reason", reason)
    store = _store_of(file)
    with store.changing():
        baseline = _accepted(file)
        commit = baseline.engine.commit
        return store.pin(Anchor(baseline.scenario, baseline.hardware, commit, by, now(), reason))


def named(option: str, text: str) -> str:
    """The text of an option that must say something, without what is around it.

    Raises:
        InputError: it is empty.
    """
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
