"""Levels: whether accepting a candidate keeps the level of what came before, or starts another."""

from collections.abc import Mapping, Sequence

from perfgate.baselines.baseline import Baseline, Change, ChosenBaseline, Entry
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.accuracy import judge_paired
from perfgate.judging.rules.performance import Comparison, judge

_COMPARED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)


def losses_of(found: Baseline, before: ChosenBaseline | None) -> list[str]:
    """Where the candidate lost, as its run judged it or, where that could not judge, as it is now.

    A run that had nothing to compare with proves nothing; if a baseline has come since, a loss
    against it must not slip in.
    """
    losses = [
        f"{label}: its run ended in REGRESSION"
        for label, verdict in found.verdicts.items()
        if verdict == Verdict.REGRESSION
    ]
    for label, entry in found.entries.items():
        if found.verdicts.get(label) in _COMPARED:
            continue
        old = _comparable(label, entry, before)
        if old is not None:
            losses += [
                f"{label} {metric}: its run did not compare it, and now it is {verdict.value}"
                for metric, verdict in _judged(old, entry).items()
                if verdict not in (Verdict.PASS, Verdict.IMPROVEMENT)
            ]
    return losses


def change_of(found: Baseline, before: ChosenBaseline | None, losses: Sequence[str]) -> Change:
    """What accepting the candidate changes, given where it lost."""
    if losses:
        return "regression"
    comparable = {
        label: old
        for label, entry in found.entries.items()
        if (old := _comparable(label, entry, before)) is not None
    }
    if not comparable:
        return "first"
    better = Verdict.IMPROVEMENT in found.verdicts.values() or any(
        Verdict.IMPROVEMENT in _judged(old, found.entries[label]).values()
        for label, old in comparable.items()
        if found.verdicts.get(label) not in _COMPARED
    )
    return "improvement" if better else "none"


def _comparable(label: str, entry: Entry, before: ChosenBaseline | None) -> Entry | None:
    """What came before and has equal facts; a newer build did not come before."""
    old = before.entry(label) if before and not before.is_newer else None
    return None if old is None or old.differences(entry.fingerprint) else old


def _judged(old: Entry, new: Entry) -> Mapping[str, Verdict]:
    """The verdict of every metric that has a band by itself."""
    found = {}
    for metric in new.metrics():
        band = lookup(metric).family.band
        before, after = old.values(metric), new.values(metric)
        if band is None or not before or not after:
            continue
        if is_accuracy(metric):
            was, now = old.answers(metric), new.answers(metric)
            if was and len(now) == len(new.runs):
                found[metric] = judge_paired(metric, was, now, margin=band).verdict
        elif min(*before, *after, 1.0) > 0:
            sessions = old.sessions(metric)
            test = Comparison(metric, band, before, after, sessions=sessions)
            found[metric] = judge(test).verdict
    return found
